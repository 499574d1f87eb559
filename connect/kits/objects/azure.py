"""Azure Blob Storage: the blobs of one container below one prefix, and what the service's errors mean."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from connect.errors import ConnectError, RetriableError
from connect.internals.extras import how_to_install
from connect.kits.http.retries import clock_advice, retry_after
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.entry import ObjectEntry
from connect.kits.objects.ranges import open_ranges

if TYPE_CHECKING:
    from azure.core.exceptions import HttpResponseError

__all__ = ["AzureBlobs"]

_WRITTEN_BY: Final = "sluice"
_FOLDER: Final = "hdi_isfolder"
"""The metadata of a blob that stands for a folder: set by Hadoop, and on all folders of an account with a hierarchical
namespace.
"""
_THREADS: Final = 16
_CONNECTIONS: Final = 32
_SIGNATURE: Final = re.compile(r"(?<=[?&]sig=)[^&\s'\"]+")
_CONNECT_SECONDS: Final = 10
_READ_SECONDS: Final = 60
_NO_BLOB: Final = frozenset({"BlobNotFound", "InvalidBlockList"})
_THERE: Final = frozenset({"BlobAlreadyExists", "ConditionNotMet", "UnauthorizedBlobOverwrite"})
_NO_CONTAINER: Final = frozenset({"ContainerNotFound", "FilesystemNotFound", "ContainerBeingDeleted"})


def _client(account: AzureAccount, container: str) -> Any:
    """Create a client for a container. Many threads may share it."""
    try:
        from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential  # noqa: PLC0415 - an extra
        from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415
        from azure.storage.blob import ContainerClient, ExponentialRetry  # noqa: PLC0415
        from requests import Session  # noqa: PLC0415
        from requests.adapters import HTTPAdapter  # noqa: PLC0415
    except ImportError as error:
        raise ConnectError(f"A store in Azure needs azure-storage-blob: {how_to_install('azure')}") from error
    # It logs a line for every request.
    logging.getLogger("azure").setLevel(logging.WARNING)
    logging.getLogger("urllib3.connectionpool").addFilter(_hide_signature)
    credential: Any
    if account.key is not None:
        credential = AzureNamedKeyCredential(account.name, account.key)
    elif account.token is not None:
        credential = AzureSasCredential(account.token)
    else:
        credential = _identity()
    session = Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    again = account.tries - 1
    return ContainerClient(
        account.endpoint,
        container,
        credential=credential,
        retry_policy=ExponentialRetry(
            initial_backoff=1,
            increment_base=2,
            random_jitter_range=1,
            retry_total=again,
            retry_connect=again,
            retry_read=again,
            retry_status=again,
        ),
        transport=RequestsTransport(session=session, session_owner=False),
        connection_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
    )


def _identity() -> Any:
    """Return the identity with which Azure's clients sign in if there is no key."""
    try:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ConnectError(f"A store in Azure without a key needs azure-identity: {how_to_install('azure')}") from error
    return DefaultAzureCredential()


def _hide_signature(record: logging.LogRecord) -> bool:
    """Remove signatures from what urllib3 logs about requests: a token is part of the URL (invariant I8)."""
    record.msg, record.args = _SIGNATURE.sub("***", record.getMessage()), None
    return True


class AzureBlobs:
    """The blobs below a prefix of a container; an :class:`~connect.kits.objects.store.ObjectStore`.

    It relies on reads and lists that see every finished write, and on ``If-None-Match`` for puts and for committed
    block lists.
    """

    def __init__(self, account: AzureAccount, container: str, prefix: str) -> None:
        self._client = partial(_client, account, container)
        self._name = f"{container} of account {account.name}"
        self._prefix = f"{prefix}/" if prefix else ""

    def create(self, path: str, data: bytes) -> None:
        """Create a blob; raises :class:`FileExistsError` if it exists already."""
        token = uuid.uuid4().hex
        try:
            with self._errors(path):
                self._blob(path).upload_blob(data, overwrite=False, metadata={_WRITTEN_BY: token})
        except FileExistsError:
            # The response to an earlier try of this very request may have been lost.
            if self.written_by(path) != token:
                raise

    def read(self, path: str) -> bytes:
        """Return the content of a blob; raises :class:`FileNotFoundError` if it does not exist."""
        with self._errors(path):
            return cast("bytes", self._blob(path).download_blob(decompress=False).readall())

    def _read_range(self, path: str, first: int, size: int) -> bytes:
        """Return a range of a blob."""
        with self._errors(path):
            return cast("bytes", self._blob(path).download_blob(offset=first, length=size, decompress=False).readall())

    def open(self, path: str) -> BinaryIO:
        """Open a blob for random reads; raises :class:`FileNotFoundError` if it does not exist."""
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(path)
        return open_ranges(size, partial(self._read_range, path))

    def size(self, path: str) -> int | None:
        """Return the size of a blob; ``None`` if it does not exist or is a folder."""
        found = self._properties(path)
        return None if found is None or _is_folder(found) else int(found.size)

    def written_by(self, path: str) -> str | None:
        """Return the note stored in a blob when it was created: a random text, or the id of an upload; ``None`` if it
        has none.
        """
        found = self._properties(path)
        return None if found is None else (found.metadata or {}).get(_WRITTEN_BY)

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the blobs below a folder, ordered by path, with their sizes, without those that stand for folders."""
        yield from ((self._path(blob), int(blob.size)) for blob in self._listed(path) if not _is_folder(blob))

    def entries(self, start: str = "", after: str = "") -> Iterator[ObjectEntry]:
        """The blobs whose paths begin with ``start`` and come after ``after``, ordered by path.

        The service begins a list only at its beginning, so those before are passed over.
        """
        with self._errors(start, of_container=True):
            for blob in self._container.list_blobs(name_starts_with=self._key(start), include=["metadata"]):
                path = self._path(blob)
                if path > after and not _is_folder(blob):
                    yield _entry(path, blob)

    def entry(self, path: str) -> ObjectEntry | None:
        """Return what a list would tell of a blob; ``None`` if it does not exist or is a folder."""
        found = self._properties(path)
        return None if found is None or _is_folder(found) else _entry(path, found)

    def read_version(self, path: str, tag: str, first: int, size: int) -> bytes:
        """Return a range of a blob if it still has this tag; raises :class:`FileNotFoundError` if not."""
        from azure.core import MatchConditions  # noqa: PLC0415 - as the client

        try:
            with self._errors(path):
                stream = self._blob(path).download_blob(
                    offset=first,
                    length=size,
                    etag=f'"{tag}"',
                    match_condition=MatchConditions.IfNotModified,
                    decompress=False,
                )
                return cast("bytes", stream.readall())
        except FileExistsError:
            raise FileNotFoundError(path) from None

    def copy(self, path: str, target: str) -> None:
        """Copy a blob by its content, block by block."""
        with self._errors(path):
            self._blob(target).upload_blob(self._blob(path).download_blob(decompress=False).chunks(), overwrite=True)

    def names(self, path: str) -> list[str]:
        """List the names directly in a folder."""
        start = self._key(f"{path}/" if path else "")
        with self._errors(path, of_container=True):
            found = {item.name for item in self._container.walk_blobs(name_starts_with=start, delimiter="/")}
        return sorted(filter(None, (name.removeprefix(start).rstrip("/") for name in found)))

    def remove(self, path: str) -> None:
        """Delete a blob, if it exists."""
        try:
            with self._errors(path):
                self._blob(path).delete_blob()
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        """Delete all blobs below a folder, and those that stand for it and for its subfolders, deepest first."""
        found = list(self._listed(path))
        self._remove_all(self._path(blob) for blob in found if not _is_folder(blob))
        folders = [self._path(blob) for blob in found if _is_folder(blob)]
        itself = self._properties(path) if path else None
        if itself is not None and _is_folder(itself):
            folders.append(path)
        for _, level in groupby(sorted(folders, key=_depth, reverse=True), key=_depth):
            self._remove_all(level)

    # -- uploads ---------------------------------------------------------------------------------------------

    def put_block(self, path: str, upload: str, part: str, data: bytes) -> None:
        """Send a block of a blob, invisible until it is committed. Its id is made of those of the upload and
        the part.
        """
        with self._errors(path):
            self._blob(path).stage_block(_block(upload, part), data)

    def commit_if_absent(self, path: str, upload: str, parts: Sequence[str]) -> None:
        """Create a blob from the blocks of an upload. The service does so in one step, without moving them.

        Raises :class:`FileExistsError` if the blob exists, :class:`FileNotFoundError` if the blocks no longer exist.
        """
        from azure.core import MatchConditions  # noqa: PLC0415 - as the client

        self._commit(path, upload, parts, match_condition=MatchConditions.IfMissing)

    def commit(self, path: str, upload: str, parts: Sequence[str]) -> None:
        """Create or replace a blob; as :meth:`commit_if_absent` otherwise."""
        self._commit(path, upload, parts)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a blob."""
        with self._errors(path):
            self._blob(path).upload_blob(data, overwrite=True)

    def _commit(self, path: str, upload: str, parts: Sequence[str], **conditions: Any) -> None:
        from azure.storage.blob import BlobBlock  # noqa: PLC0415 - as the client

        blocks = [BlobBlock(_block(upload, part)) for part in parts]
        with self._errors(path):
            self._blob(path).commit_block_list(blocks, metadata={_WRITTEN_BY: upload}, **conditions)

    # -- requests --------------------------------------------------------------------------------------------

    @cached_property
    def _container(self) -> Any:
        return self._client()

    def _key(self, path: str) -> str:
        return self._prefix + path

    def _path(self, blob: Any) -> str:
        return cast("str", blob.name).removeprefix(self._prefix)

    def _blob(self, path: str) -> Any:
        return self._container.get_blob_client(self._key(path))

    def _properties(self, path: str) -> Any:
        try:
            with self._errors(path):
                return self._blob(path).get_blob_properties()
        except FileNotFoundError:
            return None

    def _listed(self, folder: str) -> Iterator[Any]:
        start = self._key(f"{folder}/" if folder else "")
        with self._errors(folder, of_container=True):
            yield from self._container.list_blobs(name_starts_with=start, include=["metadata"])

    def _remove_all(self, paths: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(self.remove, paths):
                pass

    @contextmanager
    def _errors(self, path: str, *, of_container: bool = False) -> Iterator[None]:
        """Translate the errors of requests; with ``of_container``, a "not found" can only mean the container."""
        # The client first: it says how to install its library, from which the errors are.
        _ = self._container
        from azure.core import exceptions as azure  # noqa: PLC0415 - as the client

        try:
            yield
        except azure.HttpResponseError as error:
            if error.status_code is None:
                # No request was made: no identity was found, or it was rejected. The reason may be long.
                raise ConnectError(
                    f"Signing in to container {self._name} failed ({type(error).__name__}): set "
                    "azblob.account.key, azblob.sas.token or azblob.connection.string, or give the worker an "
                    "identity that Azure knows."
                ) from None
            # The service's response may contain parts of what was signed, so it is not chained.
            raise self._meaning(error, path, of_container) from None
        except (azure.ServiceRequestError, azure.ServiceResponseError) as error:
            raise RetriableError(
                f"The service of container {self._name} cannot be reached ({type(error).__name__}): check the account "
                "and azblob.endpoint."
            ) from None
        except azure.AzureError as error:
            raise RetriableError(f"A request for {path} in {self._name} failed ({type(error).__name__}).") from None

    def _meaning(self, error: HttpResponseError, path: str, of_container: bool) -> Exception:
        status, code = int(error.status_code or 0), _code(error)
        headers = getattr(error.response, "headers", None) or {}
        if code in _NO_CONTAINER or (status == 404 and of_container):
            message = f"There is no container {self._name}"
            return ConnectError(f"{message}: make it, or correct its name or azblob.endpoint.")
        if status == 404 or code in _NO_BLOB:
            return FileNotFoundError(path)
        if status == 412 or code in _THERE:
            return FileExistsError(path)
        if status in {401, 403}:
            return ConnectError(
                f"The service of container {self._name} refuses {path} ({code or status}): check the key or the token, "
                "or give the identity the role Storage Blob Data Contributor on the container (docs/spark/stores.md)."
                + clock_advice(headers.get("Date", ""), time.time())
            )
        message = f"A request for {path} in container {self._name} failed ({code or status})."
        if status in {408, 429} or status >= 500:
            return RetriableError(
                message, retry_after=retry_after({"retry-after": headers.get("Retry-After", "")}, time.time())
            )
        return ConnectError(f"{message} Check the names of the container and of the account, and azblob.endpoint.")


def _code(error: HttpResponseError) -> str:
    """Return the service's error code."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _is_folder(blob: Any) -> bool:
    return (blob.metadata or {}).get(_FOLDER) == "true"


def _entry(path: str, blob: Any) -> ObjectEntry:
    return ObjectEntry(path, int(blob.size), str(blob.etag).strip('"'), int(1000 * blob.last_modified.timestamp()))


def _depth(path: str) -> int:
    return path.count("/")


def _block(upload: str, part: str) -> str:
    return f"{upload}-{part}"

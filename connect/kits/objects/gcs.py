"""Google Cloud Storage: the account, the objects of one bucket below one prefix, and what the service's errors mean."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from connect.errors import ConnectError, RetriableError
from connect.internals.extras import how_to_install
from connect.kits.http.retries import clock_advice, retry_after
from connect.kits.objects.entry import ObjectEntry
from connect.kits.objects.ranges import open_ranges

if TYPE_CHECKING:
    from google.api_core.exceptions import GoogleAPICallError

__all__ = ["GoogleAccount", "GoogleObject", "GoogleObjects"]

_WRITTEN_BY: Final = "sluice"
_NONE: Final = 0
"""The generation of an object that does not exist."""
_THREADS: Final = 16
_CONNECTIONS: Final = 32
_CHUNK_BYTES: Final = 8 << 20
_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"


@dataclass(frozen=True, slots=True)
class GoogleAccount:
    """Access to the service; plain data, which other processes may be sent."""

    endpoint: str | None = None
    """The URL of another service, which is used without a key if there is none."""
    key: str | None = field(default=None, repr=False)
    """A service account's key, as JSON. Without one, credentials for Google's own service are found as Google's clients
    do.
    """
    patience: float = 60.0
    """For how many seconds a request is retried."""


@dataclass(frozen=True, slots=True)
class GoogleObject:
    """The metadata of an object: the checksum and the size of its content."""

    checksum: str
    size: int


def _client(account: GoogleAccount) -> Any:
    """Create a client for a service. Many threads may share it."""
    try:
        import google.auth  # noqa: PLC0415 - an extra, and slow to import
        import google.auth.credentials  # noqa: PLC0415
        import google.auth.transport.requests  # noqa: PLC0415
        import google.oauth2.service_account  # noqa: PLC0415
        from google.cloud.storage import Client  # noqa: PLC0415
        from requests.adapters import HTTPAdapter  # noqa: PLC0415
    except ImportError as error:
        raise ConnectError(
            f"A store in Google Cloud Storage needs google-cloud-storage: {how_to_install('gcs')}"
        ) from error
    accounts: Any = google.oauth2.service_account.Credentials
    anonymous: Any = google.auth.credentials.AnonymousCredentials
    sessions: Any = google.auth.transport.requests.AuthorizedSession
    try:
        if account.key is not None:
            credentials = accounts.from_service_account_info(json.loads(account.key), scopes=[_SCOPE])
        elif account.endpoint is not None:
            credentials = anonymous()
        else:
            credentials, _ = google.auth.default(scopes=[_SCOPE])
    except (google.auth.exceptions.GoogleAuthError, ValueError):
        # An error about a key may quote parts of it, so it is not chained.
        raise ConnectError(
            "Signing in to Google Cloud Storage failed: set gcs.credentials.path to the key of a service "
            "account, set GOOGLE_APPLICATION_CREDENTIALS in the worker's environment, or run the worker on a "
            "machine with an account."
        ) from None
    session = sessions(credentials)
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS))
    options = None if account.endpoint is None else {"api_endpoint": account.endpoint.rstrip("/")}
    # Requests about objects name the bucket and no project.
    return Client(project="none", credentials=credentials, _http=session, client_options=options)


class GoogleObjects:
    """The objects below a prefix of a bucket; an :class:`~connect.kits.objects.store.ObjectStore`.

    It relies on reads and lists that see every finished write, and on ``ifGenerationMatch=0``.
    """

    def __init__(self, account: GoogleAccount, bucket: str, prefix: str) -> None:
        self._account = account
        self._name = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def create(self, path: str, data: bytes) -> None:
        """Create an object; raises :class:`FileExistsError` if it exists already."""
        token = uuid.uuid4().hex
        blob = self._blob(path)
        blob.metadata = {_WRITTEN_BY: token}
        try:
            with self._errors(path, of_bucket=True):
                blob.upload_from_string(data, "application/octet-stream", if_generation_match=_NONE, retry=self._again)
        except FileExistsError:
            # The response to an earlier try of this very request may have been lost.
            if self._token(path) != token:
                raise

    def read(self, path: str) -> bytes:
        """Return the content of an object; raises :class:`FileNotFoundError` if it does not exist."""
        with self._errors(path):
            return cast("bytes", self._blob(path).download_as_bytes(raw_download=True, retry=self._again))

    def _read_range(self, path: str, first: int, size: int) -> bytes:
        """Return a range of an object."""
        with self._errors(path):
            blob = self._blob(path)
            return cast(
                "bytes",
                blob.download_as_bytes(start=first, end=first + size - 1, raw_download=True, retry=self._again),
            )

    def open(self, path: str) -> BinaryIO:
        """Open an object for random reads; raises :class:`FileNotFoundError` if it does not exist."""
        found = self.stat(path)
        if found is None:
            raise FileNotFoundError(path)
        return open_ranges(found.size, partial(self._read_range, path))

    def size(self, path: str) -> int | None:
        """Return the size of an object, ``None`` if it does not exist."""
        found = self.stat(path)
        return None if found is None else found.size

    def stat(self, path: str) -> GoogleObject | None:
        """Return an object's metadata; ``None`` if it does not exist."""
        blob = self._blob(path)
        try:
            with self._errors(path):
                blob.reload(retry=self._again)
        except FileNotFoundError:
            return None
        return GoogleObject(blob.crc32c, blob.size)

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the objects below a folder, ordered by path, with their sizes; names that stand for a folder end
        with ``/``.
        """
        prefix = self._key(f"{path}/" if path else "")
        with self._errors(path, of_bucket=True):
            for blob in self._client.list_blobs(self._bucket, prefix=prefix, retry=self._again):
                yield blob.name.removeprefix(self._prefix), blob.size

    def entries(self, start: str = "", after: str = "") -> Iterator[ObjectEntry]:
        """The objects whose paths begin with ``start`` and come after ``after``, ordered by path."""
        # The service includes the name at which a list begins.
        first = self._key(f"{after}\x00") if after else None
        with self._errors(start, of_bucket=True):
            found = self._client.list_blobs(
                self._bucket, prefix=self._key(start), start_offset=first, retry=self._again
            )
            for blob in found:
                yield _entry(blob.name.removeprefix(self._prefix), blob)

    def entry(self, path: str) -> ObjectEntry | None:
        """Return what a list would tell of an object; ``None`` if it does not exist."""
        blob = self._blob(path)
        try:
            with self._errors(path):
                blob.reload(retry=self._again)
        except FileNotFoundError:
            return None
        return _entry(path, blob)

    def read_version(self, path: str, tag: str, first: int, size: int) -> bytes:
        """Return a range of an object if it still has this generation; raises :class:`FileNotFoundError` if not."""
        try:
            with self._errors(path):
                blob = self._blob(path)
                return cast(
                    "bytes",
                    blob.download_as_bytes(
                        start=first,
                        end=first + size - 1,
                        if_generation_match=int(tag),
                        raw_download=True,
                        retry=self._again,
                    ),
                )
        except FileExistsError:
            raise FileNotFoundError(path) from None

    def copy(self, path: str, target: str) -> None:
        """Copy an object without moving its content, in place of what has the second name."""
        self.remove(target)
        self.copy_if_absent(path, target)

    def names(self, path: str) -> list[str]:
        """List the names directly in a folder."""
        prefix = self._key(f"{path}/" if path else "")
        with self._errors(path, of_bucket=True):
            found = self._client.list_blobs(self._bucket, prefix=prefix, delimiter="/", retry=self._again)
            keys = {blob.name for blob in found}
            keys |= {key.rstrip("/") for key in found.prefixes}
        return sorted(filter(None, (key.removeprefix(prefix) for key in keys)))

    def copy_if_absent(self, source: str, target: str) -> None:
        """Copy an object to a second name. The service does so without moving its content.

        Raises :class:`FileExistsError` if that name is taken, :class:`FileNotFoundError` if ``source`` does not exist.
        """
        rest = None
        with self._errors(source):
            while True:
                blob = self._blob(target)
                rest, _, _ = blob.rewrite(self._blob(source), rest, if_generation_match=_NONE, retry=self._again)
                if rest is None:
                    return

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        with self._errors(path, of_bucket=True):
            self._blob(path).upload_from_string(data, "application/octet-stream", retry=self._again)

    def append(self, writer: Any, path: str, data: bytes, *, ends: bool) -> None:
        """Send bytes to a file of :meth:`writer`; it exists when its last ones were sent."""
        with self._errors(path, of_bucket=True):
            writer.write(data)
            if ends:
                writer.close()

    def writer(self, path: str) -> Any:
        """Return a file that is sent in chunks, and exists once it is closed."""
        return self._blob(path).open("wb", chunk_size=_CHUNK_BYTES, ignore_flush=True, retry=self._again)

    def remove(self, path: str) -> None:
        """Delete an object, if it exists."""
        try:
            with self._errors(path):
                self._blob(path).delete(retry=self._again)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        """Delete the objects below a prefix, including those with which Hadoop marks folders."""
        self.remove_all([name for name, _ in self.below(path)])

    def remove_all(self, paths: Iterable[str]) -> None:
        """Delete objects, if they exist."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(self.remove, paths):
                pass

    # -- requests --------------------------------------------------------------------------------------------

    @cached_property
    def _client(self) -> Any:
        return _client(self._account)

    @cached_property
    def _bucket(self) -> Any:
        return self._client.bucket(self._name)

    @cached_property
    def _again(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY  # noqa: PLC0415 - as the client

        return DEFAULT_RETRY.with_timeout(self._account.patience)

    def _key(self, path: str) -> str:
        return self._prefix + path

    def _blob(self, path: str) -> Any:
        return self._bucket.blob(self._key(path))

    def _token(self, path: str) -> str | None:
        blob = self._blob(path)
        try:
            with self._errors(path):
                blob.reload(retry=self._again)
        except FileNotFoundError:
            return None
        return cast("str | None", (blob.metadata or {}).get(_WRITTEN_BY))

    @contextmanager
    def _errors(self, path: str, *, of_bucket: bool = False) -> Iterator[None]:
        """Translate the errors of requests; with ``of_bucket``, a "not found" can only mean the bucket."""
        # The client first: it says how to install its library, from which the errors are.
        _ = self._client
        from google.api_core.exceptions import GoogleAPICallError, RetryError  # noqa: PLC0415
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        from google.cloud.storage.exceptions import InvalidResponse  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415

        try:
            yield
        except GoogleAPICallError as error:
            raise self._meaning(error, path, of_bucket) from error
        except InvalidResponse as error:
            raise RetriableError(self._failure_text(path, error.response.status_code)) from error
        except (RetryError, RequestException, ConnectionError) as error:
            reason = error.cause if isinstance(error, RetryError) else error
            raise RetriableError(f"The service for bucket {self._name} cannot be reached: {reason}") from error
        except GoogleAuthError as error:
            raise ConnectError(
                f"The account for bucket {self._name} was rejected ({type(error).__name__}): check "
                "gcs.credentials.path, gcs.credentials.json, or the account that the worker runs with."
            ) from None

    def _meaning(self, error: GoogleAPICallError, path: str, of_bucket: bool) -> Exception:
        code, bucket = int(error.code or 0), self._name
        if code == 404 and of_bucket:
            return ConnectError(f"There is no bucket {bucket}: make it, or correct its name or gcs.endpoint.")
        if code == 404:
            return FileNotFoundError(path)
        if code == 412:
            return FileExistsError(path)
        headers = getattr(error.response, "headers", None) or {}
        if code in {401, 403}:
            return ConnectError(
                f"The service of bucket {bucket} refuses {path} ({code}): give the account the role "
                "roles/storage.objectUser on the bucket (docs/spark/stores.md lists what it must permit)."
                + clock_advice(headers.get("date", ""), time.time())
            )
        if code in {408, 409, 429} or code >= 500:
            return RetriableError(
                self._failure_text(path, code),
                retry_after=retry_after({"retry-after": headers.get("Retry-After", "")}, time.time()),
            )
        return ConnectError(f"{self._failure_text(path, code)} Check the name of the bucket and gcs.endpoint.")

    def _failure_text(self, path: str, code: int) -> str:
        return f"A request for {path} in bucket {self._name} failed ({code})."


def _entry(path: str, blob: Any) -> ObjectEntry:
    return ObjectEntry(path, int(blob.size), str(blob.generation), int(1000 * blob.updated.timestamp()))

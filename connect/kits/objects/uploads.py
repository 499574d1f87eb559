"""Uploads: an object that is sent in parts, nobody sees until it is finished, and then replaces one of its name."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.gcs import GoogleObjects
from connect.kits.objects.local import LocalFiles
from connect.kits.objects.s3 import S3Attributes, S3Objects
from connect.kits.objects.sftp import SftpFiles
from connect.kits.objects.staged import Staged

__all__ = ["Upload", "UploadSettings", "begin_upload", "discard_uploads"]

_PERMANENT: Final = frozenset({errno.ENAMETOOLONG, errno.EROFS, errno.EINVAL, errno.ELOOP})


class Upload(Protocol):
    """The upload of one object. After an error it can only be discarded."""

    def send(self, data: bytes) -> None:
        """Send a part that others follow."""

    def finish(self, rest: bytes | bytearray, tags: Mapping[str, str]) -> None:
        """Send the last part; when this returns, the object is there, whole and durable."""

    def stage(self, rest: bytes | bytearray) -> Staged:
        """Send the last part of an upload that was begun to be staged: what it returns can be published."""

    def discard(self) -> None:
        """Give the upload up. Errors are left to the service, which forgets what is incomplete in time."""


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """What the objects of a connector are given, and where files wait that have not got their names yet."""

    s3: S3Attributes = field(default_factory=S3Attributes)
    on_tagging_error: Literal["ignore", "fail"] = "ignore"
    staging: str = "_sluice/staging"


def begin_upload(store: Any, path: str, settings: UploadSettings, *, stages: bool = False) -> Upload:
    """Return an upload of the object at ``path``; nothing is sent yet. With ``stages`` it will be staged."""
    match store:
        case S3Objects():
            return _S3Upload(store, path, settings)
        case GoogleObjects():
            # Nobody else can finish one of Google's uploads, so that what is staged is an object of another name.
            return _GoogleUpload(store, path, f"{settings.staging}/{uuid.uuid4().hex}" if stages else "")
        case AzureBlobs():
            return _AzureUpload(store, path)
        case LocalFiles() | SftpFiles():
            return _FolderUpload(store, path, settings.staging)
    raise TypeError(f"{type(store).__name__} takes no uploads")


def discard_uploads(store: Any, folder: str, stagings: Iterable[str], is_ours: Callable[[str], bool]) -> int:
    """Discard what a killed process has left, and return how many uploads that were.

    ``is_ours`` tells by the path of an object whether its upload may be discarded. Google's and Azure's services keep
    nothing that could be listed, and forget it after a week.
    """
    match store:
        case S3Objects():
            found = [(path, upload) for path, upload in store.uploads(folder) if is_ours(path)]
            for path, upload in found:
                store.abort(path, upload)
            return len(found)
        case LocalFiles() | SftpFiles():
            left = 0
            for staging in stagings:
                left += len(store.names(staging))
                store.remove_tree(staging)
            return left
    return 0


class _S3Upload:
    """Puts what fits into one part, and uploads more part by part."""

    def __init__(self, store: S3Objects, path: str, settings: UploadSettings) -> None:
        self._store = store
        self._path = path
        self._settings = settings
        self._upload: str | None = None
        self._tags: list[str] = []
        self._sent = 0

    def send(self, data: bytes) -> None:
        attributes = self._settings.s3
        if self._upload is None:
            self._upload = self._store.begin_upload(self._path, attributes)
        number = len(self._tags) + 1
        self._tags.append(
            _found(self._path, self._store.upload_part, self._path, self._upload, number, data, attributes)
        )
        self._sent += len(data)

    def finish(self, rest: bytes | bytearray, tags: Mapping[str, str]) -> None:
        if self._upload is None:
            self._store.put(self._path, rest, self._settings.s3)
        else:
            if rest:
                self.send(bytes(rest))
            self._complete(self._upload)
        if tags:
            self._tag(tags)

    def stage(self, rest: bytes | bytearray) -> Staged:
        if rest or self._upload is None:
            self.send(bytes(rest))
        return Staged(self._path, self._sent, str(self._upload), tuple(self._tags))

    def discard(self) -> None:
        if self._upload is not None:
            with suppress(ConnectError):
                self._store.abort(self._path, self._upload)

    def _complete(self, upload: str) -> None:
        try:
            self._store.complete(self._path, upload, self._tags)
        except FileNotFoundError:
            # The response to an earlier try of this very request may have been lost.
            if self._store.size(self._path) != self._sent:
                raise RetriableError(
                    f"The upload of {self._path} was aborted by someone else: its records are written again."
                ) from None

    def _tag(self, tags: Mapping[str, str]) -> None:
        try:
            self._store.tag(self._path, tags)
        except RetriableError:
            raise
        except ConnectError:
            if self._settings.on_tagging_error == "fail":
                raise


def _found(path: str, request: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a request about an upload answers; if that was aborted, it has to be begun again."""
    try:
        return request(*arguments)
    except FileNotFoundError:
        raise RetriableError(
            f"The upload of {path} was aborted by someone else: its records are written again."
        ) from None


class _GoogleUpload:
    """Puts what comes whole, and sends more through a resumable upload."""

    def __init__(self, store: GoogleObjects, path: str, beside: str) -> None:
        self._store = store
        self._target = path
        self._path = beside or path
        self._writer: Any = None
        self._sent = 0

    def send(self, data: bytes) -> None:
        self._sent += len(data)
        if self._writer is None:
            self._writer = self._store.writer(self._path)
        self._store.append(self._writer, self._path, data, ends=False)

    def finish(self, rest: bytes | bytearray, tags: Mapping[str, str]) -> None:  # noqa: ARG002 - there are no tags
        if self._writer is None:
            self._store.put(self._path, bytes(rest))
            return
        self._store.append(self._writer, self._path, bytes(rest), ends=True)
        self._writer = None

    def stage(self, rest: bytes | bytearray) -> Staged:
        size = self._sent + len(rest)
        self.finish(rest, {})
        return Staged(self._target, size, beside=self._path)

    def discard(self) -> None:
        if self._writer is not None:
            # Its own close would finish the object.
            with suppress(Exception):
                self._writer.terminate()
            self._writer = None


class _AzureUpload:
    """Puts what comes whole, and commits a list of blocks otherwise; uncommitted ones are forgotten in a week."""

    def __init__(self, store: AzureBlobs, path: str) -> None:
        self._store = store
        self._path = path
        self._id = uuid.uuid4().hex
        self._parts: list[str] = []
        self._sent = 0

    def send(self, data: bytes) -> None:
        part = f"{len(self._parts):05d}"
        self._store.put_block(self._path, self._id, part, data)
        self._parts.append(part)
        self._sent += len(data)

    def finish(self, rest: bytes | bytearray, tags: Mapping[str, str]) -> None:  # noqa: ARG002 - there are no tags
        if not self._parts:
            self._store.put(self._path, bytes(rest))
            return
        if rest:
            self.send(bytes(rest))
        try:
            self._store.commit(self._path, self._id, self._parts)
        except FileNotFoundError:
            raise RetriableError(f"The blocks of {self._path} are gone: its records are written again.") from None

    def stage(self, rest: bytes | bytearray) -> Staged:
        if rest:
            self.send(bytes(rest))
        return Staged(self._path, self._sent, self._id, tuple(self._parts))

    def discard(self) -> None:
        """Leave the blocks to the service."""


class _FolderUpload:
    """Writes beside, and gives the file its name when it is whole."""

    def __init__(self, store: LocalFiles | SftpFiles, path: str, staging: str) -> None:
        self._store = store
        self._path = path
        self._beside = f"{staging}/{uuid.uuid4().hex}"
        self._sent = 0

    def send(self, data: bytes | bytearray) -> None:
        # If this task was frozen, another one may have removed the file: what follows must not become one of its own.
        with _disk_errors(self._path):
            self._store.append(self._beside, data, self._sent)
        self._sent += len(data)

    def finish(self, rest: bytes | bytearray, tags: Mapping[str, str]) -> None:  # noqa: ARG002 - there are no tags
        if rest or not self._sent:
            self.send(rest)
        with _disk_errors(self._path):
            self._store.move(self._beside, self._path)

    def stage(self, rest: bytes | bytearray) -> Staged:
        if rest or not self._sent:
            self.send(rest)
        if isinstance(self._store, LocalFiles):
            with _disk_errors(self._path):
                self._store.sync(self._beside)
        return Staged(self._path, self._sent, beside=self._beside)

    def discard(self) -> None:
        with suppress(OSError, ConnectError):
            self._store.remove(self._beside)


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Say what to do about an error of the file system."""
    try:
        yield
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise ConnectError(
            f"{path} cannot be written ({error.strerror}): give the user of the worker the right to write the folder, "
            "and remove what has the name of a folder or file."
        ) from error
    except OSError as error:
        if error.errno in _PERMANENT:
            raise ConnectError(f"{path} cannot be written: {error}") from error
        raise RetriableError(f"{path} cannot be written now: {error}") from error

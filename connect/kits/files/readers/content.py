"""Files, plain or compressed, as streams of uncompressed bytes."""

from __future__ import annotations

import gzip
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final

from connect.errors import DataError
from connect.kits.files.readers.bookmark import HEAD_BYTES, fingerprint_of, has_fingerprint
from connect.kits.files.systems.system import NANOSECONDS, OpenedFile, SourceFile, is_hidden

__all__ = ["Content", "file_errors", "is_archive", "is_compressed", "members"]

_VERIFY_BYTES: Final = 1024 * 1024
_CORRUPT: Final = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


class Content:
    """The bytes of a file, or of a member of a zip archive, from any position on.

    Positions count uncompressed bytes. Seeking in a compressed file reads everything before the position.
    """

    def __init__(self, file: SourceFile, opened: OpenedFile, member: str | None) -> None:
        self.path = file.path
        self.member = member
        self._source = file
        self._status = opened.status
        self._file: IO[bytes] = opened.stream
        try:
            self._head = self._file.read(HEAD_BYTES)
            self._file.seek(0)
            self._stream = self._opened()
        except BaseException:
            self._file.close()
            raise

    @property
    def name(self) -> str:
        """The name of the file, and of the member in it, for errors."""
        return f"{self.path}!{self.member}" if self.member is not None else self.path

    @property
    def fingerprint(self) -> str:
        """The fingerprint, which distinguishes the file from others of the same name."""
        return fingerprint_of(self._head)

    @property
    def is_fixed(self) -> bool:
        """Whether the file has its whole content, so that its end is the end of its rows."""
        return is_compressed(self.path) or not self._source.grows

    def has_fingerprint(self, fingerprint: str) -> bool:
        """Return whether the file has that fingerprint; it may have grown since."""
        return has_fingerprint(self._head, fingerprint)

    @property
    def size(self) -> int:
        """The current size of the file as it is stored."""
        return self._status().size

    def is_settled(self, settle_seconds: float) -> bool:
        """Whether the file has not changed for that long."""
        present = self._status()
        if present == self._source.status:
            return self._source.is_settled(time.time(), settle_seconds)
        # It has changed since the scan; a local time tells when.
        return (
            self._source.place == self._source.path
            and time.time() - present.modified_ns / NANOSECONDS >= settle_seconds
        )

    def seek(self, position: int) -> bool:
        """Go to a position; return whether the file reaches that far."""
        if self._stream is self._file:
            self._stream.seek(position)
            return position <= self.size
        return self._stream.seek(position) == position

    def verify(self) -> None:
        """Decompress the whole file to detect damage before any row is published: checksums are at the end."""
        self._stream.seek(0)
        while self._stream.read(_VERIFY_BYTES):
            pass

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; fewer only at the current end."""
        parts: list[bytes] = []
        while size > 0 and (data := self._stream.read(size)):
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not self._file:
            self._stream.close()
        self._file.close()

    def _opened(self) -> IO[bytes]:
        if self.member is not None:
            archive = zipfile.ZipFile(self._file)
            return archive.open(self.member)
        if self.path.lower().endswith(".gz"):
            return gzip.GzipFile(fileobj=self._file)  # type: ignore[return-value]
        return self._file


def is_compressed(path: str) -> bool:
    """Return whether the file must be complete before any of it can be read."""
    return path.lower().endswith((".gz", ".zip"))


def is_archive(path: str) -> bool:
    """Whether the file is a zip archive, which may contain several files."""
    return path.lower().endswith(".zip")


def members(file: SourceFile, path: str, matches: Callable[[str], bool]) -> list[str | None]:
    """Return the parts of a file to read: the file itself; of a zip archive its only member, or those that match.

    ``path`` is where the archive can be read. A member matches by its name, or by its name with .zip appended, so that
    ``*.csv.zip`` finds the CSV files in archives.
    """
    if not is_archive(file.path):
        return [None]
    with zipfile.ZipFile(path) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    named = [name for name in names if not name.startswith("__MACOSX/") and not is_hidden(name)]
    wanted = (name for name in named if matches(name) or matches(name + file.path[-len(".zip") :]))
    chosen = named if len(named) == 1 else list(wanted)
    if not chosen:
        raise DataError(
            f"{file.path} has no member that matches the pattern; its members are {', '.join(named[:5]) or 'none'}. "
            "Change 'pattern', or remove the archive from the folder."
        )
    return [*chosen]


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Turn errors of a file as a whole into a ``DataError`` that names it."""
    try:
        yield
    except _CORRUPT as error:
        raise DataError(
            f"{name} is corrupt: {error or type(error).__name__}. Replace it with an intact one."
        ) from error
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(
            f"{name} cannot be unpacked: {error}. Compress it with deflate and without encryption."
        ) from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}. Make it readable for the worker's user.") from error

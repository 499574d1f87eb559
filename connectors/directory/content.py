"""Files, plain or compressed, as streams of uncompressed bytes."""

from __future__ import annotations

import gzip
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final

from connect.errors import DataError
from connectors.directory.bookmark import HEAD_BYTES, fingerprint_of, has_fingerprint
from connectors.directory.listing import NANOSECONDS, is_hidden, modified_ns

__all__ = ["Content", "file_errors", "is_compressed", "members"]

_VERIFY_BYTES: Final = 1024 * 1024
_CORRUPT: Final = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


class Content:
    """The bytes of a file, or of a member of a zip archive, from any position on.

    Positions count uncompressed bytes. Seeking in a compressed file reads everything before the position.
    """

    def __init__(self, path: str, member: str | None) -> None:
        self.path = path
        self.member = member
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115, PTH123 - it is closed by close()
        try:
            self._head = os.pread(self._file.fileno(), HEAD_BYTES, 0)
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

    def has_fingerprint(self, fingerprint: str) -> bool:
        """Return whether the file has that fingerprint; it may have grown since."""
        return has_fingerprint(self._head, fingerprint)

    @property
    def size(self) -> int:
        """The current size of the file on disk."""
        return os.fstat(self._file.fileno()).st_size

    def is_settled(self, settle_seconds: float) -> bool:
        """Return whether the file has not changed for that long."""
        return time.time() - modified_ns(os.fstat(self._file.fileno())) / NANOSECONDS >= settle_seconds

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


def members(path: str, matches: Callable[[str], bool]) -> list[str | None]:
    """Return the parts of a file to read: the file itself; of a zip archive its only member, or those that match.

    A member matches by its name, or by its name with .zip appended, so that ``*.csv.zip`` finds the CSV files in
    archives.
    """
    if not path.lower().endswith(".zip"):
        return [None]
    with zipfile.ZipFile(path) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    named = [name for name in names if not name.startswith("__MACOSX/") and not is_hidden(name)]
    wanted = (name for name in named if matches(name) or matches(name + path[-len(".zip") :]))
    chosen = named if len(named) == 1 else list(wanted)
    if not chosen:
        raise DataError(
            f"{path} has no member that matches the pattern; its members are {', '.join(named[:5]) or 'none'}. "
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

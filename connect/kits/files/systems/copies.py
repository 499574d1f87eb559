"""Local copies of remote files that can be read only when complete, and are read more than once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from connect.errors import RetriableError
from connect.kits.files.systems.system import FileSystem, SourceFile

__all__ = ["local_path"]

_DESCRIPTORS: Final = Path("/proc/self/fd")


@contextmanager
def local_path(system: FileSystem, file: SourceFile) -> Iterator[str]:
    """Give the path at which a file can be read: its own, or that of a temporary copy.

    Where Linux allows it, the copy has no name, so that nothing is left of it, however the process ends. Raises
    :class:`~connect.errors.RetriableError` if the file changes while it is copied.
    """
    if system.is_local:
        yield file.place
        return
    with _temporary() as copy:
        path = str(_DESCRIPTORS / str(copy.fileno())) if _DESCRIPTORS.is_dir() else copy.name
        system.copy(file.place, copy)
        copy.flush()
        if copy.tell() != file.size or system.status(file.place) != file.status:
            raise RetriableError(f"{file.path} has changed while it was copied: it is read when it is complete.")
        yield path


def _temporary() -> IO[bytes]:
    if _DESCRIPTORS.is_dir():
        return tempfile.TemporaryFile(prefix="sluice-copy-")
    return tempfile.NamedTemporaryFile(prefix="sluice-copy-")

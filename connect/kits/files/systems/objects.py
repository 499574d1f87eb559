"""The objects of a bucket below a prefix, as files."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, cast

from connect.kits.files.systems.address import Address
from connect.kits.files.systems.system import FileStatus, FoundFile, OpenedFile, is_hidden
from connect.kits.objects.entry import ObjectEntry
from connect.kits.objects.location import parse_location
from connect.kits.objects.ranges import open_ranges
from connect.kits.objects.store import open_store

if TYPE_CHECKING:
    from connect.kits.objects.options import ObjectOptions

__all__ = ["ObjectSystem"]

_SECOND: Final = 1_000_000_000
"""Lists tell times more finely than the answers about one object."""
_PIECE_BYTES: Final = 1024 * 1024


class ObjectSystem:
    """The objects of a bucket; a :class:`~connect.kits.files.systems.system.FileSystem`. Places are keys.

    A folder is whatever ends with a slash in a key, so it need not exist.
    """

    is_local = False
    reads_ranges = True
    files_grow = False

    def __init__(self, address: Address, options: ObjectOptions) -> None:
        self._address = address
        self._options = options

    @cached_property
    def _store(self) -> Any:
        """The store of the whole bucket."""
        return open_store(parse_location(f"{self._address.server}/"), self._options)

    def shown(self, place: str) -> str:
        """Return the URL of an object."""
        return self._address.shown(place)

    def walk(self, folder: str, *, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        """Yield the objects below a prefix."""
        start = f"{folder}/" if folder else ""
        for entry in self._store.entries(start):
            name = entry.path.removeprefix(start)
            folders = name.split("/")[:-1]
            parents = ["/".join(folders[: depth + 1]) for depth in range(len(folders))]
            if name.endswith("/") or is_hidden(name) or any(map(is_hidden, parents)):
                continue
            if not folders or (recursive and all(map(enters, parents))):
                yield FoundFile(name, entry.path, _status_of(entry))

    def beginning(self, start: str, after: str = "") -> Iterator[FoundFile]:
        """Yield the objects whose keys begin with ``start`` and come after ``after``, in order of their keys."""
        for entry in self._store.entries(start, after):
            yield FoundFile(entry.path, entry.path, _status_of(entry))

    def status(self, place: str) -> FileStatus:
        """Return the present state of an object."""
        entry = self._store.entry(place)
        if entry is None:
            raise FileNotFoundError(place)
        return _status_of(entry)

    def open(self, place: str) -> OpenedFile:
        """Open an object; what is read is of this version of it, or nothing."""
        status = self.status(place)

        def read(first: int, size: int) -> bytes:
            return cast("bytes", self._store.read_version(place, status.identity, first, size))

        return OpenedFile(open_ranges(status.size, read), lambda: self.status(place))

    def copy(self, place: str, target: IO[bytes]) -> None:
        """Write the content of an object to a local file."""
        with closing(self.open(place).stream) as stream:
            shutil.copyfileobj(stream, target, _PIECE_BYTES)

    def remove(self, place: str) -> None:
        """Delete an object."""
        self._store.remove(place)

    def move(self, place: str, target: str) -> None:
        """Copy an object, and delete it. After a kill between the two, only the second is done."""
        there, here = self._store.entry(target), self.status(place)
        if there is None:
            self._store.copy(place, target)
        elif there.size != here.size or not self._are_equal(place, target):
            raise FileExistsError(target)
        self._store.remove(place)

    def _are_equal(self, *places: str) -> bool:
        """Whether two objects of one size have the same content."""
        with ExitStack() as held:
            one, other = (held.enter_context(closing(self.open(place).stream)) for place in places)
            while (piece := one.read(_PIECE_BYTES)) == other.read(_PIECE_BYTES):
                if not piece:
                    return True
        return False

    @contextmanager
    def writing(self, place: str) -> Iterator[BinaryIO]:
        """Put an object whole when it is written; it is held in memory until then."""
        stream = io.BytesIO()
        yield stream
        self._store.put(place, stream.getvalue())

    def remove_parts(self, folder: str, start: str) -> None:
        """Do nothing: objects are put whole."""

    def close(self) -> None:
        """Do nothing: the clients close their connections."""


def _status_of(entry: ObjectEntry) -> FileStatus:
    return FileStatus(entry.tag, entry.size, entry.modified_ms // 1000 * _SECOND)

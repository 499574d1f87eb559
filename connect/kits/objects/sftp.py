"""Folders of SFTP servers: files are linked to their names only if absent, and renamed when they are whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, LifoQueue
from typing import BinaryIO, Final

from connect.errors import RetriableError
from connect.hosts import HostRules
from connect.kits.files.systems.address import Address
from connect.kits.files.systems.sftp import SftpAccount, SftpSystem

__all__ = ["SftpFiles"]

_CONNECTIONS: Final = 4
_CONNECTION_SECONDS: Final = 300.0


class SftpFiles:
    """The files below a folder of an SFTP server; an :class:`~connect.kits.objects.store.ObjectStore`.

    Its threads share a few connections, of which each is made when it is first needed. Content is synced where the
    server can; the entries of folders cannot be, over SFTP.
    """

    def __init__(self, address: Address, account: SftpAccount, rules: HostRules) -> None:
        self._address = address
        self._root = address.path.rstrip("/")
        self._idle: LifoQueue[SftpSystem] = LifoQueue()
        for _ in range(_CONNECTIONS):
            self._idle.put(SftpSystem(address, account, rules))

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content; raises :class:`FileExistsError` if the name is taken.

        If the connection is lost, the file may be there and the caller not know it.
        """
        with self._system() as system:
            system.create(self._place(path), data)

    def append(self, path: str, data: bytes | bytearray, position: int) -> None:
        """Add bytes to the end of a file, which has so many already, and is created if that is none.

        Raises :class:`FileNotFoundError` if somebody has removed the file.
        """
        with self._system() as system:
            system.append(self._place(path), data, position)

    def move(self, source: str, target: str) -> None:
        """Give a file its name, in place of another that has it."""
        with self._system() as system:
            system.replace(self._place(source), self._place(target))

    def read(self, path: str) -> bytes:
        """Return the content of a file; raises :class:`FileNotFoundError` if it does not exist."""
        content = io.BytesIO()
        with self._system() as system:
            system.copy(self._place(path), content)
        return content.getvalue()

    def open(self, path: str) -> BinaryIO:
        """Open a file: its content is copied to memory."""
        return io.BytesIO(self.read(path))

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if it does not exist."""
        with self._system() as system, suppress(FileNotFoundError):
            return system.status(self._place(path)).size
        return None

    def names(self, path: str) -> list[str]:
        """List the names in a folder; none if the folder does not exist."""
        with self._system() as system, suppress(FileNotFoundError):
            return [entry.name for entry in system.entries(self._place(path))]
        return []

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the files below a folder, ordered by path, with their sizes."""
        try:
            with self._system() as system:
                entries = system.entries(self._place(path))
        except FileNotFoundError:
            return
        start = f"{path}/" if path else ""
        for entry in sorted(entries, key=lambda entry: entry.name + "/" * entry.is_folder):
            if entry.is_folder:
                yield from self.below(start + entry.name)
            else:
                yield start + entry.name, entry.size

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with self._system() as system, suppress(FileNotFoundError):
            system.remove(self._place(path))

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything below it, if it exists."""
        with self._system() as system:
            _remove_tree(system, self._place(path))

    def close(self) -> None:
        """End the connections that nobody uses."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _place(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    @contextmanager
    def _system(self) -> Iterator[SftpSystem]:
        """Borrow a connection."""
        try:
            system = self._idle.get(timeout=_CONNECTION_SECONDS)
        except Empty:
            raise RetriableError(f"{self._address.server} is slow: all connections are in use.") from None
        try:
            yield system
        finally:
            self._idle.put(system)


def _remove_tree(system: SftpSystem, place: str) -> None:
    """Remove a folder, as far as it is still there."""
    try:
        for entry in system.entries(place):
            if entry.is_folder:
                _remove_tree(system, f"{place}/{entry.name}")
            else:
                with suppress(FileNotFoundError):
                    system.remove(f"{place}/{entry.name}")
        # Something may still be writing into it: the next call removes it then.
        with suppress(RetriableError):
            system.remove_folder(place)
    except FileNotFoundError:
        return

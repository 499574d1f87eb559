"""Threads that read the pieces of a snapshot, each through a connection of its own, with bounded memory."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.snapshots.pieces import PieceRows

__all__ = ["PieceReader", "SnapshotReaders"]

MOST_ROWS: Final = 1000
_MOST_BYTES: Final = 1 << 20
_WAITING_PER_THREAD: Final = 2
_LOOK_S: Final = 0.2

Row: TypeAlias = tuple[Sequence[Any], Key | None]


class PieceReader(Protocol):
    """Reads pieces one after the other, in one thread."""

    def read(self, piece: int) -> Iterator[Row]:
        """Yield the rows of a piece, with their keys in their order if it has one."""

    def cancel(self) -> None:
        """End what the database is doing for :meth:`read` now. Called from another thread."""

    def close(self) -> None:
        """Close the connection."""


class SnapshotReaders:
    """Reads pieces in threads. The reader that ``open_reader`` makes is used by one of them alone.

    ``wake`` is called when there is something to take. At most two batches of a megabyte, or of one row that is larger,
    wait for each thread. ``rows`` is the most that are taken at once.
    """

    def __init__(
        self,
        pieces: int,
        open_reader: Callable[[], PieceReader],
        threads: int,
        wake: Callable[[], None],
        rows: int = MOST_ROWS,
    ) -> None:
        self._open_reader = open_reader
        self._wake = wake
        self._rows = min(rows, MOST_ROWS)
        self._work: queue.SimpleQueue[int] = queue.SimpleQueue()
        for piece in range(pieces):
            self._work.put(piece)
        count = max(1, min(threads, pieces))
        self._read: queue.Queue[PieceRows | Exception] = queue.Queue(count * _WAITING_PER_THREAD)
        self._stops = threading.Event()
        self._readers: list[PieceReader] = []
        self._threads = [threading.Thread(target=self._run, name=f"snapshot-{number}") for number in range(count)]
        for thread in self._threads:
            thread.start()

    def take(self) -> PieceRows | None:
        """Return the next rows, or ``None`` if there are none yet; raise what a reader has raised."""
        try:
            found = self._read.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> None:
        """Stop the threads, and wait until they have ended."""
        self._stops.set()
        for thread in self._threads:
            while thread.is_alive():
                for reader in list(self._readers):
                    reader.cancel()
                thread.join(_LOOK_S)

    # -- in the threads ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            reader = self._open_reader()
        except Exception as error:
            self._put(error)
            return
        self._readers.append(reader)
        try:
            while not self._stops.is_set():
                try:
                    piece = self._work.get_nowait()
                except queue.Empty:
                    return
                self._read_piece(reader, piece)
        except Exception as error:
            self._put(error)
        finally:
            self._readers.remove(reader)
            reader.close()

    def _read_piece(self, reader: PieceReader, piece: int) -> None:
        rows: list[Row] = []
        size = 0
        for row in reader.read(piece):
            rows.append(row)
            size += _size(row[0])
            if len(rows) >= self._rows or size >= _MOST_BYTES:
                if not self._put(PieceRows(piece, rows, is_last=False)):
                    return
                rows, size = [], 0
        self._put(PieceRows(piece, rows, is_last=True))

    def _put(self, found: PieceRows | Exception) -> bool:
        """Hand something over, as soon as there is room; return whether that was before the end."""
        while not self._stops.is_set():
            try:
                self._read.put(found, timeout=_LOOK_S)
            except queue.Full:
                continue
            self._wake()
            return True
        return False


def _size(raw: Sequence[Any]) -> int:
    return sum(map(sys.getsizeof, raw))

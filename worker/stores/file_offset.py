"""The offset store of standalone mode: one file, written whole.

The file is the one Kafka Connect's standalone mode writes, a Java-serialised ``HashMap`` of byte arrays, so that
either can go on where the other stopped. Crash point: a new file is written beside the old one, synced and renamed
over it; a kill at any moment leaves the old offsets or the new ones, never half of them.

One worker at a time has the file: each writes all that it knows, so that a second one would undo what the first has
committed. Who has it holds a lock on a file beside it, which ends with the process however that ends.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from connect.errors import ConnectError
from worker.stores.java_map import read_map, write_map
from worker.stores.offset import OffsetKey, OffsetStore

__all__ = ["FileOffsetStore"]

logger = logging.getLogger(__name__)


class FileOffsetStore(OffsetStore):
    """Keeps offsets in ``file``. Used by one thread.

    Raises :class:`~connect.errors.ConnectError` when the file is there but is not an offsets file, and when another
    worker has it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = self._locked()
        try:
            self._values = self._read()
        except ConnectError:
            self.close()
            raise

    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        return [self._values.get(key) for key in keys]

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        changed: dict[OffsetKey, bytes | None] = {**self._values, **values}
        kept = {key: value for key, value in changed.items() if value is not None}
        self._write(kept)
        self._values = kept

    def items(self) -> Mapping[OffsetKey, bytes]:
        return dict(self._values)

    def close(self) -> None:
        """Leave the file to other workers."""
        if self._lock is not None:
            self._lock.close()

    def _locked(self) -> BinaryIO | None:
        """The lock, held until it is closed; ``None`` where there can be none."""
        place = self._file.absolute().parent / f".{self._file.name}.lock"
        with ExitStack() as stack:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                # Never removed: who had opened it before would hold the lock of a file that is not there.
                lock = stack.enter_context(place.open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConnectError(
                    f"offset.storage.file.filename={self._file} is in use: another worker holds {place}. Stop that "
                    "one, or give each worker an offsets file of its own; they would undo each other's commits."
                ) from None
            except OSError as error:
                logger.warning("%s cannot be locked (%s): see that no other worker uses it.", self._file, error)
                return None
            stack.pop_all()
        return lock

    def _read(self) -> dict[OffsetKey, bytes]:
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConnectError(
                f"offset.storage.file.filename={self._file} cannot be read ({error}). Let the worker's user read "
                "it, or name another file."
            ) from error
        try:
            return read_map(data) if data else {}
        except ValueError as error:
            raise ConnectError(
                f"offset.storage.file.filename={self._file} is not an offsets file ({error}). "
                "Move it away to start without offsets, or name another file."
            ) from error

    def _write(self, values: Mapping[OffsetKey, bytes]) -> None:
        folder = self._file.absolute().parent
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{self._file.name}.new"
        with beside.open("wb") as stream:
            stream.write(write_map(values))
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(self._file)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""The offset store of standalone mode: one file, written whole.

The file is the one Kafka Connect's standalone mode writes, a Java-serialised ``HashMap`` of byte arrays, so that
either can go on where the other stopped. Crash point: a new file is written beside the old one, synced and renamed
over it; a kill at any moment leaves the old offsets or the new ones, never half of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.errors import ConnectError
from worker.stores.java_map import read_map, write_map
from worker.stores.offset import OffsetKey, OffsetStore

__all__ = ["FileOffsetStore"]


class FileOffsetStore(OffsetStore):
    """Keeps offsets in ``file``. Used by one thread.

    Raises :class:`~connect.errors.ConnectError` when the file is there but is not an offsets file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._values = self._read()

    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        return [self._values.get(key) for key in keys]

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        changed: dict[OffsetKey, bytes | None] = {**self._values, **values}
        kept = {key: value for key, value in changed.items() if value is not None}
        self._write(kept)
        self._values = kept

    def items(self) -> Mapping[OffsetKey, bytes]:
        return dict(self._values)

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

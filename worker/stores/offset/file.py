"""The offset store of standalone mode: one file with a serialised Java ``HashMap<byte[], byte[]>``.

The file is replaced as a whole.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

from connect.errors import ConnectError
from worker.stores.offset.store import OffsetKey, OffsetStore

__all__ = ["FileOffsetStore", "read_map", "write_map"]

_HEADER: Final = bytes.fromhex("aced0005")
# TC_OBJECT, TC_CLASSDESC java.util.HashMap with its serialVersionUID, flags and the fields loadFactor and threshold.
_HASH_MAP: Final = (
    b"sr\x00\x11java.util.HashMap"
    + bytes.fromhex("0507dac1c31660d103")
    + b"\x00\x02F\x00\nloadFactorI\x00\tthreshold"
    + b"xp"
)
# TC_CLASSDESC [B with its serialVersionUID; later arrays refer to it by its handle.
_BYTES: Final = b"r\x00\x02[B" + bytes.fromhex("acf317f8060854e002") + b"\x00\x00xp"
_BYTES_AGAIN: Final = b"q\x00~\x00\x02"
_ARRAY: Final = b"u"
_NULL: Final = b"p"
_END: Final = b"x"
_LOAD_FACTOR: Final = 0.75


def write_map(values: Mapping[bytes, bytes]) -> bytes:
    """Serialise a map as Java would."""
    capacity = 16
    while capacity * _LOAD_FACTOR < len(values):
        capacity *= 2
    threshold = int(capacity * _LOAD_FACTOR)
    parts = [_HEADER, _HASH_MAP, struct.pack(">fi", _LOAD_FACTOR, threshold)]
    parts.append(b"w\x08" + struct.pack(">ii", capacity, len(values)))
    described = _BYTES
    for pair in values.items():
        for item in pair:
            parts.append(_ARRAY + described + struct.pack(">i", len(item)) + item)
            described = _BYTES_AGAIN
    parts.append(_END)
    return b"".join(parts)


def read_map(data: bytes) -> dict[bytes, bytes]:
    """Read a map written by Java or by :func:`write_map`.

    Raises ``ValueError``, with the position, for anything else.
    """
    reader = _Reader(data)
    reader.expect(_HEADER, "the header of Java's serialisation")
    reader.expect(_HASH_MAP, "a java.util.HashMap")
    reader.skip(8)
    reader.expect(b"w\x08", "the size of the map")
    reader.skip(4)
    size = reader.integer()
    described = _BYTES
    values: dict[bytes, bytes] = {}
    for _ in range(size):
        pair: list[bytes | None] = []
        for _ in range(2):
            if reader.accept(_NULL):
                pair.append(None)
                continue
            reader.expect(_ARRAY + described, "a byte array")
            pair.append(reader.take(reader.integer()))
            described = _BYTES_AGAIN
        key, value = pair
        if key is not None and value is not None:
            values[key] = value
    reader.expect(_END, "the end of the map")
    return values


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def accept(self, token: bytes) -> bool:
        found = self._data.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def expect(self, token: bytes, what: str) -> None:
        if not self.accept(token):
            raise ValueError(f"{what} was expected at byte {self._at}")

    def skip(self, count: int) -> None:
        self.take(count)

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise ValueError(f"it ends before byte {self._at + max(count, 0)}")
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def integer(self) -> int:
        number: int = struct.unpack(">i", self.take(4))[0]
        return number


logger = logging.getLogger(__name__)


class FileOffsetStore(OffsetStore):
    """Stores offsets in ``file``. Used by one thread.

    Raises :class:`~connect.errors.ConnectError` if the file exists but is not an offsets file, or if another worker
    uses it.
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
        try:
            self._write(kept)
        except OSError as error:
            raise ConnectError(
                f"offset.storage.file.filename={self._file} cannot be written ({error}). Free space, or let the "
                "worker's user write it and its folder."
            ) from error
        self._values = kept

    def items(self) -> Mapping[OffsetKey, bytes]:
        return dict(self._values)

    def close(self) -> None:
        """Release the file for other workers."""
        if self._lock is not None:
            self._lock.close()

    def _locked(self) -> BinaryIO | None:
        """Lock the file until the lock is closed. Return ``None`` if it cannot be locked."""
        place = self._file.absolute().parent / f".{self._file.name}.lock"
        with ExitStack() as stack:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                # Never removed: a worker that had opened it earlier would then hold the lock of a deleted file.
                lock = stack.enter_context(place.open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConnectError(
                    f"offset.storage.file.filename={self._file} is in use: another worker holds {place}. Stop that "
                    "worker, or give each worker its own offsets file; they would undo each other's commits."
                ) from None
            except OSError as error:
                logger.warning("%s cannot be locked (%s): make sure that no other worker uses it.", self._file, error)
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
                f"offset.storage.file.filename={self._file} cannot be read ({error}). Let the worker's user read it, "
                "or name another file."
            ) from error
        try:
            return read_map(data) if data else {}
        except ValueError as error:
            raise ConnectError(
                f"offset.storage.file.filename={self._file} is not an offsets file ({error}). Move it away to start "
                "without offsets, or name another file."
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

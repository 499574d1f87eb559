"""The state after a broker was killed when it had decided a transaction but not yet written its marker to a topic."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["forget_last_marker"]

_HEAD = struct.Struct(">qi")
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21
_CONTROL = 0x20


def forget_last_marker(log: Path) -> None:
    """Cut off the transaction marker at the end of a partition's log while its broker is not running.

    The form is that of record batches, version 2: https://kafka.apache.org/documentation/#recordbatch
    """
    content = log.read_bytes()
    *_, last = _batches(content)
    (attributes,) = _ATTRIBUTES.unpack_from(content, last + _ATTRIBUTES_AT)
    assert attributes & _CONTROL, f"{log} does not end with the end of a transaction"
    log.write_bytes(content[:last])
    for snapshot in log.parent.glob("*.snapshot"):
        snapshot.unlink()


def _batches(content: bytes) -> Iterator[int]:
    """The position of each batch; preallocated space may follow the last one."""
    position = 0
    while position + _HEAD.size <= len(content):
        _, length = _HEAD.unpack_from(content, position)
        if length == 0:
            return
        yield position
        position += _HEAD.size + length

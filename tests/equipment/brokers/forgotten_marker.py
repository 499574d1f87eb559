"""What a broker leaves that was killed when a transaction was decided, and that says so nowhere in a topic."""

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
    """Cut the marker off that ends the log of a partition, whose broker does not run.

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
    """Where each batch begins; behind the last there may be room that is kept for more."""
    position = 0
    while position + _HEAD.size <= len(content):
        _, length = _HEAD.unpack_from(content, position)
        if length == 0:
            return
        yield position
        position += _HEAD.size + length

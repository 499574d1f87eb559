"""The store of source offsets, and the format of its keys and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from connect.data import Offset
from connect.internals.delivery.stored_offsets import (
    OffsetKey,
    check_offset,
    offset_key,
    offset_value,
    parse_offset,
    parse_offset_key,
)

__all__ = [
    "NO_OFFSET_KEY",
    "Offset",
    "OffsetKey",
    "OffsetStore",
    "check_offset",
    "offset_key",
    "offset_value",
    "parse_offset",
    "parse_offset_key",
]

NO_OFFSET_KEY: Final[OffsetKey] = b'["",{}]'
"""The key of a record that belongs to no connector, since no connector has an empty name."""


class OffsetStore(ABC):
    """Keeps the newest offset of each source partition."""

    @abstractmethod
    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        """Return the value of each key, or ``None`` if there is none."""

    @abstractmethod
    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        """Store these values. They survive a crash once this has returned. ``None`` deletes a key."""

    @abstractmethod
    def items(self) -> Mapping[OffsetKey, bytes]:
        """Return all stored values."""

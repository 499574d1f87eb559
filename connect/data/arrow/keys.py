"""Keys of maps: in Python they must be hashable, whatever Connect's key schema allows."""

from __future__ import annotations

from typing import Any

from connect.errors import DataError

__all__ = ["map_key"]


def map_key(value: Any) -> Any:
    """The value as the key of a dict: an array becomes a tuple; maps and structs cannot be keys."""
    if isinstance(value, list):
        return tuple(map_key(item) for item in value)
    if isinstance(value, dict):
        raise DataError(
            "A map whose keys are structs or maps has no Python value: use an array of structs in its place."
        )
    return value

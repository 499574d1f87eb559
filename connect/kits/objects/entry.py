"""What a list of a bucket tells of its objects."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ObjectEntry"]


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """An object: its path below the prefix of the store, its size, and what tells its versions apart."""

    path: str
    size: int
    tag: str
    """The entity tag, or the generation: another one after each write."""
    modified_ms: int

"""A part of a record as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["record_text"]

_LONGEST: Final = 2_000


def record_text(value: Mapping[str, str] | None) -> str:
    """A key or value of a dead letter, as text or in base64, and not longer than a page bears."""
    if value is None:
        return "null"
    text = value["text"] if "text" in value else f"base64: {value['base64']}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text) - _LONGEST:,} more characters)"

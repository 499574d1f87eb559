"""Selection of parts of a JSON value, by JSON pointer (``/data/items``) or JSON path (``$.data.items[*]``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.config import invalid_value, validator
from connect.transforms.fields.json_path import JsonPath

__all__ = ["Selection", "pointer_text", "selection"]

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")


class Selection:
    """Selects parts of a value by pointer or path. As in the Java connector, ``/`` alone is the whole value."""

    def __init__(self, text: str, key: str) -> None:
        self.text = text
        self._path = JsonPath(text, key) if text.startswith("$") else None
        self._names: list[str] = []
        if self._path is None and text not in ("", "/"):
            if not text.startswith("/"):
                raise invalid_value(key, text, "A JSON pointer must begin with /, a JSON path with $")
            if _BAD_ESCAPE.search(text):
                raise invalid_value(key, text, "In a JSON pointer, write ~ as ~0, and / in a name as ~1")
            self._names = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]

    def first(self, value: Any) -> Any:
        """Return the part, or the first of several; ``None`` if there is none."""
        if self._path is not None:
            return next(iter(self._path.select(value)), None)
        for name in self._names:
            if isinstance(value, Mapping):
                value = value.get(name)
            elif isinstance(value, Sequence) and not isinstance(value, str) and _INDEX.fullmatch(name):
                value = value[int(name)] if int(name) < len(value) else None
            else:
                return None
        return value

    def each(self, value: Any) -> list[Any]:
        """Return the selected records: the elements of an array, or a single value; empty if there are none."""
        if self._path is not None:
            found = self._path.select(value)
            return found[0] if len(found) == 1 and isinstance(found[0], list) else found
        part = self.first(value)
        if part is None:
            return []
        return part if isinstance(part, list) else [part]


def selection(text: str | None, key: str) -> Selection | None:
    """Return the selection, or ``None`` if the text is empty."""
    return None if text is None or not text.strip() else Selection(text.strip(), key)


@validator("JSON pointer such as /data/items, or JSON path such as $.data.items[*]")
def pointer_text(key: str, value: str) -> None:
    """Refuse a text that is neither a pointer nor a path."""
    if value.strip():
        Selection(value.strip(), key)

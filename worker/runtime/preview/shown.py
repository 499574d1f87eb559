"""The documents of a preview as they are shown: up to a number of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

__all__ = ["CUT", "MORE", "Showing"]

Document: TypeAlias = dict[str, Any]

MORE: Final = "there may be more"
CUT: Final = f"what is shown has reached its limit of bytes, and {MORE}"
_LONGEST: Final = 100
"""How many characters are left of a text that is cut."""
_MOST: Final = 50
"""How many members and items are left of a value that is cut, on all its levels together."""
_PARTS: Final = ("key", "value", "headers")


class Showing:
    """Gives documents on to ``show``. The one that goes beyond ``most`` bytes is cut short, and is the last."""

    def __init__(self, show: Callable[[Document], None], most: int) -> None:
        self._show = show
        self._left = most

    @property
    def full(self) -> bool:
        """Whether nothing more is shown."""
        return self._left <= 0

    def __call__(self, document: Document) -> None:
        """Show a document, unless there is no room any more."""
        if self.full:
            return
        size = len(orjson.dumps(document))
        self._show(document if size <= self._left else _cut(document))
        self._left -= size


def _cut(document: Document) -> Document:
    """The document of a record or table with its long values cut."""
    if "rows" in document:
        few = [_Cut().of(row) for row in document["rows"][:1]]
        columns = [{**column, "type": _short(column["type"])} for column in document["columns"][:_MOST]]
        return {**document, "folders": document["folders"][:1], "columns": columns, "rows": few, "cut": True}
    steps = [_cut_step(step) for step in document["steps"]]
    return {**document, "origin": _Cut().of(document["origin"]), "steps": steps, "cut": True}


def _cut_step(step: Document) -> Document:
    found = {key: _short(value) if isinstance(value, str) else value for key, value in step.items()}
    if "record" in step:
        record = step["record"]
        whole = {key: _short(value) if isinstance(value, str) else value for key, value in record.items()}
        found["record"] = whole | {part: _Cut().of(record[part]) for part in _PARTS}
    return found


class _Cut:
    """Cuts one value."""

    def __init__(self) -> None:
        self._left = _MOST

    def of(self, value: Any) -> Any:
        """The beginning of a value."""
        match value:
            case str():
                return _short(value)
            case dict():
                return {_short(key): self.of(item) for key, item in value.items() if self._has_room()}
            case list():
                return [self.of(item) for item in value if self._has_room()]
            case _:
                return value

    def _has_room(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"

"""Writes structs that are held by field: the text of each field is made for all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import orjson

from connect.data import Constant, StructColumn
from converters.json.columns import Change
from converters.json.errors import DoubtError
from converters.json.text import dump, needs_escapes

__all__ = ["StructWriter"]

_OPENING: Final = len(b"[\n  ")
_CLOSING: Final = len(b"\n]")
_BETWEEN: Final = b",\n  "


class StructWriter:
    """Writes structs of one schema, whose fields hold no others, between ``prefix`` and ``suffix``."""

    __slots__ = ("_changes", "_names", "_openings", "_suffix")

    def __init__(self, changes: Sequence[tuple[str, Change]], prefix: bytes, suffix: bytes) -> None:
        """``changes`` says for each field what makes of its values what orjson can write."""
        self._names = [name for name, _ in changes]
        self._changes = [change for _, change in changes]
        names = [dump(name) + b":" for name in self._names]
        self._openings = [prefix + b"{" + names[0], *(b"," + name for name in names[1:])]
        self._suffix = b"}" + suffix

    def write(self, column: StructColumn) -> list[bytes | None]:
        """The messages; ``DoubtError`` and orjson's error ask for them one by one."""
        if list(column.fields) != self._names:
            raise DoubtError
        parts: list[Iterable[bytes]] = []
        fixed = b""
        for opening, change, values in zip(self._openings, self._changes, column.fields.values(), strict=True):
            fixed += opening
            if isinstance(values, Constant):
                fixed += _texts(change, [values.value])[0]
            else:
                parts += [repeat(fixed), _texts(change, values)]
                fixed = b""
        fixed += self._suffix
        if not parts:
            return [fixed] * len(column)
        return list(map(b"".join, zip(*parts, repeat(fixed), strict=False)))


def _texts(change: Change, values: Sequence[Any]) -> list[bytes]:
    """The JSON of every value of a field, made as one array and cut apart."""
    nodes = change(values)
    array = orjson.dumps(nodes if isinstance(nodes, list) else list(nodes), option=orjson.OPT_INDENT_2)
    if needs_escapes(array):
        raise DoubtError
    # A line break within a JSON string is written as an escape, so this is found between two values only.
    texts = array[_OPENING:-_CLOSING].split(_BETWEEN)
    if len(texts) != len(values):
        raise DoubtError
    return texts

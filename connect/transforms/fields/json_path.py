"""JSON paths as Jayway's JsonPath understands them, on top of a library for standard JSON paths.

Jayway's filters differ: ``$.customer[?(@.city == 'Oslo')]`` tests the customer itself if it is an object, and its
elements only if it is an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from connect.config import invalid_value
from connect.errors import DataError
from connect.transforms.fields.options import optional_library

__all__ = ["JsonPath"]

_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


class _Stage(NamedTuple):
    """A part of a path: a filter, or a sequence of names and indices."""

    path: Any
    filters: bool

    def select(self, node: object) -> list[Any]:
        if isinstance(node, Mapping):
            return self._find([node]) if self.filters else self._find(node)
        return self._find(node) if isinstance(node, Sequence) and not isinstance(node, (str, bytes)) else []

    def _find(self, node: object) -> list[Any]:
        found: list[Any] = self.path.findall(node)
        return found


class JsonPath:
    """A JSON path given by the option ``key``. Raises :class:`~connect.errors.ConfigError` if it is malformed.

    Requires the extra ``jsonpath``.
    """

    def __init__(self, text: str, key: str) -> None:
        library = optional_library("jsonpath", "jsonpath", key)
        self.text = text
        try:
            self._stages = [_Stage(library.compile(part), filters=part.startswith("$[?")) for part in _parts(text)]
        except (ValueError, library.JSONPathError) as error:
            raise invalid_value(key, text, f"Invalid JSON path: {error}") from error

    def select(self, value: object) -> list[Any]:
        """Return all values that the path selects."""
        return self._through(self._stages, [value])

    def reaches(self, value: object) -> bool:
        """Return whether the path up to its first filter, or the whole path, selects a value that is not null."""
        first = next((index for index, stage in enumerate(self._stages) if stage.filters), len(self._stages))
        return any(node is not None for node in self._through(self._stages[:first], [value]))

    def _through(self, stages: Iterable[_Stage], nodes: list[Any]) -> list[Any]:
        try:
            for stage in stages:
                nodes = [found for node in nodes for found in stage.select(node)]
        except Exception as error:
            raise DataError(f"JSON path {self.text} cannot be applied: {type(error).__name__}: {error}") from error
        return nodes


def _parts(text: str) -> Iterator[str]:
    """Split the path before and after each filter; each part is a path of its own."""
    if not text.startswith("$"):
        raise ValueError("a JSON path begins with $")
    # Jayway allows a dot before a bracket.
    path = re.sub(r"(?<!\.)\.\[", "[", text[1:])
    start = at = 0
    while (at := path.find("[?", at)) >= 0:
        end = _closing(path, at)
        if path[max(at - 2, 0) : at] == "..":
            at = end
            continue
        if path[start:at]:
            yield "$" + path[start:at]
        yield "$" + path[at:end]
        start = at = end
    if path[start:] or start == 0:
        yield "$" + path[start:]


def _closing(path: str, opening: int) -> int:
    """Return the position after the bracket that closes the one at ``opening``."""
    depth, at = 0, opening
    while at < len(path):
        if quoted := _QUOTED.match(path, at):
            at = quoted.end()
            continue
        if path[at] == "\\":
            # An escaped character opens nothing, so an unterminated quote is searched for only once.
            at += 2
            continue
        depth += {"[": 1, "]": -1}.get(path[at], 0)
        at += 1
        if depth == 0:
            return at
    raise ValueError(f"the bracket at {opening + 1} is not closed")

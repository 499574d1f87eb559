"""Fields that are left out of documents, or renamed, as ``field.exclude.list`` and ``field.renames`` say.

A path is DATABASE.COLLECTION.FIELD.FIELD; the first two may have ``*`` for any characters. It leads through
documents and through the documents in arrays. Changes of an update name fields in the same way, with the places of
items of arrays between them, which are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import DataError

__all__ = ["FieldRule", "FieldRules", "parse_exclusion", "parse_rename"]

_LEAST_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What becomes of one field: another name, or none."""

    database: str
    collection: str
    path: tuple[str, ...]
    name: str | None = None

    def applies_to(self, database: str, collection: str) -> bool:
        """Return whether it is about documents of a collection."""
        return _matches(self.database, database) and _matches(self.collection, collection)


def parse_exclusion(text: str) -> FieldRule:
    """Parse an item of ``field.exclude.list``; a ``DataError`` says what is wrong with it."""
    parts = text.strip().split(".")
    if len(parts) < _LEAST_PARTS or not all(parts):
        raise DataError(f"{text} must be DATABASE.COLLECTION.FIELD, with further fields after a dot")
    return FieldRule(parts[0], parts[1], tuple(parts[2:]))


def parse_rename(text: str) -> FieldRule:
    """Parse an item of ``field.renames``; a ``DataError`` says what is wrong with it."""
    path, colon, name = text.strip().rpartition(":")
    if not colon or not name or "." in name:
        raise DataError(f"{text} must be DATABASE.COLLECTION.FIELD:NAME")
    rule = parse_exclusion(path)
    return FieldRule(rule.database, rule.collection, rule.path, name)


class FieldRules:
    """The rules for one collection, as a tree by the names of fields."""

    def __init__(self, rules: Sequence[FieldRule], database: str, collection: str) -> None:
        self._root = _Node()
        for rule in rules:
            if rule.applies_to(database, collection):
                self._root.add(rule)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self._root.inner

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document with its fields as the rules have them."""
        return self._root.document(document)

    def changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an update has set, by the paths of the fields."""
        found: dict[str, Any] = {}
        for path, value in changes.items():
            name, node = self._renamed(path)
            if name is not None:
                found[name] = value if node is None else node.value(value)
        return found

    def names(self, paths: Sequence[str]) -> list[str]:
        """Return the paths of fields that an update has removed or shortened."""
        return [name for path in paths if (name := self.name(path)) is not None]

    def name(self, path: str) -> str | None:
        """Return the path of a field, or nothing if it is left out."""
        return self._renamed(path)[0]

    def _renamed(self, path: str) -> tuple[str | None, _Node | None]:
        """Return a path under its new names, and the rules for what is in the field; no path if it is left out."""
        node: _Node | None = self._root
        names = []
        for part in path.split("."):
            below = None if node is None else node.inner.get(part)
            if below is None and part.isdigit() and node is not self._root:
                names.append(part)
                continue
            if below is not None and below.is_left_out:
                return None, None
            names.append(part if below is None or below.name is None else below.name)
            node = below
        return ".".join(names), node


class _Node:
    """The rules for a field, and for those in it."""

    __slots__ = ("inner", "is_left_out", "name")

    def __init__(self) -> None:
        self.inner: dict[str, _Node] = {}
        self.name: str | None = None
        self.is_left_out = False

    def add(self, rule: FieldRule) -> None:
        node = self
        for part in rule.path:
            node = node.inner.setdefault(part, _Node())
        if rule.name is None:
            node.is_left_out = True
        else:
            node.name = rule.name

    def value(self, value: Any) -> Any:
        if not self.inner:
            return value
        if isinstance(value, Mapping):
            return self.document(value)
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in document.items():
            node = self.inner.get(name)
            if node is None:
                found[name] = value
            elif not node.is_left_out:
                found[node.name or name] = node.value(value)
        return found


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None

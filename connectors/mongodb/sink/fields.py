"""Fields of documents by their paths: projections, which keep or remove fields, new names, and null fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from bson.regex import Regex

from connect.errors import DataError
from connect.internals.java.regex import expand, regex_from_java

__all__ = [
    "Projection",
    "Rename",
    "dotted",
    "equality",
    "field_at",
    "projection",
    "remove_nulls",
    "rename_by_mapping",
    "rename_by_regex",
    "rename_fields",
    "required_document",
]

_Document: TypeAlias = dict[str, Any]
Projection: TypeAlias = Callable[[_Document], None]
"""Removes fields of a document, in place."""
Rename: TypeAlias = Callable[[str, str], str]
"""Returns the new name of a field, given the path of its parent and its name."""


class _Node:
    """A part of the paths of a list: the parts that may follow it, and whether a path ends here."""

    __slots__ = ("ends", "following", "prefixes")

    def __init__(self) -> None:
        self.ends = False
        self.following: dict[str, _Node] = {}
        self.prefixes: list[str] = []

    def add(self, parts: Sequence[str]) -> None:
        if not parts:
            self.ends = True
            return
        first, *others = parts
        if not others and first.endswith("*") and first not in ("*", "**"):
            self.prefixes.append(first[:-1])
            return
        self.following.setdefault(first, _Node()).add(others)


def projection(kind: str, text: str, *, keeps_id: bool = False) -> Projection | None:
    """Return what a projection of a type (allowlist, blocklist or none) removes; ``None`` for nothing.

    With ``keeps_id`` an allow list keeps the field ``_id``, which writing needs.
    """
    paths = [path.strip() for path in text.split(",") if path.strip()]
    root = _Node()
    for path in paths:
        root.add(path.split("."))
    if kind in ("blocklist", "blacklist"):
        return lambda document: _block(document, [root])
    if kind in ("allowlist", "whitelist"):
        if keeps_id:
            root.add(["_id", "**"])
        return lambda document: _allow(document, [root])
    return None


def _steps(nodes: Iterable[_Node], name: str) -> list[_Node]:
    """Return the nodes that a field leads to."""
    return [node.following[part] for node in nodes for part in (name, "*") if part in node.following]


def _has_all(nodes: Iterable[_Node]) -> bool:
    return any("**" in node.following for node in nodes)


def _has_prefix(nodes: Iterable[_Node], name: str) -> bool:
    return any(name.startswith(prefix) for node in nodes for prefix in node.prefixes)


def _allow(document: _Document, nodes: Sequence[_Node]) -> None:
    if _has_all(nodes):
        return
    for name in list(document):
        if _has_prefix(nodes, name):
            continue
        after = _steps(nodes, name)
        if not after:
            del document[name]
            continue
        for inner in _inner(document[name]):
            _allow(inner, after)


def _block(document: _Document, nodes: Sequence[_Node]) -> None:
    if _has_all(nodes):
        document.clear()
        return
    scalars_go = any(node.following["*"].ends for node in nodes if "*" in node.following)
    for name in list(document):
        value = document[name]
        named = any(node.following[name].ends for node in nodes if name in node.following)
        if named or _has_prefix(nodes, name) or (scalars_go and not isinstance(value, dict)):
            del document[name]
            continue
        if after := _steps(nodes, name):
            for inner in _inner(value):
                _block(inner, after)


def _inner(value: Any) -> Iterator[_Document]:
    """Yield the documents in a value: itself, or the elements of an array."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item


def remove_nulls(document: _Document) -> None:
    """Remove fields that are null, in all depths."""
    for name in list(document):
        value = document[name]
        if value is None:
            del document[name]
            continue
        for inner in _inner(value):
            remove_nulls(inner)


def rename_fields(document: _Document, path: str, rename: Rename) -> None:
    """Rename fields in all depths, except in arrays. A field keeps its name where the new one is taken."""
    changed: _Document = {}
    for name in list(document):
        value = document[name]
        new = rename(path, name)
        if new != name and new not in document and new not in changed:
            del document[name]
            changed[new] = value
        else:
            new = name
        if isinstance(value, dict):
            rename_fields(value, f"{path}.{new}", rename)
    document.update(changed)


def rename_by_mapping(items: Iterable[Mapping[str, str]]) -> Rename:
    """Return the renaming of RenameByMapping: the whole path decides."""
    names = {item["oldName"]: item["newName"] for item in items}
    return lambda path, name: names.get(f"{path}.{name}", name)


def rename_by_regex(items: Iterable[Mapping[str, str]]) -> Rename:
    """Return the renaming of RenameByRegExp: every rule whose expression matches the whole path changes the name."""
    rules = [(regex_from_java(item["regexp"]), regex_from_java(item["pattern"]), item["replace"]) for item in items]

    def rename(path: str, name: str) -> str:
        whole = f"{path}.{name}"
        for matches, pattern, replacement in rules:
            if matches.fullmatch(whole):
                name = pattern.sub(lambda match, text=replacement: expand(text, match), name)  # type: ignore[misc]
        return name

    return rename


def dotted(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a document with their dotted paths."""
    for name, value in document.items():
        if isinstance(value, dict) and value:
            yield from ((f"{name}.{below}", leaf) for below, leaf in dotted(value))
        else:
            yield name, value


def field_at(document: Mapping[str, Any] | None, path: str) -> Any:
    """Return the value at a dotted path; ``None`` if there is none."""
    value: Any = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def equality(value: Any) -> Any:
    """Return the condition of a filter that a field equals a value, which is not taken for an operator or a pattern."""
    if isinstance(value, (dict, Regex, re.Pattern)):
        return {"$eq": value}
    return value


def required_document(value: Any, what: str) -> _Document:
    """Return a value that must be a document; a ``DataError`` if it is something else."""
    if not isinstance(value, dict):
        raise DataError(f"{what} must be a document.")
    return value

"""Nesting limits, the same for reading and writing.

orjson reads 1,024 levels and writes 254, and Python's own parser fails when its stack is exhausted. The limits here are
lower than what either parser can read. Values within the limits that orjson cannot write are written without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import orjson

from connect.data import Schema
from connect.errors import DataError

__all__ = [
    "MOST_DEPTH",
    "MOST_SCHEMA_DEPTH",
    "SCHEMA_TOO_DEEP",
    "SURE_BYTES",
    "TOO_DEEP",
    "check_depth",
    "check_depths",
    "check_schema",
    "dump_deep",
]

MOST_DEPTH: Final = 500
"""The maximum nesting depth of arrays and objects in a value."""
SURE_BYTES: Final = 2 * MOST_DEPTH
"""The size in bytes up to which text cannot be nested too deeply, as each level takes two bytes."""
MOST_SCHEMA_DEPTH: Final = 100
"""The maximum nesting depth of schemas."""
_MOST_SCHEMA_PARTS: Final = 100_000
TOO_DEEP: Final = (
    f"The value is nested more than {MOST_DEPTH} levels deep: flatten it, or pass it on as text with the "
    "StringConverter."
)
SCHEMA_TOO_DEEP: Final = f"The schema is nested more than {MOST_SCHEMA_DEPTH} levels deep: flatten it."
_STEPS: Final = [{"[": 1, "{": 1, "]": -1, "}": -1}.get(chr(byte), 0) for byte in range(256)]
_OTHERS: Final = bytes(byte for byte, step in enumerate(_STEPS) if not step)
_CLOSING: Final = frozenset({b"]", b"}"})


def check_depth(text: bytes) -> None:
    """Raise a :class:`~connect.errors.DataError` if valid JSON text is nested too deeply."""
    if len(text) <= SURE_BYTES or text.count(b"[") + text.count(b"{") <= MOST_DEPTH:
        return
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    brackets = b"".join(text.split(b'"')[::2]).translate(None, _OTHERS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MOST_DEPTH:
        raise DataError(TOO_DEEP)


def check_depths(texts: Sequence[bytes]) -> None:
    """Apply :func:`check_depth` to many texts."""
    if max(map(len, texts), default=0) > SURE_BYTES:
        for text in texts:
            check_depth(text)


def check_schema(schema: Schema | None) -> None:
    """Raise a :class:`~connect.errors.DataError` if a schema is nested too deeply or is too large when written out.

    A schema may be used in many places of another, which may itself be used in many places. Each use counts.
    """
    if schema is None:
        return
    sizes: dict[Schema, tuple[int, int]] = {}
    pending = [schema]
    while pending:
        part = pending[-1]
        parts = _parts(part)
        if missing := [other for other in parts if other not in sizes]:
            pending += missing
            continue
        pending.pop()
        depth = 1 + max((sizes[other][0] for other in parts), default=0)
        size = 1 + sum(sizes[other][1] for other in parts)
        if depth > MOST_SCHEMA_DEPTH:
            raise DataError(SCHEMA_TOO_DEEP)
        if size > _MOST_SCHEMA_PARTS:
            raise DataError(f"The schema has more than {_MOST_SCHEMA_PARTS:,} parts when it is written out: divide it.")
        sizes[part] = depth, size


def _parts(schema: Schema) -> list[Schema]:
    parts = [schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields)]
    return [part for part in parts if part is not None]


def dump_deep(node: Any) -> bytes:
    """Return the text that orjson would write for a node without its depth limit.

    Raises orjson's error for a node it cannot write, and :class:`~connect.errors.DataError` for one nested too deeply.
    """
    text: list[bytes] = []
    pending: list[Any] = [node]
    depth = 0
    while pending:
        part = pending.pop()
        kind = part.__class__
        if kind is bytes:
            depth -= part in _CLOSING
            text.append(part)
        elif kind is dict or kind is list:
            depth += 1
            if depth > MOST_DEPTH:
                raise DataError(TOO_DEEP)
            pending += reversed(_object(part) if kind is dict else _array(part))
        else:
            text.append(orjson.dumps(part))
    return b"".join(text)


def _object(node: dict[str, Any]) -> Sequence[Any]:
    """Write the members of an object, with the text between them."""
    parts: list[Any] = [b"{"]
    for name, item in node.items():
        parts += [orjson.dumps(name) + b":", item, b","]
    return [*parts[: -1 if node else None], b"}"]


def _array(node: list[Any]) -> Sequence[Any]:
    parts: list[Any] = [b"["]
    for item in node:
        parts += [item, b","]
    return [*parts[: -1 if node else None], b"]"]

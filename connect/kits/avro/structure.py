"""Properties of an Avro schema as a whole, found in one walk that visits each type once, however often it is used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroSchema

__all__ = ["DEEPEST_SCHEMA", "Facts", "Forms", "Structure", "check_depth"]

DEEPEST_SCHEMA: Final = 200
"""The maximum nesting depth of a schema's JSON. Writing JSON ends at 254 levels, and recursion over types ends at
Python's 1,000 nested calls, of which each type takes about five.
"""

_SMALL: Final = 16
_ENDLESS: Final = 1 << 62
_LEAST: Final = {"null": 0, "float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of one type."""

    height: int
    """The maximum depth of its JSON."""
    expansion: int
    """The number of types it consists of, each counted at every use."""
    least: int
    """The minimum number of bytes that a value takes."""
    values: int
    """For a zero-byte type, the number of values that one value consists of."""


_OPEN: Final = Facts(0, _ENDLESS, 1, 1)
"""The properties assumed for a record within itself."""


class Structure:
    """The properties of all types of a schema. The caller must keep the schema alive."""

    def __init__(self, root: AvroSchema) -> None:
        self._facts: dict[int, Facts] = {}
        self._uses: Counter[int] = Counter()
        order = list(self._walk(root))
        # Types within an unnamed type are used as often as the unnamed type itself.
        for schema in reversed(order):
            if schema.kind != "record" and self._uses[id(schema)] > 1:
                for part in _parts(schema):
                    self._uses[id(part)] += 1

    def of(self, schema: AvroSchema) -> Facts:
        """Return the properties of one type of the schema."""
        return self._facts[id(schema)]

    def is_shared(self, record: AvroSchema) -> bool:
        """Return whether a record should get its own function, because it is used often and too large to be inlined."""
        return self._uses[id(record)] > 1 and self._facts[id(record)].expansion > _SMALL

    def _walk(self, root: AvroSchema) -> Iterator[AvroSchema]:
        """Yield each type once, after the types it contains. No recursion: a schema may be deeper than the stack."""
        facts, uses = self._facts, self._uses
        facts[id(root)] = _OPEN
        stack = [(root, _parts(root))]
        while stack:
            schema, rest = stack[-1]
            part = next(rest, None)
            if part is None:
                stack.pop()
                facts[id(schema)] = _facts_of(schema, facts)
                yield schema
                continue
            uses[id(part)] += 1
            if id(part) not in facts:
                facts[id(part)] = _OPEN
                stack.append((part, _parts(part)))


def check_depth(schema: AvroSchema) -> AvroSchema:
    """Return the schema; raise :class:`~connect.errors.SchemaError` if it is nested too deeply."""
    height = Structure(schema).of(schema).height
    if height > DEEPEST_SCHEMA:
        raise SchemaError(
            f"The Avro schema is nested too deeply: {height} levels of JSON, where {DEEPEST_SCHEMA} are allowed "
            "(three for a record, two for any other type). Flatten it, or read the topic as bytes (ByteArrayConverter)."
        )
    return schema


def _parts(schema: AvroSchema) -> Iterator[AvroSchema]:
    if schema.items is not None:
        return iter((schema.items,))
    return iter(schema.branches) if schema.kind == "union" else (field.schema for field in schema.fields)


def _facts_of(schema: AvroSchema, known: dict[int, Facts]) -> Facts:
    parts = [known[id(part)] for part in _parts(schema)]
    least = _LEAST.get(schema.kind, 1)
    if schema.kind == "record":
        least = sum(part.least for part in parts)
    elif schema.kind == "fixed":
        least = schema.size
    return Facts(
        height=(3 if schema.kind == "record" else 2) + max((part.height for part in parts), default=0),
        expansion=min(1 + sum(part.expansion for part in parts), _ENDLESS),
        least=least,
        values=min(1 + sum(part.values for part in parts), _ENDLESS),
    )


class Forms:
    """Numbers types by content: types that are written alike get the same number. No type may contain itself."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[int, tuple[AvroSchema, int]] = {}

    def number(self, schema: AvroSchema) -> int:
        """Return the number of a type."""
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = schema, self._numbers.setdefault(self._form(schema), len(self._numbers))
        return known[1]

    def _form(self, schema: AvroSchema) -> object:
        fields = tuple(
            (field.name, self.number(field.schema), field.doc, _text(field.default), field.aliases)
            for field in schema.fields
        )
        own = (schema.kind, schema.name, schema.doc, schema.aliases, schema.symbols, schema.enum_default, schema.size)
        parts = [] if schema.kind == "record" else [self.number(part) for part in _parts(schema)]
        return (*own, json.dumps(schema.props), fields, tuple(parts))


def _text(default: Any) -> str | None:
    return None if default is NO_DEFAULT else json.dumps(default)

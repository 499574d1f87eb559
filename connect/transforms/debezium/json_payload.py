"""JSON text in a payload, as a value with a schema that is inferred from it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn

from connect.data import Field, Schema, Type
from connect.data.numerals import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from connect.transforms.debezium.by_logical_table_router import SchemaNames

__all__ = ["JsonPayload"]

_DEEPEST: Final = 200
_NULL: Final = Schema.bytes(optional=True)


class JsonPayload:
    """Parses JSON texts. ``nulls`` says whether a null is left out, or kept as optional bytes."""

    def __init__(self, nulls: Literal["ignore", "optional_bytes"], names: SchemaNames) -> None:
        self._keeps_nulls = nulls == "optional_bytes"
        self._names = names

    def parsed(self, text: str, name: str, *, typed: bool) -> tuple[Schema | None, Any]:
        """Return the schema, if it is to be ``typed``, and the value of a JSON object or array.

        Raises ``ValueError`` if the text is anything else, or if the items of an array have no type in common.
        """
        if not text.startswith(("{", "[")):
            raise ValueError("it is neither an object nor an array")
        try:
            node = json.loads(text, parse_float=_float, parse_constant=_refuse)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not typed:
            return None, node
        schema = self._schema(node, name, 0)
        if schema is None:
            raise ValueError("an array without items has no type")
        return schema, self._value(node, schema)

    def _schema(self, node: Any, name: str, depth: int) -> Schema | None:
        """Return the schema of a node, or ``None`` if it shows none."""
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        match node:
            case None:
                return _NULL if self._keeps_nulls else None
            case dict():
                return self._struct(node, name, depth)
            case list():
                items = self._items(node, name, depth)
                return None if items is None else Schema.array(items, optional=True)
        return _scalar(node)

    def _struct(self, node: dict[str, Any], name: str, depth: int) -> Schema:
        fields: dict[str, Schema] = {}
        for key, item in node.items():
            field = self._names.adjusted(key)
            schema = self._schema(item, f"{name}.{field}" if name else field, depth + 1)
            if schema is not None:
                fields.setdefault(field, schema)
        return Schema.struct(fields, name=name or None, optional=True)

    def _items(self, nodes: Sequence[Any], name: str, depth: int) -> Schema | None:
        common: Schema | None = None
        for node in nodes:
            schema = None if node is None else self._schema(node, name, depth + 1)
            if schema is not None:
                common = schema if common is None else _joined(common, schema)
        return common

    def _value(self, node: Any, schema: Schema) -> Any:
        if node is None:
            return None
        if schema.type is Type.STRUCT:
            given = {self._names.adjusted(key): item for key, item in reversed(node.items())}
            return {field.name: self._value(given.get(field.name), field.schema) for field in schema.fields}
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return [self._value(item, schema.value_schema) for item in node]
        return float(node) if schema.type is Type.FLOAT64 else node


def _scalar(node: Any) -> Schema:
    match node:
        case bool():
            return Schema.boolean(optional=True)
        case str():
            return Schema.string(optional=True)
        case int() if INT32_MIN <= node <= INT32_MAX:
            return Schema.int32(optional=True)
        case int() if INT64_MIN <= node <= INT64_MAX:
            return Schema.int64(optional=True)
        case int():
            raise ValueError("a whole number in it has more than 64 bits")
    return Schema.float64(optional=True)


def _joined(one: Schema, other: Schema) -> Schema:
    """Return the schema of items that have either; raise ``ValueError`` if there is none."""
    if one is other:
        return one
    if one.type is not Type.STRUCT or other.type is not Type.STRUCT:
        raise ValueError(f"the items of an array are of different types, {one.type.name} and {other.type.name}")
    fields = {field.name: field.schema for field in one.fields}
    for field in other.fields:
        known = fields.get(field.name)
        if known is None or known is _NULL:
            fields[field.name] = field.schema
        elif field.schema is not _NULL:
            fields[field.name] = _joined(known, field.schema)
    members = [Field(name, schema, index) for index, (name, schema) in enumerate(fields.items())]
    return one.replace(fields=members)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number in it is too large")
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")

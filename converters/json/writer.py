"""The writer of one schema: writes messages one by one, or a whole column at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import orjson

from connect.data import Column, Constant, Schema, StructColumn, Type
from connect.kits.schema_json import schema_to_json
from converters.json.columns import Change, column_encoder, field_encoders
from converters.json.config import JsonConverterConfig
from converters.json.encode import Encode, encoder
from converters.json.errors import DoubtError
from converters.json.nesting import check_schema
from converters.json.text import as_jackson, dump, needs_escapes

__all__ = ["Writer"]

_CONTAINERS: Final = frozenset({Type.STRUCT, Type.ARRAY, Type.MAP})
_OPENING: Final = len(b"[\n  ")
_CLOSING: Final = len(b"\n]")
_BETWEEN: Final = b",\n  "


class Writer:
    """Writes the values of one schema."""

    __slots__ = ("_encode", "_encode_column", "_head", "_prefix", "_structs", "_suffix", "schema")

    def __init__(self, schema: Schema | None, config: JsonConverterConfig) -> None:
        options: dict[str, Any] = {
            "replace_null": config.replace_null_with_default,
            "decimal_format": config.decimal_format,
        }

        def write_default(of: Schema, default: Any) -> Any:
            return encoder(of, **options)(default)

        check_schema(schema)
        self.schema = schema
        self._encode: Encode = encoder(schema, **options)
        self._encode_column: Change = column_encoder(schema, **options)
        self._prefix, self._suffix = b"", b""
        if config.schemas_enable:
            described = b"null" if schema is None else dump(schema_to_json(schema, write_default))
            self._prefix, self._suffix = b'{"schema":%b,"payload":' % described, b"}"
        self._head = _head(schema)
        self._structs: _StructWriter | None = None
        if schema is not None and self._head is not None:
            self._structs = _StructWriter(field_encoders(schema, **options), self._prefix, self._suffix)

    def write(self, value: Any) -> bytes:
        """Return the message of one value.

        Raises :class:`~connect.errors.DataError` if it does not match the schema.
        """
        return self._prefix + dump(self._encode(value)) + self._suffix

    def write_column(self, column: Column) -> Sequence[bytes | None]:
        """Return the messages of many values.

        Raises ``DoubtError`` or orjson's error if they cannot be written together; the caller then writes them one by
        one.
        """
        if isinstance(column, StructColumn) and self._structs is not None:
            return self._structs.write(column)
        values = column.values()
        nodes = self._encode_column(values)
        if (cut := self._written_together(nodes)) is not None:
            return cut
        payloads = list(map(orjson.dumps, nodes))
        if needs_escapes(b"".join(payloads)):
            payloads = list(map(as_jackson, payloads))
        prefix, suffix = self._prefix, self._suffix
        if not prefix:
            # The bytes returned by orjson have up to a kilobyte of spare capacity each; a copy has none.
            texts = [memoryview(payload).tobytes() for payload in payloads]
        else:
            texts = [prefix + payload + suffix for payload in payloads]
        if self.schema is None and None in values:
            return [None if value is None else text for value, text in zip(values, texts, strict=True)]
        return texts

    def _written_together(self, nodes: Sequence[Any]) -> list[bytes] | None:
        """Write flat structs as one array and cut it apart, at half the cost of writing each.

        Return ``None`` if a value is null, or if text in it needs Jackson's escapes.
        """
        head = self._head if self.schema is not None else _head_of(nodes)
        if head is None:
            return None
        array = orjson.dumps(nodes)
        if not array.startswith(b"[" + head) or needs_escapes(array):
            return None
        # Schemaless structs may contain structs. Those show up as braces, as may text.
        if self.schema is None and array.count(b"{") != len(nodes):
            return None
        # Quotes within JSON strings are preceded by a backslash, so this occurs only between two structs.
        payloads = array[len(head) + 1 : -2].split(b"}," + head)
        if len(payloads) != len(nodes):
            return None
        opening, closing = self._prefix + head, b"}" + self._suffix
        return [opening + payload + closing for payload in payloads]


def _head(schema: Schema | None) -> bytes | None:
    """Return the first bytes of every struct of a schema, if it has fields and all of them are scalars."""
    if schema is None or schema.type is not Type.STRUCT or not schema.fields:
        return None
    if any(field.schema.type in _CONTAINERS for field in schema.fields):
        return None
    return b"{%b:" % dump(schema.fields[0].name)


def _head_of(nodes: Sequence[Any]) -> bytes | None:
    """Return the first bytes of the first node's JSON, if it is an object with members."""
    first = nodes[0] if nodes else None
    return b"{%b:" % dump(next(iter(first))) if first.__class__ is dict and first else None


class _StructWriter:
    """Writes structs of a columnar batch by producing the texts of each field for all structs at once.

    The fields are scalars. Each struct is placed between ``prefix`` and ``suffix``.
    """

    __slots__ = ("_changes", "_names", "_openings", "_suffix")

    def __init__(self, changes: Sequence[tuple[str, Change]], prefix: bytes, suffix: bytes) -> None:
        """``changes`` has for each field the function that turns its values into nodes for orjson."""
        self._names = [name for name, _ in changes]
        self._changes = [change for _, change in changes]
        names = [dump(name) + b":" for name in self._names]
        self._openings = [prefix + b"{" + names[0], *(b"," + name for name in names[1:])]
        self._suffix = b"}" + suffix

    def write(self, column: StructColumn) -> list[bytes | None]:
        """Return the messages. ``DoubtError`` and orjson's error mean that they must be written one by one."""
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
    """Return the JSON of every value of a field, written as one array and cut apart."""
    nodes = change(values)
    array = orjson.dumps(nodes if isinstance(nodes, list) else list(nodes), option=orjson.OPT_INDENT_2)
    if needs_escapes(array):
        raise DoubtError
    # A line break within a JSON string is escaped, so this occurs only between two values.
    texts = array[_OPENING:-_CLOSING].split(_BETWEEN)
    if len(texts) != len(values):
        raise DoubtError
    return texts

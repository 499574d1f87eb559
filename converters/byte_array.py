"""Bytes as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from connect.data import Column, Schema, SchemaAndValue, Type, ValueColumn
from connect.errors import DataError
from converters.universal import ConverterConfig, UniversalConverter

__all__ = ["ByteArrayConverter"]

_BYTES: Final = Schema.bytes(optional=True)


class ByteArrayConverter(UniversalConverter[ConverterConfig]):
    """Passes bytes through untouched, with the schema of optional bytes. All but bytes and null is refused."""

    passes_bytes = True

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The bytes of ``value``; a :class:`~connect.errors.DataError` when it, or its schema, is of another type."""
        _check_schema(schema)
        if value is None or value.__class__ is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise DataError(
            f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}: "
            "give it bytes or choose the converter of that type."
        )

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """The bytes themselves."""
        return SchemaAndValue(_BYTES, data)

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """The bytes of every value of a column; errors as in :meth:`from_connect`."""
        values = column.values()
        _check_schema(column.schema)
        if {*map(type, values)} <= {bytes, type(None)}:
            return values
        return super().from_connect_column(topic, column)

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:  # noqa: ARG002
        """One column of the bytes themselves."""
        return [ValueColumn(data, _BYTES)] if data else []


def _check_schema(schema: Schema | None) -> None:
    if schema is not None and schema.type is not Type.BYTES:
        raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")

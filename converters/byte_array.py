"""The converter that passes bytes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from connect.data import Column, Schema, SchemaAndValue, Type, ValueColumn
from connect.errors import DataError
from converters.universal import ConverterConfig, UniversalConverter

__all__ = ["ByteArrayConverter"]

_BYTES: Final = Schema.bytes(optional=True)


class ByteArrayConverter(UniversalConverter[ConverterConfig]):
    """Passes bytes through unchanged, with the schema of optional bytes. Rejects anything but bytes and null."""

    passes_bytes = True

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return ``value``. Raises :class:`~connect.errors.DataError` if it or its schema is not of type bytes."""
        _check_schema(schema)
        if value is None or value.__class__ is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise DataError(
            f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}: "
            "give it bytes, or use a converter for that type."
        )

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the bytes unchanged."""
        return SchemaAndValue(_BYTES, data)

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the values of a column; errors as in :meth:`from_connect`."""
        values = column.values()
        _check_schema(column.schema)
        if {*map(type, values)} <= {bytes, type(None)}:
            return values
        return super().from_connect_column(topic, column)

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:  # noqa: ARG002
        """Return one column with the bytes unchanged."""
        return [ValueColumn(data, _BYTES)] if data else []


def _check_schema(schema: Schema | None) -> None:
    if schema is not None and schema.type is not Type.BYTES:
        raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")

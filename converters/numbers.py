"""Converters for booleans and numbers in the format of Kafka's serializers: one byte, or big-endian and fixed-width."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from connect.data import Column, Schema, SchemaAndValue, Type, ValueColumn
from connect.errors import DataError
from converters.universal import ConverterConfig, UniversalConverter

__all__ = [
    "BooleanConverter",
    "DoubleConverter",
    "FloatConverter",
    "IntegerConverter",
    "LongConverter",
    "ShortConverter",
]

_BOOLEAN: Final = Schema.boolean(optional=True)


class BooleanConverter(UniversalConverter[ConverterConfig]):
    """Converts booleans to one byte, 0 or 1, and back, with the schema of an optional boolean."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the byte of ``value``; raise :class:`~connect.errors.DataError` if it or its schema is not boolean."""
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if value is True:
            return b"\x01"
        if value is False:
            return b"\x00"
        raise DataError(f"BooleanConverter is not compatible with objects of type {type(value).__name__}")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the boolean in one byte; raise :class:`~connect.errors.DataError` unless it is 0 or 1."""
        if data is None:
            return SchemaAndValue(_BOOLEAN, None)
        if len(data) != 1 or data[0] > 1:
            raise DataError(f"Failed to deserialize boolean: expected one byte, 0 or 1, but got {_abridged(data)}.")
        return SchemaAndValue(_BOOLEAN, data[0] == 1)


class _NumberConverter(UniversalConverter[ConverterConfig]):
    """Converts numbers of fixed width to big-endian bytes and back, with the schema of that optional number."""

    kind: ClassVar[str]
    layout: ClassVar[struct.Struct]
    carrier: ClassVar[type] = int
    schema: ClassVar[Schema]

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the bytes of ``value``; raise :class:`~connect.errors.DataError` if it or its schema does not fit."""
        if value is None:
            return None
        if schema is not None and schema.type is not self.schema.type:
            raise DataError(f"Failed to serialize to {self.kind} (was {schema.type.name}): cast the value first")
        try:
            return self.layout.pack(self._checked(value))
        except (struct.error, OverflowError, TypeError) as error:
            shown = f"{value!r:.40}" if isinstance(value, (int, float)) else type(value).__name__
            raise DataError(f"Failed to serialize to {self.kind} (was {shown}): {error}") from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the number; raise :class:`~connect.errors.DataError` if ``data`` has another width."""
        if data is None:
            return SchemaAndValue(self.schema, None)
        if len(data) != self.layout.size:
            raise DataError(
                f"Failed to deserialize {self.kind}: expected {self.layout.size} bytes but got {_abridged(data)}."
            )
        return SchemaAndValue(self.schema, self.layout.unpack(data)[0])

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the bytes of every number in a column; errors as in :meth:`from_connect`."""
        values, schema, size = column.values(), column.schema, self.layout.size
        fitting = schema is None or schema.type is self.schema.type
        if fitting and set(map(type, values)) == {self.carrier}:
            try:
                packed = struct.pack(f">{len(values)}{self.layout.format[1]}", *values)
                return [packed[start : start + size] for start in range(0, len(packed), size)]
            except (struct.error, OverflowError):
                pass  # the row method finds the offending value
        return super().from_connect_column(topic, column)

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return one column of numbers; errors as in :meth:`to_connect`."""
        if set(map(type, data)) == {bytes} and set(map(len, data)) == {self.layout.size}:  # type: ignore[arg-type]
            packed = b"".join(data)  # type: ignore[arg-type]
            return [ValueColumn(struct.unpack(f">{len(data)}{self.layout.format[1]}", packed), self.schema)]
        return super().to_connect_column(topic, data)

    def _checked(self, value: Any) -> Any:
        if isinstance(value, bool):
            raise TypeError("a boolean is not a number; use the BooleanConverter")
        return value


class ShortConverter(_NumberConverter):
    """Converts 16-bit integers."""

    kind, layout, schema = "short", struct.Struct(">h"), Schema.int16(optional=True)


class IntegerConverter(_NumberConverter):
    """Converts 32-bit integers."""

    kind, layout, schema = "integer", struct.Struct(">i"), Schema.int32(optional=True)


class LongConverter(_NumberConverter):
    """Converts 64-bit integers."""

    kind, layout, schema = "long", struct.Struct(">q"), Schema.int64(optional=True)


class _FloatingConverter(_NumberConverter):
    """Converts floating point numbers, and integers that a float of this width represents exactly."""

    carrier = float

    def _checked(self, value: Any) -> Any:
        number = super()._checked(value)
        if isinstance(number, int) and int(self.layout.unpack(self.layout.pack(number))[0]) != number:
            raise TypeError(f"it cannot be held exactly; pass a float to have it rounded to a {self.kind}")
        if not isinstance(number, (int, float)):
            raise TypeError("it is neither a float nor an int")
        return number


class FloatConverter(_FloatingConverter):
    """Converts floating point numbers of single precision.

    Python floats are rounded to single precision, and rejected if too large for it.
    """

    kind, layout, schema = "float", struct.Struct(">f"), Schema.float32(optional=True)


class DoubleConverter(_FloatingConverter):
    """Converts floating point numbers of double precision."""

    kind, layout, schema = "double", struct.Struct(">d"), Schema.float64(optional=True)


def _abridged(data: bytes) -> str:
    return f"{len(data)} bytes ({data[:16].hex()}{'...' if len(data) > 16 else ''})"

"""Headers as text from which the type is inferred: Kafka Connect's default for headers."""

from __future__ import annotations

from typing import Any

from connect.converter import HeaderConverter
from connect.data import Schema, SchemaAndValue
from connect.data.values import convert_to_string, parse_string
from connect.errors import DataError
from converters.universal import ConverterConfig

__all__ = ["SimpleHeaderConverter"]


class SimpleHeaderConverter(HeaderConverter[ConverterConfig]):
    """Writes a value as text and infers the type from the text: ``12`` is a number, ``[1,2]`` an array.

    Text of no other type is a string. Text that looks like a number comes back as one, and bytes that
    are not UTF-8 come back with U+FFFD in their place, as in Kafka Connect; where that matters, use the
    StringConverter or the ByteArrayConverter for headers.
    """

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The text in UTF-8; a :class:`~connect.errors.DataError` if the value has none."""
        text = convert_to_string(schema, value)
        try:
            return None if text is None else text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f'The header "{key}" is no Unicode text: {error.reason}. Use bytes instead.') from error

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """The value that the text stands for, with its schema; never fails."""
        return parse_string(None if data is None else data.decode(errors="replace"))

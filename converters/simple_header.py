"""The header converter that infers types from text: Kafka Connect's default for headers."""

from __future__ import annotations

from typing import Any

from connect.converter import HeaderConverter
from connect.data import Schema, SchemaAndValue
from connect.data.values import convert_to_string, parse_literal
from connect.errors import DataError
from converters.universal import ConverterConfig

__all__ = ["SimpleHeaderConverter"]


class SimpleHeaderConverter(HeaderConverter[ConverterConfig]):
    """Writes values as text and infers the type when reading: ``12`` is a number, ``[1,2]`` an array.

    Text of no other type is a string, and so is text that would be written back in another way, but for the blanks in
    arrays and maps: ``10:30``, ``007``, ``[007]``. As in Kafka Connect, other text that looks like a number is read as
    one, and bytes that are not UTF-8 are replaced with U+FFFD; if that matters, use the StringConverter or the
    ByteArrayConverter for headers.
    """

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the text in UTF-8; raise :class:`~connect.errors.DataError` if the value has no text."""
        text = convert_to_string(schema, value)
        try:
            return None if text is None else text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f'The header "{key}" is not valid Unicode text: {error.reason}. Use bytes instead.'
            ) from error

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the value that the text represents, with its schema. Never fails."""
        return SchemaAndValue(None, None) if data is None else parse_literal(data.decode(errors="replace"))

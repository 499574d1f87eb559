"""The converter for text: strings are written unchanged, other values as Java's ``toString`` would print them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from connect.config import HIGH, option
from connect.data import Column, Lazy, Schema, SchemaAndValue, ValueColumn
from connect.errors import ConfigError, DataError
from connect.internals.java.value_text import value_text
from converters.universal import ConverterConfig, UniversalConverter

__all__ = ["StringConverter", "StringConverterConfig"]

_STRING: Final = Schema.string(optional=True)
_UTF_8: Final = frozenset({"utf8", "utf-8", "utf_8"})
_UTF_16: Final = frozenset({"utf16", "utf-16", "utf_16"})
_BIG_ENDIAN_MARK: Final = b"\xfe\xff"
_LITTLE_ENDIAN_MARK: Final = b"\xff\xfe"


class StringConverterConfig(ConverterConfig):
    """Options of the string converter."""

    converter_encoding: str = option(
        default="UTF-8",
        importance=HIGH,
        doc="The character set of the text, such as UTF-8, UTF-16 or ISO-8859-1.",
    )


class StringConverter(UniversalConverter[StringConverterConfig]):
    """Writes the text of any value, and reads text with the schema of an optional string.

    As in Kafka Connect, bytes that are malformed in the character set are read as U+FFFD; use the ByteArrayConverter
    for bytes that are not text.
    """

    def __init__(self, config: StringConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._encoding = config.converter_encoding
        self._is_utf_8 = self._encoding.lower() in _UTF_8
        self._is_utf_16 = self._encoding.lower() in _UTF_16
        try:
            "".encode(self._encoding)
        except (LookupError, ValueError) as error:
            reason = "the character set is unknown; use UTF-8, UTF-16 or ISO-8859-1, for example"
            raise ConfigError("converter.encoding", self._encoding, reason) from error

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the encoded text; raise :class:`~connect.errors.DataError` if the character set cannot express it."""
        if value is None:
            return None
        text = value if isinstance(value, str) else value_text(schema, value)
        try:
            if self._is_utf_16:
                return _BIG_ENDIAN_MARK + text.encode("utf-16-be")
            return text.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise DataError(f"The text cannot be written in {self._encoding}: {error}") from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the decoded text."""
        return SchemaAndValue(_STRING, None if data is None else self._decode(data))

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the encoded text of every value in a column; errors as in :meth:`from_connect`."""
        values = column.values()
        if self._is_utf_8 and {*map(type, values)} == {str}:
            try:
                return list(map(str.encode, values))
            except UnicodeEncodeError:
                pass  # the row method finds the offending value
        return super().from_connect_column(topic, column)

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:  # noqa: ARG002
        """Return one column of texts. Those in UTF-8, none of which is refused, are made when they are read: keys often
        are not."""
        if not data:
            return []
        texts = Lazy(len(data), partial(self._texts, data))
        return [ValueColumn(texts if self._is_utf_8 else texts.values(), _STRING)]

    def _texts(self, data: Sequence[bytes | None]) -> list[str | None]:
        if self._is_utf_8:
            try:
                return list(map(bytes.decode, data))  # type: ignore[arg-type]
            except (TypeError, UnicodeDecodeError):
                pass  # null or malformed text: converted record by record
        return [None if item is None else self._decode(item) for item in data]

    def _decode(self, data: bytes) -> str:
        if not self._is_utf_16:
            return data.decode(self._encoding, "replace")
        if data.startswith(_LITTLE_ENDIAN_MARK):
            return data[2:].decode("utf-16-le", "replace")
        return data.removeprefix(_BIG_ENDIAN_MARK).decode("utf-16-be", "replace")

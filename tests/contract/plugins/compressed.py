"""A converter in twenty lines: texts that are compressed on the topic."""

import zlib
from typing import Any

from connect.config import LOW, Config, between, option
from connect.converter import Converter
from connect.data import Schema, SchemaAndValue
from connect.errors import DataError


class CompressedConfig(Config):
    """How to compress."""

    level: int = option(default=6, importance=LOW, validator=between(1, 9), doc="From 1, fast, to 9, small.")


class CompressedConverter(Converter[CompressedConfig]):
    """Compresses texts with zlib."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise DataError(f"Only texts can be compressed, not a {type(value).__name__}.")
        return zlib.compress(value.encode(), self.config.level)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        try:
            text = None if data is None else zlib.decompress(data).decode()
        except (zlib.error, UnicodeDecodeError) as error:
            raise DataError(f"The bytes are not a compressed text: {error}") from error
        return SchemaAndValue(Schema.string(optional=True), text)

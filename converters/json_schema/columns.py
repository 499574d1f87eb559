"""Decodes JSON with a JSON Schema straight into Arrow arrays, many messages at a time. Importing this needs pyarrow.

pyarrow's reader is used for structs of what it reads as the decoder by row does. That decoder is the specification: it
reads all messages of a call in which any is unusual, and every message of schemas with unions, maps, JSON of any type
or floats of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from connect.data import Schema, Type
from connect.data.arrow import to_array
from converters.json.arrow import ArrowReader
from converters.json.errors import DoubtError
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.conventions import is_any, is_union
from converters.json_schema.decode import json_decoder
from converters.registry.codecs import Decode

__all__ = ["JsonColumns"]


class JsonColumns:
    """The decoder for the messages of one schema."""

    def __init__(self, schema: Schema, config: JsonSchemaConverterConfig, decode: Decode, header: int) -> None:
        """Take the schema, its decoder by row, and the size of the messages' headers."""
        self._header = header
        self._schema = schema
        self._decode = decode
        self._reader: ArrowReader | None = None
        if not config.json_fail_invalid_schema and _is_plain(schema) and ArrowReader.can_read(schema):
            decoder_of = partial(json_decoder, config=config)
            self._reader = ArrowReader(schema, decoder_of, replace_null=not config.ignore_default_for_nullables)

    @property
    def is_fast(self) -> bool:
        """Whether pyarrow reads the messages."""
        return self._reader is not None

    def read(self, messages: Sequence[bytes]) -> Any:
        """Return the values of messages, headers included, as an Arrow array of the schema's type.

        Raises :class:`~connect.errors.DataError` for the first malformed message, or if Arrow cannot hold a value.
        """
        if self._reader is not None and messages:
            try:
                return self._reader.read([message[self._header :] for message in messages])
            except DoubtError:
                pass  # the other decoder knows which message is unusual
        return to_array(self._decode(messages), self._schema)

    def read_array(self, messages: Any) -> Any:
        """Return the values of an Arrow array of messages, none of which is null; errors as in :meth:`read`."""
        return self.read(messages.to_pylist())


def _is_plain(schema: Schema) -> bool:
    """Return whether JSON has the shape of the schema, and pyarrow reads its numbers alike."""
    # pyarrow rounds the text of a float, while the decoder by row, like Java, rounds what 64 bits hold of it.
    if is_union(schema) or is_any(schema) or schema.type is Type.FLOAT32:
        return False
    parts = (schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields))
    return all(part is None or _is_plain(part) for part in parts)

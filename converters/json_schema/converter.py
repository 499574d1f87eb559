"""The JSON Schema converter, and JSON Schema as a format of a schema registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar

import orjson

from connect.data import Schema
from connect.errors import DataError
from connect.kits.schema_frame import header as frame
from converters.json.nesting import check_depth
from converters.json.text import as_jackson, dump, is_brief, parse_exactly
from converters.json_schema.config import JsonSchemaConverterConfig
from converters.json_schema.decode import json_decoder, needs_exact_numbers
from converters.json_schema.document import JsonSchema
from converters.json_schema.encode import json_encoder
from converters.json_schema.from_connect import json_schema_from_connect
from converters.json_schema.to_connect import connect_from_json_schema
from converters.registry import RegisteredSchema, RegistryClient
from converters.registry.codecs import ArrowDecoder, Decode, Encode, Reader, SchemaFormat, Written
from converters.registry.converter import RegistryConverter

__all__ = ["JsonSchemaConverter"]


class JsonSchemaFormat(SchemaFormat[JsonSchema]):
    """JSON Schema, as these options map it."""

    kind: ClassVar[str] = "JSON"
    title: ClassVar[str] = "JSON Schema"

    def __init__(self, config: JsonSchemaConverterConfig) -> None:
        self._config = config

    def written(self, schema: Schema | None) -> Written[JsonSchema]:
        """Translate the schema of values to be written."""
        document = json_schema_from_connect(schema, self._config, self._default)
        text = orjson.dumps(document).decode()
        return Written(JsonSchema(text), text)

    def _default(self, schema: Schema, value: Any) -> Any:
        return json_encoder(schema.replace(default=None), self._config)(value)

    def parsed(self, registered: RegisteredSchema, registry: RegistryClient) -> JsonSchema:
        """Parse a schema of the registry."""
        references = registry.references(registered)
        return JsonSchema(registered.text, references, ignores_modern_dialects=self._config.ignore_modern_dialects)

    def record_name(self, schema: JsonSchema, header: bytes) -> str | None:  # noqa: ARG002
        """Return the title of a schema."""
        return schema.title

    def check_readable(self, written: Written[JsonSchema], target: JsonSchema) -> None:
        """Accept any schema: each value is validated against the target instead, which is more exact."""

    def encoder(
        self,
        schema: Schema | None,
        written: Written[JsonSchema],  # noqa: ARG002
        target: JsonSchema,
        schema_id: int,
        *,
        strict: bool,
    ) -> Encode:
        """Return the encoder of values, which are validated against the target if it was chosen in the registry."""
        assert schema is not None
        encode_node, prefix = json_encoder(schema, self._config), frame(schema_id)
        validates, indents = strict or self._config.json_fail_invalid_schema, self._config.json_indent_output

        def encode(values: Sequence[Any]) -> list[bytes]:
            messages = []
            for value in values:
                try:
                    node = encode_node(value)
                    text = as_jackson(orjson.dumps(node, option=orjson.OPT_INDENT_2)) if indents else dump(node)
                    if validates:
                        target.check(orjson.loads(text))
                except RecursionError as error:
                    raise DataError("The value cannot be written as JSON: it is nested too deeply") from error
                messages.append(prefix + text)
            return messages

        return encode

    def reader(self, writer: JsonSchema, target: JsonSchema, version: int | None, header: bytes) -> Reader:  # noqa: ARG002
        """Return the reader of messages, which are JSON whatever schema they were written in."""
        schema = connect_from_json_schema(target, self._config, version)
        decode_node = json_decoder(schema.as_optional(), self._config)
        parse = _parse_exactly if needs_exact_numbers(schema) else _parse
        validates, start = self._config.json_fail_invalid_schema, len(header)

        def decode(messages: Sequence[bytes]) -> list[Any]:
            values = []
            for message in messages:
                payload = message[start:]
                node = parse(payload)
                if validates:
                    target.check(orjson.loads(payload))
                values.append(decode_node(node))
            return values

        return Reader(schema, decode, cache(partial(_columns, schema, self._config, decode, start)))


class JsonSchemaConverter(RegistryConverter[JsonSchemaConverterConfig]):
    """Writes and reads JSON with JSON Schemas in a Confluent-compatible schema registry.

    A message is a zero byte, the id of the schema in four bytes, and the JSON. Any other message raises a
    :class:`~connect.errors.DataError`; a registry that does not respond raises a
    :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: JsonSchemaConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, JsonSchemaFormat(config), config.schemas_cache_config, is_key=is_key)


def _columns(schema: Schema, config: JsonSchemaConverterConfig, decode: Decode, header: int) -> ArrowDecoder:
    # pyarrow is loaded only where columns are read.
    from converters.json_schema.columns import JsonColumns  # noqa: PLC0415

    return JsonColumns(schema, config, decode, header)


def _parse(payload: bytes) -> Any:
    try:
        node = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise DataError(f"The message is not valid JSON after the id of its schema: {error}") from error
    check_depth(payload)
    return node


def _parse_exactly(payload: bytes) -> Any:
    node = _parse(payload)
    return node if is_brief(payload) else parse_exactly(payload)

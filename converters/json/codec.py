"""What the converter keeps for each schema: its decoder and encoder, and the bytes it begins the envelope with."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from connect.data import Column, Schema, StructColumn, Type
from converters.json.columns import (
    Change,
    DoubtError,
    column_decoder,
    column_encoder,
    field_encoders,
    has_long_numbers,
)
from converters.json.config import JsonConverterConfig
from converters.json.decode import Decode, decoder
from converters.json.encode import Encode, encoder
from converters.json.schema import schema_from_json, schema_to_json
from converters.json.struct_column import StructWriter
from converters.json.text import as_jackson, dump, needs_escapes, parse_exactly

if TYPE_CHECKING:
    import pyarrow as pa

    from converters.json.arrow import ArrowReader

__all__ = ["Codecs", "Reader", "Writer"]

_CONTAINERS: Final = frozenset({Type.STRUCT, Type.ARRAY, Type.MAP})
_PAYLOAD: Final = re.compile(rb'"payload"\s*:[ \t\r\n]*')


class Reader:
    """How payloads of one schema are read."""

    __slots__ = ("_arrow_reader", "_decode", "_decode_column", "_replace_null", "schema")

    def __init__(self, schema: Schema | None, replace_null: bool) -> None:
        self.schema = schema
        self._replace_null = replace_null
        self._arrow_reader: ArrowReader | None = None
        self._decode: Decode = decoder(schema, replace_null=replace_null)
        self._decode_column: Change = column_decoder(schema, replace_null=replace_null)

    def read(self, payload: bytes) -> Any:
        """The value of JSON text that is as it should be.

        ``InexactError`` and orjson's error ask for an exact reading, a :class:`~connect.errors.DataError` is final.
        """
        node = orjson.loads(payload)
        if self.schema is None and not has_long_numbers(payload):
            return node
        return self._decode(node)

    def decode(self, node: Any) -> Any:
        """The value of JSON that was read exactly; a :class:`~connect.errors.DataError` if there is none."""
        return self._decode(node)

    def read_column(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        """The values of many JSON texts; ``DoubtError`` when they have to be read one by one."""
        try:
            nodes = list(map(orjson.loads, payloads))
        except orjson.JSONDecodeError as error:
            raise DoubtError from error
        if self.schema is None and not has_long_numbers(b"\n".join(payloads)):
            return nodes
        return self._decode_column(nodes)

    def read_arrow(self, payloads: Sequence[bytes]) -> pa.Array[Any]:
        """The values of many JSON texts in Arrow; ``DoubtError`` when they have to be read one by one."""
        if self._arrow_reader is None:
            from converters.json.arrow import ArrowReader  # noqa: PLC0415 - pyarrow is optional

            if self.schema is None or not ArrowReader.can_read(self.schema):
                raise DoubtError
            self._arrow_reader = ArrowReader(self.schema, replace_null=self._replace_null)
        return self._arrow_reader.read(payloads)


class Writer:
    """How values of one schema are written."""

    __slots__ = ("_encode", "_encode_column", "_head", "_prefix", "_structs", "_suffix", "schema")

    def __init__(self, schema: Schema | None, config: JsonConverterConfig) -> None:
        options: dict[str, Any] = {
            "replace_null": config.replace_null_with_default,
            "decimal_format": config.decimal_format,
        }

        def write_default(of: Schema, default: Any) -> Any:
            return encoder(of, **options)(default)

        self.schema = schema
        self._encode: Encode = encoder(schema, **options)
        self._encode_column: Change = column_encoder(schema, **options)
        self._prefix, self._suffix = b"", b""
        if config.schemas_enable:
            described = b"null" if schema is None else dump(schema_to_json(schema, write_default))
            self._prefix, self._suffix = b'{"schema":%b,"payload":' % described, b"}"
        self._head = _head(schema)
        self._structs: StructWriter | None = None
        if schema is not None and self._head is not None:
            self._structs = StructWriter(field_encoders(schema, **options), self._prefix, self._suffix)

    def write(self, value: Any) -> bytes:
        """The message of one value; a :class:`~connect.errors.DataError` when it is not what the schema says."""
        return self._prefix + dump(self._encode(value)) + self._suffix

    def write_column(self, column: Column) -> Sequence[bytes | None]:
        """The messages of many values; ``DoubtError`` and orjson's error ask for them one by one."""
        if isinstance(column, StructColumn) and self._structs is not None:
            return self._structs.write(column)
        values = column.values()
        nodes = self._encode_column(values)
        if self._head is not None and (cut := self._written_together(self._head, nodes)) is not None:
            return cut
        payloads = list(map(orjson.dumps, nodes))
        if needs_escapes(b"".join(payloads)):
            payloads = list(map(as_jackson, payloads))
        prefix, suffix = self._prefix, self._suffix
        if not prefix:
            # What orjson gives has room to grow, a kilobyte each; a copy has not.
            texts = [memoryview(payload).tobytes() for payload in payloads]
        else:
            texts = [prefix + payload + suffix for payload in payloads]
        if self.schema is None and None in values:
            return [None if value is None else text for value, text in zip(values, texts, strict=True)]
        return texts

    def _written_together(self, head: bytes, nodes: Sequence[Any]) -> list[bytes] | None:
        """The messages of flat structs, written as one array and cut apart: half the cost of writing each.

        ``None`` if there is a null among them, or text that Jackson escapes otherwise.
        """
        array = orjson.dumps(nodes)
        if not array.startswith(b"[" + head) or needs_escapes(array):
            return None
        # In a JSON string a backslash stands before a quote, so this is found between two structs only.
        payloads = array[len(head) + 1 : -2].split(b"}," + head)
        if len(payloads) != len(nodes):
            return None
        opening, closing = self._prefix + head, b"}" + self._suffix
        return [opening + payload + closing for payload in payloads]


def _head(schema: Schema | None) -> bytes | None:
    """What the JSON of every struct of a schema begins with, if the struct has fields and none holds others."""
    if schema is None or schema.type is not Type.STRUCT or not schema.fields:
        return None
    if any(field.schema.type in _CONTAINERS for field in schema.fields):
        return None
    return b"{%b:" % orjson.dumps(schema.fields[0].name)


class Codecs:
    """The readers and writers of the schemas seen last, ``schemas.cache.size`` of each at most."""

    def __init__(self, config: JsonConverterConfig) -> None:
        self._config = config
        self._size = max(config.schemas_cache_size, 1)
        self._by_prefix: OrderedDict[bytes, Reader] = OrderedDict()
        self.reader: Callable[[Schema | None], Reader] = lru_cache(self._size)(self._new_reader)
        self.writer: Callable[[Schema | None], Writer] = lru_cache(self._size)(self._new_writer)

    def schema(self, node: Any) -> Schema | None:
        """The schema that parsed JSON describes; a :class:`~connect.errors.DataError` if it describes none."""
        return schema_from_json(node, self._read_default)

    def reader_of(self, data: bytes) -> tuple[bytes, Reader] | None:
        """The bytes a message begins with, up to its payload, and the reader of the schema in them.

        ``None`` when the message does not begin with ``{"schema":`` a schema ``,"payload":``.
        """
        for match in _PAYLOAD.finditer(data):
            prefix = data[: match.end()]
            reader = self._by_prefix.get(prefix) or self._learned(prefix)
            if reader is not None:
                self._by_prefix[prefix] = reader
                self._by_prefix.move_to_end(prefix)
                if len(self._by_prefix) > self._size:
                    self._by_prefix.popitem(last=False)
                return prefix, reader
        return None

    def _learned(self, prefix: bytes) -> Reader | None:
        """The reader for a prefix not met before, if it is one: then a null payload and a brace make it whole."""
        try:
            envelope = orjson.loads(prefix + b"null}")
        except orjson.JSONDecodeError:
            return None
        if envelope.__class__ is not dict or list(envelope) != ["schema", "payload"]:
            return None
        return self.reader(self.schema(parse_exactly(prefix + b"null}")["schema"]))

    def _new_reader(self, schema: Schema | None) -> Reader:
        return Reader(schema, self._config.replace_null_with_default)

    def _new_writer(self, schema: Schema | None) -> Writer:
        return Writer(schema, self._config)

    def _read_default(self, schema: Schema, node: Any) -> Any:
        return decoder(schema, replace_null=self._config.replace_null_with_default)(node)

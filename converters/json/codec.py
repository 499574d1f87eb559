"""What the converter keeps for each schema: its decoder and encoder, and the bytes it begins the envelope with."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import orjson

from connect.data import Column, Schema, StructColumn, Type
from connect.errors import DataError
from converters.json.columns import Change, column_decoder, column_encoder, field_encoders, has_long_numbers
from converters.json.config import JsonConverterConfig
from converters.json.decode import Decode, decoder
from converters.json.encode import Encode, encoder
from converters.json.envelope import Envelope, Frame
from converters.json.errors import DoubtError, InexactError
from converters.json.nesting import SURE_BYTES, check_depth, check_depths, check_schema
from converters.json.schema import schema_from_json, schema_to_json
from converters.json.struct_column import StructWriter
from converters.json.text import WHITE_SPACE, as_jackson, dump, is_brief, needs_escapes

if TYPE_CHECKING:
    import pyarrow as pa

    from converters.json.arrow import ArrowReader

__all__ = ["Codecs", "Reader", "Writer"]

_CONTAINERS: Final = frozenset({Type.STRUCT, Type.ARRAY, Type.MAP})
_PAYLOAD: Final = re.compile(rb'"payload"[ \t\r\n]*:[ \t\r\n]*')
_MOST_TRIES: Final = 4


class Reader:
    """How payloads of one schema are read.

    orjson gives floats where the text may say more. As long as none stands where that matters, nothing else is needed.
    From then on the text is looked at: if its numbers are brief, the floats tell what they were. If not, the payload is
    read exactly.
    """

    __slots__ = (
        "_arrow_reader",
        "_decode",
        "_decode_brief",
        "_decode_brief_column",
        "_decode_column",
        "_replace_null",
        "schema",
    )

    def __init__(self, schema: Schema | None, replace_null: bool) -> None:
        self.schema = schema
        self._replace_null = replace_null
        self._arrow_reader: ArrowReader | None = None
        self._decode: Decode = decoder(schema, replace_null=replace_null)
        self._decode_column: Change = column_decoder(schema, replace_null=replace_null)
        self._decode_brief: Decode | None = None
        self._decode_brief_column: Change | None = None

    def read(self, payload: bytes) -> Any:
        """The value of JSON text that is as it should be.

        ``InexactError`` and orjson's error ask for an exact reading, a :class:`~connect.errors.DataError` is final.
        """
        node = orjson.loads(payload)
        if len(payload) > SURE_BYTES:
            check_depth(payload)
        if self.schema is None:
            return self._decode(node) if has_long_numbers(payload) else node
        if self._decode_brief is not None and is_brief(payload):
            return self._decode_brief(node)
        try:
            return self._decode(node)
        except InexactError:
            if self._decode_brief is not None or not is_brief(payload):
                raise
        self._decode_brief = decoder(self.schema, replace_null=self._replace_null, brief=True)
        return self._decode_brief(orjson.loads(payload))

    def decode(self, node: Any) -> Any:
        """The value of JSON that was read exactly; a :class:`~connect.errors.DataError` if there is none."""
        return self._decode(node)

    def read_column(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        """The values of many JSON texts; ``DoubtError`` when they have to be read one by one."""
        nodes = _parsed(payloads)
        if self.schema is None:
            return self._decode_column(nodes) if has_long_numbers(b"\n".join(payloads)) else nodes
        if self._decode_brief_column is not None and is_brief(b"\n".join(payloads)):
            return self._decode_brief_column(nodes)
        try:
            return self._decode_column(nodes)
        except DoubtError:
            if self._decode_brief_column is not None or not is_brief(b"\n".join(payloads)):
                raise
        self._decode_brief_column = column_decoder(self.schema, replace_null=self._replace_null, brief=True)
        return self._decode_brief_column(_parsed(payloads))

    def read_arrow(self, payloads: Sequence[bytes]) -> pa.Array[Any]:
        """The values of many JSON texts in Arrow; ``DoubtError`` when they have to be read one by one."""
        if self._arrow_reader is None:
            from converters.json.arrow import ArrowReader  # noqa: PLC0415 - pyarrow is optional

            if self.schema is None or not ArrowReader.can_read(self.schema):
                raise DoubtError
            self._arrow_reader = ArrowReader(self.schema, replace_null=self._replace_null)
        return self._arrow_reader.read(payloads)


def _parsed(payloads: Sequence[bytes]) -> list[Any]:
    try:
        nodes = list(map(orjson.loads, payloads))
        check_depths(payloads)
    except (orjson.JSONDecodeError, DataError) as error:
        raise DoubtError from error
    return nodes


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

        check_schema(schema)
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
        if (cut := self._written_together(nodes)) is not None:
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

    def _written_together(self, nodes: Sequence[Any]) -> list[bytes] | None:
        """The messages of flat structs, written as one array and cut apart: half the cost of writing each.

        ``None`` if there is a null among them, or text that Jackson escapes otherwise.
        """
        head = self._head if self.schema is not None else _head_of(nodes)
        if head is None:
            return None
        array = orjson.dumps(nodes)
        if not array.startswith(b"[" + head) or needs_escapes(array):
            return None
        # Without a schema there may be structs in a struct. They have braces, as text may have.
        if self.schema is None and array.count(b"{") != len(nodes):
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
    return b"{%b:" % dump(schema.fields[0].name)


def _head_of(nodes: Sequence[Any]) -> bytes | None:
    """What the JSON of the first of some nodes begins with, if it is an object with members."""
    first = nodes[0] if nodes else None
    return b"{%b:" % dump(next(iter(first))) if first.__class__ is dict and first else None


class Codecs:
    """The readers and writers of the schemas seen last, ``schemas.cache.size`` of each at most."""

    def __init__(self, config: JsonConverterConfig) -> None:
        self._config = config
        self._size = max(config.schemas_cache_size, 1)
        self._frames: OrderedDict[bytes, Frame] = OrderedDict()
        self.reader: Callable[[Schema | None], Reader] = lru_cache(self._size)(self._new_reader)
        self.writer: Callable[[Schema | None], Writer] = lru_cache(self._size)(self._new_writer)

    def schema(self, node: Any) -> Schema | None:
        """The schema that parsed JSON describes; a :class:`~connect.errors.DataError` if it describes none."""
        return schema_from_json(node, self._read_default)

    def frame_of(self, message: bytes, last: Frame) -> tuple[Frame, bytes] | None:
        """The frame of a message and its payload, if one like it was learned; it is likely to be the last one."""
        if (payload := last.payload(message)) is not None:
            return last, payload
        for key in _likely_keys(message):
            frame = self._frames.get(key)
            if frame is not None and (payload := frame.payload(message)) is not None:
                self._frames.move_to_end(key)
                return frame, payload
        return None

    def learned(self, envelope: Envelope) -> tuple[Reader, Frame | None]:
        """The reader of an envelope, and the frame by which others like it will be known."""
        if envelope.opening is None:
            return self.reader(self.schema(envelope.schema)), None
        key = envelope.opening if envelope.closing == b"}" else envelope.closing
        known = self._frames.get(key)
        reader = self.reader(self.schema(envelope.schema)) if known is None else known.reader
        frame = self._frames[key] = Frame(envelope.opening, envelope.closing, reader)
        self._frames.move_to_end(key)
        if len(self._frames) > self._size:
            self._frames.popitem(last=False)
        return reader, frame

    def _new_reader(self, schema: Schema | None) -> Reader:
        return Reader(schema, self._config.replace_null_with_default)

    def _new_writer(self, schema: Schema | None) -> Writer:
        return Writer(schema, self._config)

    def _read_default(self, schema: Schema, node: Any) -> Any:
        return decoder(schema, replace_null=self._config.replace_null_with_default)(node)


def _likely_keys(message: bytes) -> Iterator[bytes]:
    """What the frame of a message may be kept under: the bytes up to the payload, or those that follow it.

    These words may be in the payload and in the schema as well. A few of them are tried; a message that has more of
    them is read whole.
    """
    for match in islice(_PAYLOAD.finditer(message), _MOST_TRIES):
        yield message[: match.end()]
    message = message.rstrip(WHITE_SPACE)
    start = len(message)
    for _ in range(_MOST_TRIES):
        start = message.rfind(b'"schema"', 0, start)
        before = message[: max(start, 0)].rstrip(WHITE_SPACE)
        if not before:
            return
        yield message[len(before) - 1 :]

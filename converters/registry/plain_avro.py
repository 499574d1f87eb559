"""Messages of Avro as all but Confluent's serializers write them: bytes that are the whole value have their length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from connect.data import Schema
from connect.errors import DataError
from connect.kits.avro.avro_schema import AvroSchema
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import decoder
from connect.kits.avro.encode import encoder
from connect.kits.avro.to_connect import connect_from_avro
from connect.kits.avro.wire_format import varint
from connect.kits.schema_frame import HEADER
from converters.registry.codecs import ArrowDecoder, Decode, Encode, Reader

__all__ = ["Change", "avro_reader", "avro_writer"]

Change = Callable[[bytes], bytes]
"""Makes another message of one."""


def avro_writer(
    schema: Schema | None, avro: AvroSchema, config: AvroDataConfig, frame: bytes, pack: Change | None = None
) -> Encode:
    """Return the encoder of values as messages that begin with this frame; ``pack`` is applied to what follows it."""
    encode, is_bytes = encoder(schema, avro, 0, config), avro.kind == "bytes"

    def write(values: Sequence[Any]) -> list[bytes]:
        bodies = (message[HEADER:] for message in encode(values))
        if is_bytes:
            bodies = (varint(len(body) << 1) + body for body in bodies)
        if pack is not None:
            bodies = (pack(body) for body in bodies)
        return [frame + body for body in bodies]

    return write


def avro_reader(
    writer: AvroSchema, config: AvroDataConfig, frame: int, name: Callable[[bytes], str], unpack: Change | None = None
) -> Reader:
    """Return the reader of messages whose frame has this size, after ``unpack`` has been applied to each.

    ``name`` tells for errors what a message names its schema by.
    """
    schema = connect_from_avro(writer, config, None)
    decode = decoder(writer, writer, schema, config, frame, name)
    opens = [] if unpack is None else [unpack]
    if writer.kind == "bytes":
        opens.append(partial(_without_length, frame))
    columns = None if schema is None else cache(partial(_columns, writer, schema, config, decode, frame, opens))
    return Reader(schema, partial(_decoded, decode, opens) if opens else decode, columns)


def _columns(
    avro: AvroSchema, schema: Schema, config: AvroDataConfig, decode: Decode, frame: int, opens: Sequence[Change]
) -> ArrowDecoder:
    # numpy and pyarrow are loaded only where columns are read.
    from connect.kits.avro.columns import column_decoder  # noqa: PLC0415

    made = column_decoder(avro, avro, schema, config, decode, frame)
    return _OpeningDecoder(made, opens) if opens else made


class _OpeningDecoder:
    """Decodes messages that are opened first."""

    def __init__(self, decoder: ArrowDecoder, opens: Sequence[Change]) -> None:
        self._decoder = decoder
        self._opens = opens
        self.is_fast = decoder.is_fast

    def read(self, messages: Sequence[bytes]) -> Any:
        """Decode a list of messages."""
        return self._decoder.read(_opened(self._opens, messages))

    def read_array(self, messages: Any) -> Any:
        """Decode an Arrow array of messages."""
        return self.read(messages.to_pylist())


def _decoded(decode: Decode, opens: Sequence[Change], messages: Sequence[bytes]) -> list[Any]:
    return decode(_opened(opens, messages))


def _opened(opens: Sequence[Change], messages: Sequence[bytes]) -> list[bytes]:
    found = list(messages)
    for each in opens:
        found = [each(message) for message in found]
    return found


def _without_length(frame: int, message: bytes) -> bytes:
    """Return a message of bytes alone without their length, which Confluent's form omits."""
    size, shift, at = 0, 0, frame
    while at < len(message) and shift < 63:
        byte = message[at]
        size |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            if size & 1 or size >> 1 != len(message) - at:
                break
            return message[:frame] + message[at:]
    raise DataError("The message is damaged: the length of its bytes is not that of what follows.")

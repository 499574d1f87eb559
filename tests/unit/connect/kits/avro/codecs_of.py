"""Encoders and decoders without a registry, and what mutations make of messages."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from connect.data import Schema
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.avro_text import avro_text
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.decode import Decode, decoder
from connect.kits.avro.encode import Encode, encoder
from connect.kits.avro.from_connect import avro_from_connect
from connect.kits.avro.to_connect import connect_from_avro

__all__ = ["SCRUBBING", "avro_of", "mutated", "read_with", "reader_of", "text_of", "writer_of"]

SCRUBBING = AvroDataConfig(scrub_invalid_names=True)


def text_of(schema: Schema | None, **options: Any) -> str:
    """The text of the Avro schema of a Connect schema."""
    return avro_text(avro_from_connect(schema, AvroDataConfig(**options)))


def avro_of(schema: Schema | None, config: AvroDataConfig = SCRUBBING) -> AvroSchema:
    """The Avro schema of a Connect schema, as it comes back from a registry."""
    return parse_avro(avro_text(avro_from_connect(schema, config)))


def writer_of(schema: Schema | None, config: AvroDataConfig = SCRUBBING) -> Encode:
    """The encoder of a schema, whose id is 7."""
    return encoder(schema, avro_of(schema, config), 7, config)


def reader_of(avro: AvroSchema, config: AvroDataConfig = SCRUBBING) -> tuple[Schema | None, Decode]:
    """The Connect schema of an Avro schema, and its decoder."""
    schema = connect_from_avro(avro, config)
    return schema, decoder(avro, avro, schema, config)


def read_with(writer: Any, reader: Any, message: bytes, **options: Any) -> Any:
    """What a message written in one Avro schema is in another, both given as texts."""
    config = AvroDataConfig(**options)
    target = parse_avro(reader)
    return decoder(parse_avro(writer), target, connect_from_avro(target, config), config)([message])[0]


@st.composite
def mutated(draw: st.DrawFn, message: bytes) -> bytes:
    """The message with bytes changed, left out, doubled or added after the header; sometimes as it was."""
    body = bytearray(message[5:])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(len(body) - 1, 0)))
        match draw(st.sampled_from(["flip", "cut", "drop", "insert", "append", "huge"])):
            case "flip" if body:
                body[place] = draw(st.integers(0, 255))
            case "cut":
                del body[place:]
            case "drop" if body:
                del body[place]
            case "insert":
                body.insert(place, draw(st.integers(0, 255)))
            case "append":
                body += draw(st.binary(min_size=1, max_size=4))
            case "huge":
                body[place : place + 1] = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    return message[:5] + bytes(body)

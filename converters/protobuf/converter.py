"""The Protobuf converter, and Protobuf as a format of a schema registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, ClassVar

from connect.data import Schema, Type
from connect.errors import DataError, SchemaError
from connect.kits.schema_frame import frame_size
from connect.kits.schema_frame import header as frame
from converters.json.errors import UnfitError, WrongTypeError
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.conventions import WRAPPERS
from converters.protobuf.encode import Fill, filler, scalar_filler
from converters.protobuf.from_connect import declaration_of
from converters.protobuf.proto_schema import ProtoSchema, index_bytes, message_class, read_indexes
from converters.protobuf.to_connect import Read, reading_of
from converters.registry import RegisteredSchema, RegistryClient
from converters.registry.codecs import ArrowDecoder, Decode, Encode, Reader, SchemaFormat, Written
from converters.registry.converter import RegistryConverter

__all__ = ["ProtobufConverter"]


class ProtobufFormat(SchemaFormat[ProtoSchema]):
    """Protobuf, as these options map it."""

    kind: ClassVar[str] = "PROTOBUF"
    title: ClassVar[str] = "Protobuf"
    first_type: ClassVar[bytes] = b"\0"
    follows_latest: ClassVar[bool] = True

    def __init__(self, config: ProtobufConverterConfig) -> None:
        self._config = config

    def header(self, message: bytes) -> bytes:
        """Return the id of the schema and the indexes of the message's type."""
        start = frame_size(message)
        if len(message) < start or message[0] > 1:
            return message
        return message[: read_indexes(message, start)[1]]

    # -- writing -------------------------------------------------------------------------------------------------

    def written(self, schema: Schema | None) -> Written[ProtoSchema]:
        """Translate the schema of values to be written."""
        declaration = declaration_of(schema, self._config)
        return Written(ProtoSchema(declaration.text, root=declaration.root), declaration.text)

    def following(
        self, schema: Schema | None, written: Written[ProtoSchema], latest: ProtoSchema
    ) -> Written[ProtoSchema]:
        """Translate a schema so that its fields keep the numbers they have in the latest one."""
        earlier = latest.named(written.parsed.root.full_name)
        if earlier is None or schema is None or schema.type is not Type.STRUCT:
            return written
        declaration = declaration_of(schema, self._config, earlier)
        if declaration.text == written.text:
            return written
        return Written(ProtoSchema(declaration.text, root=declaration.root), declaration.text)

    def check_readable(self, written: Written[ProtoSchema], target: ProtoSchema) -> None:
        """Accept any schema: building the encoder checks that each field has its place in the target."""

    def encoder(
        self,
        schema: Schema | None,
        written: Written[ProtoSchema],
        target: ProtoSchema,
        schema_id: int,
        *,
        strict: bool,  # noqa: ARG002
    ) -> Encode:
        """Return the encoder of values as messages of the type in the target that has the name of their own."""
        assert schema is not None
        message = _own(written.parsed, target)
        made = message_class(message)
        make_filler = scalar_filler if message.full_name in WRAPPERS else filler
        fill = make_filler(schema, message, self._config)
        prefix = frame(schema_id) + index_bytes(message)

        def encode(values: Sequence[Any]) -> list[bytes]:
            return [prefix + _serialized(made, _filled(made(), fill, value, schema)) for value in values]

        return encode

    # -- reading -------------------------------------------------------------------------------------------------

    def parsed(self, registered: RegisteredSchema, registry: RegistryClient) -> ProtoSchema:
        """Parse a schema of the registry."""
        return ProtoSchema(registered.text, registry.references(registered))

    def record_name(self, schema: ProtoSchema, header: bytes) -> str | None:
        """Return the full name of the message that the header names, of the one that is written if there is none."""
        message = schema.message(read_indexes(header, frame_size(header))[0]) if header else schema.root
        name: str = message.full_name
        return name

    def reader(self, writer: ProtoSchema, target: ProtoSchema, version: int | None, header: bytes) -> Reader:
        """Return the reader of messages. Their bytes are read in the target's message of the same name."""
        message = writer.message(read_indexes(header, frame_size(header))[0])
        if target is not writer:
            name = message.full_name
            message = target.named(name)
            if message is None:
                raise SchemaError(f"The latest Protobuf schema has no message {name}, of which messages are read.")
        reading = reading_of(message, self._config, version)
        made = message_class(message)
        read, start = reading.read, len(header)

        def decode(messages: Sequence[bytes]) -> list[Any]:
            return [_read(made, read, each[start:]) for each in messages]

        columns = cache(partial(_columns, message, reading.schema, self._config, decode, start))
        return Reader(reading.schema, decode, columns)


class ProtobufConverter(RegistryConverter[ProtobufConverterConfig]):
    """Writes and reads Protobuf with schemas in a Confluent-compatible schema registry.

    A message is a zero byte, the id of the schema in four bytes, the indexes of the message's type in its file, and the
    value. A message that is damaged raises a :class:`~connect.errors.DataError`; a registry that does not respond
    raises a :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: ProtobufConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, ProtobufFormat(config), config.schemas_cache_config, is_key=is_key)


def _columns(
    message: Any, schema: Schema, config: ProtobufConverterConfig, decode: Decode, header: int
) -> ArrowDecoder:
    # numpy and pyarrow are loaded only where columns are read.
    from converters.protobuf.columns import column_decoder  # noqa: PLC0415

    return column_decoder(message, schema, config, decode, header)


def _own(written: ProtoSchema, target: ProtoSchema) -> Any:
    if target is written:
        return written.root
    name = written.root.full_name
    found = target.named(name)
    if found is not None:
        return found
    messages = list(target.file.message_types_by_name.values())
    # Unless enhanced.protobuf.schema.support is set, what was read has the name of its message without the package.
    alike = [] if "." in name else [message for message in _all_within(messages) if message.name == name]
    if len(alike) == 1:
        return alike[0]
    if len(messages) == 1:
        return messages[0]
    raise SchemaError(
        f"The Protobuf schema has no message {name}, the name of the value's schema: give it the name of a message "
        "(SetSchemaMetadata)."
    )


def _all_within(messages: Iterable[Any]) -> Iterator[Any]:
    for message in messages:
        yield message
        yield from _all_within(message.nested_types)


def _filled(message: Any, fill: Fill, value: Any, schema: Schema) -> Any:
    try:
        fill(message, value)
    except WrongTypeError as error:
        raise UnfitError(f"{type(value).__name__} where {schema.type.name} is expected{error.reason}") from None
    except UnicodeEncodeError as error:
        raise DataError(f"The value cannot be written as Protobuf: {error}") from error
    return message


def _serialized(made: Any, message: Any) -> bytes:
    from google.protobuf.message import EncodeError  # noqa: PLC0415 - the package is optional

    try:
        data: bytes = made.SerializeToString(message)
    except EncodeError as error:
        # What proto2 calls required is not there.
        raise DataError(f"The value cannot be written as Protobuf: {error}") from error
    return data


def _read(made: Any, read: Read, payload: bytes) -> Any:
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - as above

    try:
        message = made.FromString(payload)
    except DecodeError as error:
        name = made.DESCRIPTOR.full_name
        raise DataError(f"The message is not a valid Protobuf message of the type {name}: it is damaged.") from error
    try:
        return read(message)
    except UnicodeDecodeError as error:
        name = made.DESCRIPTOR.full_name
        raise DataError(f"The Protobuf message of the type {name} has text that is not UTF-8: {error}") from error

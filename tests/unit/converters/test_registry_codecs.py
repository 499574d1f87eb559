"""What converters with a registry remember of a schema: also that it cannot be used, which takes long to find out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect.errors import DataError, RetriableError, SchemaError
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.converter import ProtobufFormat
from converters.protobuf.proto_schema import ProtoSchema
from converters.registry import RegisteredSchema, RegistryClient
from converters.registry.codecs import Codecs, remembering
from equipment.fakes.schema_registry import MemoryRegistry, serving

INVALID = 'syntax = "proto3"; message M { Missing field = 1; }'


class CountingFormat(ProtobufFormat):
    """Protobuf that counts how often it compiles a schema."""

    compiled = 0

    def parsed(self, registered: RegisteredSchema, registry: RegistryClient) -> ProtoSchema:
        self.compiled += 1
        return super().parsed(registered, registry)


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


@pytest.fixture
def form(memory: MemoryRegistry) -> CountingFormat:
    return CountingFormat(config_for(memory))


@pytest.fixture
def codecs(memory: MemoryRegistry, form: CountingFormat) -> Iterator[Codecs[ProtoSchema]]:
    config = config_for(memory)
    client = RegistryClient(config)
    yield Codecs(form, config, client, 10, is_key=False)
    client.close()


def config_for(memory: MemoryRegistry) -> ProtobufConverterConfig:
    return ProtobufConverterConfig(schema_registry_url=(memory.url,), max_retries=0)


def header(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0"


def test_a_schema_that_cannot_be_compiled_is_compiled_once(
    memory: MemoryRegistry, form: CountingFormat, codecs: Codecs[ProtoSchema]
) -> None:
    schema_id = memory.add("t-value", INVALID, schemaType="PROTOBUF")
    texts = set()
    for _ in range(3):
        with pytest.raises(SchemaError, match="Missing") as caught:
            codecs.reader("t", header(schema_id))
        texts.add(str(caught.value))
    assert (form.compiled, len(texts)) == (1, 1)


def test_a_registry_that_is_away_is_asked_again(
    memory: MemoryRegistry, form: CountingFormat, codecs: Codecs[ProtoSchema]
) -> None:
    schema_id = memory.add("t-value", 'syntax = "proto3"; message M { int32 a = 1; }', schemaType="PROTOBUF")
    memory.troubles.extend([503])
    with pytest.raises(RetriableError):
        codecs.reader("t", header(schema_id))
    assert codecs.reader("t", header(schema_id)).decode([header(schema_id) + b"\x08\x05"]) == [{"a": 5}]
    assert form.compiled == 1


def test_an_unknown_id_is_asked_for_again(memory: MemoryRegistry, codecs: Codecs[ProtoSchema]) -> None:
    with pytest.raises(DataError):
        codecs.reader("t", header(1))
    memory.add("t-value", 'syntax = "proto3"; message M { int32 a = 1; }', schemaType="PROTOBUF")
    assert codecs.reader("t", header(1)).schema is not None


def test_each_refusal_is_an_error_of_its_own() -> None:
    def refuse(name: str) -> None:
        raise SchemaError(name)

    remembered = remembering(2, refuse)
    errors = []
    for name in ("a", "a", "b"):
        with pytest.raises(SchemaError) as caught:
            remembered(name)
        errors.append(caught.value)
    assert [str(error) for error in errors] == ["a", "a", "b"]
    assert errors[0] is not errors[1]

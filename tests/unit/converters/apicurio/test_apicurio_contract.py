"""The converters for Apicurio Registry keep the contract of converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from connect.data import Schema, SchemaAndValue, ValueColumn
from connect.testing import ConverterTests
from converters.apicurio import ApicurioAvroConverter, ExtJsonConverter
from equipment.fakes.apicurio import MemoryApicurio

REGISTERS = {"apicurio.registry.auto-register": "true"}


class TestAvro(ConverterTests):
    """Avro, with ids before the data."""

    converter_class = ApicurioAvroConverter

    @pytest.fixture
    def props(self, memory: MemoryApicurio) -> Mapping[str, str]:
        return {**REGISTERS, "apicurio.registry.url": memory.url, "scrub.invalid.names": "true"}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"", b"\0", b"\0\0\0\0\x63\x02", b"\1\0\0\0\0\0\0\0\1\x02", b"text", b"\0\xff\xff\xff\xff\x02")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        if given.value is None:
            return SchemaAndValue(None, None)  # a tombstone, which has no schema
        is_struct = given.schema is not None and given.schema.type.value == "struct"
        return SchemaAndValue(given.schema.as_required(), given.value) if is_struct and given.schema else given


class TestJson(ConverterTests):
    """JSON, whose messages have the id of their schema among its members."""

    converter_class = ExtJsonConverter

    @pytest.fixture
    def props(self, memory: MemoryApicurio) -> Mapping[str, str]:
        return {**REGISTERS, "apicurio.registry.url": memory.url}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (
            *(b"{", b"[1,", b"\xff", b"12", b"{}", b'{"schemaId":1}', b'{"payload":1}'),
            *(b'{"schemaId":"1","payload":1}', b'{"schemaId":-1,"payload":1}', b'{"schemaId":99,"payload":1}'),
            *(b'{"schemaId":true,"payload":1}', b'{"schemaId":99999999999999999999,"payload":1}'),
        )

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        return None if given.schema is None and given.value is not None else given


@pytest.mark.parametrize("kind", [ApicurioAvroConverter, ExtJsonConverter])
def test_nothing_is_asked_of_a_registry_until_there_is_something_to_convert(
    memory: MemoryApicurio, kind: type[ApicurioAvroConverter | ExtJsonConverter]
) -> None:
    converter = kind.configured({"apicurio.registry.url": memory.url})
    assert converter.to_connect_column("t", []) == []
    assert converter.to_connect("t", None) == SchemaAndValue(None, None)
    assert converter.from_connect("t", None, None) is None
    assert converter.from_connect_column("t", ValueColumn([], Schema.int32())) == []
    converter.close()
    assert not memory.requests

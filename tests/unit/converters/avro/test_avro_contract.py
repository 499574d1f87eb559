"""The Avro converter keeps the contract of converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from connect.data import Schema, SchemaAndValue, ValueColumn
from connect.errors import ConnectError
from connect.testing import ConverterTests
from converters.avro import AvroConverter
from equipment.fakes.schema_registry import MemoryRegistry


class TestAvro(ConverterTests):
    """Avro, with a registry that does not tell versions: what comes back has the schema that was written."""

    converter_class = AvroConverter

    @pytest.fixture
    def props(self, memory: MemoryRegistry) -> Mapping[str, str]:
        memory.tells_versions = False
        return {"schema.registry.url": memory.url, "scrub.invalid.names": "true"}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"", b"\0", b"\0\0\0\0\x63\x02", b"\1\0\0\0\x01\x02", b"text")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        # A null is a tombstone, which has no schema.
        return SchemaAndValue(None, None) if given.value is None else given


def test_nothing_is_asked_of_a_registry_until_there_is_something_to_convert(memory: MemoryRegistry) -> None:
    converter = AvroConverter.configured({"schema.registry.url": memory.url})
    assert converter.from_connect_column("t", ValueColumn([], Schema.int32())) == []
    assert converter.to_connect_column("t", []) == []
    assert converter.to_connect("t", None) == SchemaAndValue(None, None)
    converter.close()
    assert not memory.requests


def test_a_converter_without_a_registry_is_refused() -> None:
    with pytest.raises(ConnectError, match=r"schema\.registry\.url"):
        AvroConverter.configured({})

"""The JSON Schema converter keeps the contract of converters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from connect.data import SchemaAndValue
from connect.testing import ConverterTests
from converters.json_schema import JsonSchemaConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


class TestJsonSchema(ConverterTests):
    """JSON with a registry that does not tell versions: what comes back has the schema that was written."""

    converter_class = JsonSchemaConverter

    @pytest.fixture
    def props(self, memory: MemoryRegistry) -> Mapping[str, str]:
        return {"schema.registry.url": memory.url}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"", b"\0", b"\0\0\0\0\x63{}", b"\1\0\0\0\x01\x02", b"text", b"\0\0\0\0\x01{")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        # A null is a tombstone, which has no schema.
        return SchemaAndValue(None, None) if given.value is None else given


class TestJsonSchemaOfNumericDecimals(TestJsonSchema):
    """Decimals as numbers, every payload validated."""

    @pytest.fixture
    def props(self, memory: MemoryRegistry) -> Mapping[str, str]:
        return {"schema.registry.url": memory.url, "decimal.format": "numeric", "json.fail.invalid.schema": "true"}

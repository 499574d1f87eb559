"""The Protobuf converter keeps the contract of converters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from connect.data import SchemaAndValue
from connect.testing import ConverterTests
from converters.protobuf import ProtobufConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


class TestProtobuf(ConverterTests):
    """Protobuf: what comes back has optional fields with tags, so the values alone are compared elsewhere."""

    converter_class = ProtobufConverter

    @pytest.fixture
    def props(self, memory: MemoryRegistry) -> Mapping[str, str]:
        return {"schema.registry.url": memory.url, "optional.for.nullables": "true"}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"", b"\0", b"\0\0\0\0\x63\0", b"\1\0\0\0\x01\x02", b"text", b"\0\0\0\0\x01", b"\0\0\0\0\x01\0\xff")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        # A null is a tombstone, which has no schema; other values come back with what Protobuf adds to their schema.
        return SchemaAndValue(None, None) if given.value is None else None

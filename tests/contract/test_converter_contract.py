"""The converters keep the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from connect.data import Schema, SchemaAndValue, Type
from connect.testing import ConverterTests, HeaderConverterTests
from converters.byte_array import ByteArrayConverter
from converters.json import JsonConverter
from converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from converters.simple_header import SimpleHeaderConverter
from converters.string import StringConverter

NOT_JSON = (b"{", b"[1,", b"nul", b"\xff", b'"open')


class TestJsonWithSchemas(ConverterTests):
    """JSON in envelopes."""

    converter_class = JsonConverter

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (*NOT_JSON, b"{}", b"12", b'{"schema":null}', b'{"schema":{"type":"no"},"payload":1}')

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        # Without a schema nothing tells that the text in the message stands for bytes.
        return None if given.schema is None and isinstance(given.value, bytes) else given


class TestJsonWithoutSchemas(ConverterTests):
    """JSON as it is: what comes back has no schema, and the types that JSON has."""

    converter_class = JsonConverter

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"schemas.enable": "false", "decimal.format": "numeric"}

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return NOT_JSON

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        plain = given.schema is None and not isinstance(given.value, bytes)
        return given if plain else None


class TestString(ConverterTests):
    """Text."""

    converter_class = StringConverter

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        if not isinstance(given.value, str | None):
            return None
        return SchemaAndValue(Schema.string(optional=True), given.value)


class TestStringInAnotherEncoding(TestString):
    """Text that not every string can be written in."""

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        return {"converter.encoding": "ISO-8859-1"}


class TestByteArray(ConverterTests):
    """Bytes."""

    converter_class = ByteArrayConverter

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        if given.schema is not None and given.schema.name is not None:
            return None
        return SchemaAndValue(Schema.bytes(optional=True), given.value)


class NumberTests(ConverterTests):
    """What the converters of numbers have in common."""

    number: Type

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        return (b"", b"123", b"123456789")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        return SchemaAndValue(Schema(self.number, optional=True), given.value)


class TestShort(NumberTests):
    """16 bits."""

    converter_class = ShortConverter
    number = Type.INT16


class TestInteger(NumberTests):
    """32 bits."""

    converter_class = IntegerConverter
    number = Type.INT32


class TestLong(NumberTests):
    """64 bits."""

    converter_class = LongConverter
    number = Type.INT64


class FloatingTests(NumberTests):
    """A whole number comes back as a floating one."""

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        whole = isinstance(given.value, int) and not isinstance(given.value, bool)
        return super().expected(given._replace(value=float(given.value)) if whole else given)


class TestFloat(FloatingTests):
    """Single precision."""

    converter_class = FloatConverter
    number = Type.FLOAT32


class TestDouble(FloatingTests):
    """Double precision."""

    converter_class = DoubleConverter
    number = Type.FLOAT64


class TestBoolean(NumberTests):
    """True and false."""

    converter_class = BooleanConverter
    number = Type.BOOLEAN


class TestSimpleHeader(HeaderConverterTests):
    """Headers as text that tells its type."""

    converter_class = SimpleHeaderConverter

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        if given.value == "plain" and given.schema is Schema.string():
            return given
        return None if given.value is not None else SchemaAndValue(None, None)

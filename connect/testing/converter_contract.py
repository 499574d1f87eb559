"""The contract of converters and header converters, as test classes to inherit."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final

import pytest

from connect.converter import Converter, HeaderConverter
from connect.data import Schema, SchemaAndValue, ValueColumn
from connect.errors import DataError
from connect.plugin import Plugin
from connect.testing.plugin_contract import PluginTests
from connect.testing.samples import sample_values
from connect.testing.strict_equality import exact_pair

__all__ = ["ConverterTests", "HeaderConverterTests"]

_TOPIC: Final = "test"
_GARBAGE: Final = (b"", b"\x00", b"\xff\xfe\x00garbage", b'{"', b"[1,", b"nul", b"\x00\x00\x00\x00\x01\x02")


class ConverterTests(PluginTests):
    """Tests of a converter. Set ``converter_class``, and override :meth:`expected` if it changes values::

        class TestUpper(ConverterTests):
            converter_class = UpperConverter

            def expected(self, given):
                return SchemaAndValue(Schema.string(), str(given.value).upper())

    The converter is tried on the values of :func:`~connect.testing.sample_values`, which cover every type; it must
    refuse values that it cannot convert with a ``DataError``. Override the fixture ``values`` to use others.
    """

    converter_class: ClassVar[type[Converter[Any]]]

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The converter."""
        return self.converter_class

    @pytest.fixture
    def converter(self, props: Mapping[str, str]) -> Converter[Any]:
        """A converter of values, configured with ``props``."""
        made: Converter[Any] = self.converter_class.configured({**props, "converter.type": "value"}, is_key=False)
        return made

    @pytest.fixture
    def values(self) -> Sequence[SchemaAndValue]:
        """The values to try."""
        return sample_values()

    @pytest.fixture
    def refused(self) -> Sequence[bytes]:
        """Bytes that must be refused with a ``DataError``. Other garbage is tried too, and may be accepted."""
        return ()

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        """Return the expected result of reading a value's bytes: by default that value. ``None`` skips the check."""
        return given

    def test_what_is_written_is_read_again(self, converter: Converter[Any], values: Sequence[SchemaAndValue]) -> None:
        """Values are read as they were written, or as :meth:`expected` says."""
        converted = 0
        for given in values:
            data = _written(converter, given)
            wanted = self.expected(given)
            if isinstance(data, DataError) or wanted is None:
                continue
            converted += 1
            assert exact_pair(converter.to_connect(_TOPIC, data)) == exact_pair(wanted), f"{given} became {data!r}"
        assert converted, "The converter refused every value, or expected() promised nothing of any."

    def test_reading_is_stable(self, converter: Converter[Any], values: Sequence[SchemaAndValue]) -> None:
        """A value that was read stays the same when written and read again."""
        for data in _bytes(converter, values):
            once = converter.to_connect(_TOPIC, data)
            again = _written(converter, once)
            if not isinstance(again, DataError):
                assert exact_pair(converter.to_connect(_TOPIC, again)) == exact_pair(once), data

    def test_columns_are_written_like_rows(self, converter: Converter[Any], values: Sequence[SchemaAndValue]) -> None:
        """``from_connect_column`` returns the same bytes as ``from_connect``, and raises where that raises."""
        for schema, group in groupby(sorted(values, key=_schema_order), key=lambda pair: pair.schema):
            items = [pair.value for pair in group]
            good = [item for item in items if not isinstance(_written_value(converter, schema, item), DataError)]
            for part in (good, good[::-1], good * 3, good[:1]) if good else ():
                rows = [converter.from_connect(_TOPIC, schema, item) for item in part]
                assert list(converter.from_connect_column(_TOPIC, ValueColumn(part, schema))) == rows, schema
            if len(good) < len(items):
                with pytest.raises(Exception):  # noqa: B017 - any error has the runtime go by rows
                    converter.from_connect_column(_TOPIC, ValueColumn(items, schema))

    def test_columns_are_read_like_rows(self, converter: Converter[Any], values: Sequence[SchemaAndValue]) -> None:
        """``to_connect_column`` returns the same values and schemas as ``to_connect``, in any mixture."""
        data = _bytes(converter, values)
        shuffled = random.Random(7).sample(data, len(data))  # noqa: S311 - the same order each time
        for part in (data, data[::-1], shuffled, [*data, None, None, *data], [None], data[:1], []):
            rows = [exact_pair(converter.to_connect(_TOPIC, item)) for item in part]
            columns = converter.to_connect_column(_TOPIC, part)
            assert [exact_pair(SchemaAndValue(column.schema, item)) for column in columns for item in column] == rows

    def test_garbage_is_a_data_error(self, converter: Converter[Any], refused: Sequence[bytes]) -> None:
        """Unreadable bytes are refused with a ``DataError`` by row; by column any error is allowed."""
        readable = _bytes(converter, sample_values())[:2]
        for data in (*refused, *_GARBAGE):
            try:
                row = converter.to_connect(_TOPIC, data)
            except DataError:
                with pytest.raises(Exception):  # noqa: B017 - any error has the runtime go by rows
                    converter.to_connect_column(_TOPIC, [*readable, data, *readable])
            else:
                assert data not in refused, f"{data!r} is to be refused and was read as {row}."
                column, *_ = converter.to_connect_column(_TOPIC, [data])
                assert exact_pair(SchemaAndValue(column.schema, column[0])) == exact_pair(row)

    def test_a_tombstone_stays_one(self, converter: Converter[Any]) -> None:
        """A null without a schema becomes a tombstone and is read back as null, as compacted topics require."""
        assert converter.from_connect(_TOPIC, None, None) is None
        assert converter.to_connect(_TOPIC, None).value is None

    def test_a_converter_of_keys_does_the_same(
        self, converter: Converter[Any], values: Sequence[SchemaAndValue], props: Mapping[str, str]
    ) -> None:
        """A converter of keys behaves like a converter of values."""
        of_keys = self.converter_class.configured({**props, "converter.type": "key"}, is_key=True)
        for given in values:
            data = _written(converter, given)
            if not isinstance(data, DataError):
                key = of_keys.to_connect(_TOPIC, of_keys.from_connect(_TOPIC, given.schema, given.value))
                assert exact_pair(key) == exact_pair(converter.to_connect(_TOPIC, data))


class HeaderConverterTests(PluginTests):
    """Tests of a header converter. Set ``converter_class``, and override :meth:`expected` if it changes values."""

    converter_class: ClassVar[type[HeaderConverter[Any]]]

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The converter."""
        return self.converter_class

    @pytest.fixture
    def converter(self, props: Mapping[str, str]) -> HeaderConverter[Any]:
        """A converter configured with ``props``."""
        made: HeaderConverter[Any] = self.converter_class.configured({**props, "converter.type": "header"})
        return made

    @pytest.fixture
    def values(self) -> Sequence[SchemaAndValue]:
        """The values to try."""
        return sample_values()

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        """Return the expected result of reading a value's bytes: by default that value. ``None`` skips the check."""
        return given

    def test_what_is_written_is_read_again(
        self, converter: HeaderConverter[Any], values: Sequence[SchemaAndValue]
    ) -> None:
        """Values are read as written, or as :meth:`expected` says, or refused with a ``DataError``."""
        converted = 0
        for given in values:
            wanted = self.expected(given)
            try:
                data = converter.from_connect_header(_TOPIC, "key", given.schema, given.value)
            except DataError:
                continue
            read = converter.to_connect_header(_TOPIC, "key", data)
            if wanted is not None:
                converted += 1
                assert exact_pair(read) == exact_pair(wanted), f"{given} became {data!r}"
        assert converted, "The converter refused every value, or expected() promised nothing of any."

    def test_garbage_is_read_or_a_data_error(self, converter: HeaderConverter[Any]) -> None:
        """Garbage is read or refused with a ``DataError``."""
        for data in _GARBAGE:
            try:
                converter.to_connect_header(_TOPIC, "key", data)
            except DataError:
                continue

    def test_a_null_stays_one(self, converter: HeaderConverter[Any]) -> None:
        """A header without a value is read back as null."""
        assert converter.from_connect_header(_TOPIC, "key", None, None) is None
        assert converter.to_connect_header(_TOPIC, "key", None).value is None


def _written(converter: Converter[Any], given: SchemaAndValue) -> bytes | DataError | None:
    return _written_value(converter, given.schema, given.value)


def _written_value(converter: Converter[Any], schema: Schema | None, value: object) -> bytes | DataError | None:
    try:
        return converter.from_connect(_TOPIC, schema, value)
    except DataError as error:
        return error


def _bytes(converter: Converter[Any], values: Sequence[SchemaAndValue]) -> list[bytes | None]:
    written = (_written(converter, given) for given in values)
    return [data for data in written if not isinstance(data, DataError)]


def _schema_order(pair: SchemaAndValue) -> str:
    return repr(pair.schema)

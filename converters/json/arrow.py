"""Direct reading of JSON into Arrow with pyarrow's JSON reader. Importing this needs pyarrow.

That reader is fast but follows its own rules. It is used for a batch only where they give the same result as Kafka
Connect's: values that it would coerce, invent or misread are detected before or afterwards and raise ``DoubtError``,
after which the caller reads the rows one by one. As experiments show, the reader itself rejects text where a number is
expected, numbers out of range, fractions in integers, duplicates of a known field, and half surrogate pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pyarrow_json

from connect.data import Schema, Type, logical
from connect.data.arrow import arrow_type, to_array
from connect.errors import DataError
from converters.json.decode import Decode
from converters.json.errors import DoubtError
from converters.json.nesting import check_depths
from converters.json.text import WHITE_SPACE

__all__ = ["ArrowReader"]

_MOST_BYTES: Final = 2**30
_ENDING: Final = b"\0"
"""What pyarrow's parser takes for the end of all texts; nothing in JSON is written with it."""
_NEGATIVE_ZERO: Final = -(2**63)
_PLAIN: Final[dict[Type, Any]] = {
    **{kind: arrow_type(Schema(kind)) for kind in Type if kind.is_primitive},
    Type.BYTES: pa.string(),
}
"""The Arrow types in which scalars are read. Bytes arrive as base64 text."""
_LIMITS: Final = {
    logical.DATE_NAME: (-719_162, 2_932_896),
    logical.TIME_NAME: (0, 86_399_999),
    logical.TIMESTAMP_NAME: (-62_135_596_800_000, 253_402_300_799_999),
}
_BASE: Final = {
    logical.DECIMAL_NAME: Type.BYTES,
    logical.DATE_NAME: Type.INT32,
    logical.TIME_NAME: Type.INT32,
    logical.TIMESTAMP_NAME: Type.INT64,
}


class ArrowReader:
    """Reads JSON objects as structs of one schema."""

    def __init__(self, schema: Schema, decoder_of: Callable[[Schema], Decode], *, replace_null: bool) -> None:
        """Take a schema, and what returns the decoder by row of bytes and decimals within it."""
        self._schema = schema
        self._decoder_of = decoder_of
        self._replace_null = replace_null
        self._fields = pa.schema([(field.name, _read_type(field.schema)) for field in schema.fields])
        self._has_others = False

    @staticmethod
    def can_read(schema: Schema) -> bool:
        """Return whether values of a schema can be read: structs that contain no maps or empty structs."""
        return schema.type is Type.STRUCT and _read_type(schema) is not None

    def read(self, payloads: Sequence[bytes]) -> pa.Array[Any]:
        """Return the structs in many JSON texts; raise ``DoubtError`` unless they surely equal the rows."""
        if {payload[:1] for payload in payloads} != {b"{"}:
            raise DoubtError
        if {payload[-1:] for payload in payloads} != {b"}"}:
            payloads = [payload.rstrip(WHITE_SPACE) for payload in payloads]
            if {payload[-1:] for payload in payloads} != {b"}"}:
                raise DoubtError
        # All payloads are one stream for pyarrow. Each begins and ends like an object and none has a byte that ends the
        # stream, so one that ends within a value makes the next a mistake, and each is one object at least. If there
        # are as many objects as payloads, each is exactly one.
        text = b"\n".join(payloads)
        if _ENDING in text:
            raise DoubtError
        if not text.isascii():
            _check_unicode(text)
        table = self._table(text, payloads)
        if table.num_rows != len(payloads):
            raise DoubtError
        columns = [
            self._finished(_one_array(table.column(field.index)), field.schema, 0) for field in self._schema.fields
        ]
        return pa.StructArray.from_arrays(columns, fields=_members(self._schema))

    def _table(self, text: bytes, payloads: Sequence[bytes]) -> pa.Table:
        if not self._has_others:
            try:
                return self._parsed(text, "error")
            except DoubtError:
                pass  # only fields that the schema lacks may remain
        _check_others(text, payloads)
        table = self._parsed(text, "ignore")
        self._has_others = True
        return table

    def _parsed(self, text: bytes, unexpected: Literal["error", "ignore"]) -> pa.Table:
        if len(text) > _MOST_BYTES:
            raise DoubtError
        source: Any = pa.BufferReader(text)
        try:
            return pyarrow_json.read_json(
                source,
                read_options=pyarrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pyarrow_json.ParseOptions(
                    explicit_schema=self._fields, unexpected_field_behavior=unexpected
                ),
            )
        except pa.ArrowException as error:
            raise DoubtError from error

    def _finished(self, array: Any, schema: Schema, hidden: int) -> Any:
        """Convert an array from pyarrow's reader to the schema's type.

        Where ``hidden`` is true, the surrounding struct is null.
        """
        has_default = schema.default is not None and self._replace_null
        if array.null_count > hidden and (has_default or not schema.optional):
            raise DoubtError
        if schema.name in _LIMITS:
            return _temporal(array, schema)
        if schema.name == logical.DECIMAL_NAME or schema.type is Type.BYTES:
            return self._decoded(array, schema, hidden)
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            _check_floats(array)
        if schema.type is Type.STRUCT:
            return self._struct(array, schema)
        if schema.value_schema is not None:
            items = self._finished(array.values, schema.value_schema, 0)
            mask = array.is_null() if array.null_count else None
            return pa.ListArray.from_arrays(array.offsets, items, type=arrow_type(schema), mask=mask)
        return array

    def _struct(self, array: Any, schema: Schema) -> Any:
        children = [self._finished(array.field(field.index), field.schema, array.null_count) for field in schema.fields]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=_members(schema), mask=mask)

    def _decoded(self, array: Any, schema: Schema, hidden: int) -> Any:
        """Decode bytes and decimals from their base64 text."""
        of = schema.as_optional() if hidden else schema
        decode = self._decoder_of(of)
        try:
            values = to_array([decode(text) for text in array.to_pylist()], of)
        except DataError as error:
            raise DoubtError from error
        return values


def _check_unicode(text: bytes) -> None:
    """Raise ``DoubtError`` for bytes that are not UTF-8, which pyarrow does not check."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise DoubtError from error


def _check_others(text: bytes, payloads: Sequence[bytes]) -> None:
    """Raise ``DoubtError`` for content in ignored fields that orjson would reject."""
    if b"NaN" in text or b"Inf" in text:
        raise DoubtError
    try:
        check_depths(payloads)
    except DataError as error:
        raise DoubtError from error


def _check_floats(array: Any) -> None:
    """Raise ``DoubtError`` for numbers that are not valid JSON, and for zeros whose sign only the text shows."""
    doubles = array if array.type.equals(pa.float64()) else array.cast(pa.float64())
    if not pc.all(pc.is_finite(doubles), min_count=0).as_py():
        raise DoubtError
    if pc.any(pc.equal(doubles.view(pa.int64()), pa.scalar(_NEGATIVE_ZERO))).as_py():
        raise DoubtError


def _temporal(array: Any, schema: Schema) -> Any:
    assert schema.name is not None
    low, high = _LIMITS[schema.name]
    found: Any = pc.min_max(array).as_py()
    if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
        raise DoubtError
    return array.view(arrow_type(schema))


def _read_type(schema: Schema) -> Any:
    """Return the Arrow type in which values of a schema are read, or ``None`` if they cannot be read."""
    kind = _BASE.get(schema.name or "", schema.type)
    if kind is Type.ARRAY and schema.value_schema is not None:
        item = _read_type(schema.value_schema)
        return None if item is None else pa.list_(item)
    if kind is Type.STRUCT:
        parts = [(field.name, _read_type(field.schema)) for field in schema.fields]
        return None if not parts or any(part is None for _, part in parts) else pa.struct(parts)
    return _PLAIN.get(kind)


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _members(schema: Schema) -> list[pa.Field[Any]]:
    members: Any = arrow_type(schema)
    return list(members)

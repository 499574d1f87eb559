"""Schemas: descriptions of values in Kafka Connect's types, and validation of values against them.

A :class:`Schema` is immutable, hashable and interned: equal schemas are the same object, in every thread and after
unpickling. Compare schemas with ``is``, and use them as cache keys.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

from connect.data.excerpt import excerpt
from connect.data.numerals import INT32_MAX, INT32_MIN, integer_range, single
from connect.errors import DataError, SchemaError

__all__ = [
    "DATE_NAME",
    "DECIMAL_NAME",
    "INTEGER_BITS",
    "INTEGER_RANGES",
    "LOGICAL_NAMES",
    "TIMESTAMP_NAME",
    "TIME_NAME",
    "Field",
    "Schema",
    "Type",
    "decimal_scale",
    "validate",
]

DECIMAL_NAME: Final = "org.apache.kafka.connect.data.Decimal"
DATE_NAME: Final = "org.apache.kafka.connect.data.Date"
TIME_NAME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME: Final = "org.apache.kafka.connect.data.Timestamp"
LOGICAL_NAMES: Final = frozenset({DECIMAL_NAME, DATE_NAME, TIME_NAME, TIMESTAMP_NAME})


class Type(enum.Enum):
    """The twelve types of Kafka Connect. The value of each is its name in JSON schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def is_primitive(self) -> bool:
        """Whether values of this type contain no other values."""
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


INTEGER_BITS: Final[Mapping[Type, int]] = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
INTEGER_RANGES: Final[Mapping[Type, tuple[int, int]]] = {
    kind: integer_range(bits) for kind, bits in INTEGER_BITS.items()
}
"""The smallest and the largest number of each type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A named field of a struct; ``index`` is its position."""

    name: str
    schema: Schema
    index: int


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})


class Schema:
    """Describes values: their type, whether they may be null, and their name, default and documentation.

    Make one with the class method of its type (``Schema.int32()``, ``Schema.struct({...})``) or a function such as
    :func:`connect.data.timestamp_schema`. A default of ``None`` means no default. Logical types are schemas with a
    well-known name; see :mod:`connect.data.logical`.

    Raises :class:`~connect.errors.SchemaError` if its attributes, or its default and its type, do not fit together.
    """

    __slots__ = (
        "__weakref__",
        "_by_name",
        "_default",
        "_hash",
        "doc",
        "fields",
        "key_schema",
        "name",
        "optional",
        "parameters",
        "type",
        "value_schema",
        "version",
    )

    type: Type
    optional: bool
    name: str | None
    version: int | None
    doc: str | None
    parameters: Mapping[str, str]
    fields: tuple[Field, ...]
    key_schema: Schema | None
    value_schema: Schema | None
    _by_name: Mapping[str, Field]
    _default: Any
    _hash: int

    def __new__(
        cls,
        type: Type,  # noqa: A002 - the name of the attribute
        *,
        optional: bool = False,
        default: object = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Mapping[str, Schema] | Iterable[Field] = (),
        key_schema: Schema | None = None,
        value_schema: Schema | None = None,
    ) -> Schema:
        members = _members(fields)
        _check_parts(type, members, key_schema, value_schema)
        key = (
            type,
            optional,
            _identity(default),
            name,
            version,
            doc,
            tuple(sorted((parameters or {}).items())),
            members,
            key_schema,
            value_schema,
        )
        with _lock:
            known = _interned.get(key)
        if known is not None:
            return known
        attributes = (type, optional, _owned(default), name, version, doc)
        fresh = _fresh(cls, key, (*attributes, _read_only(parameters), members, key_schema, value_schema))
        with _lock:
            return _interned.setdefault(key, fresh)

    # -- one class method a type ---------------------------------------------------------------------------

    @classmethod
    def int8(cls, **attributes: Any) -> Schema:
        """Return a whole number of 8 bits."""
        return cls(Type.INT8, **attributes)

    @classmethod
    def int16(cls, **attributes: Any) -> Schema:
        """Return a whole number of 16 bits."""
        return cls(Type.INT16, **attributes)

    @classmethod
    def int32(cls, **attributes: Any) -> Schema:
        """Return a whole number of 32 bits."""
        return cls(Type.INT32, **attributes)

    @classmethod
    def int64(cls, **attributes: Any) -> Schema:
        """Return a whole number of 64 bits."""
        return cls(Type.INT64, **attributes)

    @classmethod
    def float32(cls, **attributes: Any) -> Schema:
        """Return a floating point number of single precision."""
        return cls(Type.FLOAT32, **attributes)

    @classmethod
    def float64(cls, **attributes: Any) -> Schema:
        """Return a floating point number of double precision."""
        return cls(Type.FLOAT64, **attributes)

    @classmethod
    def boolean(cls, **attributes: Any) -> Schema:
        """True or false."""
        return cls(Type.BOOLEAN, **attributes)

    @classmethod
    def string(cls, **attributes: Any) -> Schema:
        """Unicode text."""
        return cls(Type.STRING, **attributes)

    @classmethod
    def bytes(cls, **attributes: Any) -> Schema:
        """Uninterpreted bytes."""
        return cls(Type.BYTES, **attributes)

    @classmethod
    def array(cls, value_schema: Schema, **attributes: Any) -> Schema:
        """Return a list whose elements have the schema ``value_schema``."""
        return cls(Type.ARRAY, value_schema=value_schema, **attributes)

    @classmethod
    def map(cls, key_schema: Schema, value_schema: Schema, **attributes: Any) -> Schema:
        """Return a map whose keys have the schema ``key_schema`` and whose values have ``value_schema``."""
        return cls(Type.MAP, key_schema=key_schema, value_schema=value_schema, **attributes)

    @classmethod
    def struct(cls, fields: Mapping[str, Schema] | Iterable[Field], **attributes: Any) -> Schema:
        """Return a record of named fields, in order. Its values are dicts."""
        return cls(Type.STRUCT, fields=fields, **attributes)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def default(self) -> Any:
        """The value that replaces null; ``None`` if there is none.

        Each access to a list or dict default returns a new copy. Read it again for every record, so that records do not
        share it.
        """
        default = self._default
        return _owned(default) if isinstance(default, (list, dict)) else default

    def field(self, name: str) -> Field | None:
        """Return the field called ``name``, or ``None``."""
        return self._by_name.get(name)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(self._by_name)

    # -- deriving ------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Schema:
        """Return this schema with some attributes replaced, like :func:`dataclasses.replace`."""
        attributes = {name: getattr(self, name) for name in _ATTRIBUTES}
        return Schema(**(attributes | changes))

    def as_optional(self) -> Schema:
        """Return this schema with null allowed."""
        return self if self.optional else self.replace(optional=True)

    def as_required(self) -> Schema:
        """Return this schema with null refused."""
        return self.replace(optional=False) if self.optional else self

    # -- the protocol of a frozen, interned value ----------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema is frozen: use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Schema is frozen: {name} cannot be deleted")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other

    def __copy__(self) -> Schema:
        return self

    def __deepcopy__(self, memo: object) -> Schema:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {name: getattr(self, name) for name in _ATTRIBUTES}
        attributes["parameters"] = dict(self.parameters)
        return _rebuilt, (attributes,)

    def __repr__(self) -> str:
        parts = [self.type.value]
        if self.name is not None:
            parts.append(self.name)
        if self.type is Type.STRUCT:
            parts.append("{" + ", ".join(f"{field.name}: {field.schema!r}" for field in self.fields) + "}")
        elif self.type is Type.ARRAY:
            parts.append(f"of {self.value_schema!r}")
        elif self.type is Type.MAP:
            parts.append(f"of {self.key_schema!r} to {self.value_schema!r}")
        if self.optional:
            parts.append("optional")
        if self.default is not None:
            parts.append(f"default={self.default!r}")
        return f"Schema({' '.join(parts)})"


_ATTRIBUTES: Final = (
    "type",
    "optional",
    "default",
    "name",
    "version",
    "doc",
    "parameters",
    "fields",
    "key_schema",
    "value_schema",
)
_interned: WeakValueDictionary[tuple[object, ...], Schema] = WeakValueDictionary()
_lock = threading.Lock()


def _rebuilt(attributes: dict[str, Any]) -> Schema:
    return Schema(**attributes)


def _fresh(cls: type[Schema], key: tuple[object, ...], attributes: tuple[object, ...]) -> Schema:
    """Return a new schema of these attributes, validated but not yet interned."""
    schema = object.__new__(cls)
    for name, value in zip(_ATTRIBUTES, attributes, strict=True):
        object.__setattr__(schema, "_default" if name == "default" else name, value)
    by_name = {field.name: field for field in schema.fields}
    object.__setattr__(schema, "_by_name", MappingProxyType(by_name))
    object.__setattr__(schema, "_hash", hash(key))
    _check_parameters(schema)
    if schema._default is not None:
        _check_default(schema, schema._default)
    return schema


def _read_only(parameters: Mapping[str, str] | None) -> Mapping[str, str]:
    return MappingProxyType(dict(parameters)) if parameters else _NO_PARAMETERS


def _members(fields: Mapping[str, Schema] | Iterable[Field]) -> tuple[Field, ...]:
    pairs = fields.items() if isinstance(fields, Mapping) else ((field.name, field.schema) for field in fields)
    members: dict[str, Field] = {}
    for index, (name, schema) in enumerate(pairs):
        if not name:
            raise SchemaError(f"Field {index} of the struct has no name; give every field a non-empty name.")
        if name in members:
            raise SchemaError(f"Cannot create field because of field name duplication {name}")
        members[name] = Field(name, schema, index)
    return tuple(members.values())


def _check_parts(
    type: Type,  # noqa: A002
    members: tuple[Field, ...],
    key_schema: Schema | None,
    value_schema: Schema | None,
) -> None:
    if members and type is not Type.STRUCT:
        raise SchemaError(f"A schema of type {type.value} cannot have fields; use Schema.struct().")
    if (value_schema is None) == (type in (Type.ARRAY, Type.MAP)):
        raise SchemaError(f"A schema of type {type.value} needs a value schema if and only if it is an array or a map.")
    if (key_schema is None) == (type is Type.MAP):
        raise SchemaError(f"A schema of type {type.value} needs a key schema if and only if it is a map.")


def _check_parameters(schema: Schema) -> None:
    for name, value in schema.parameters.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise SchemaError(f"The parameter {name!r} of a schema must be a string, but it is {value!r}: quote it.")


def _check_default(schema: Schema, default: object) -> None:
    try:
        validate(schema, default)
    except DataError as error:
        raise SchemaError(f"Invalid default value: {error}") from error


def _owned(value: object) -> object:
    """Return a copy of a default value that nobody else can modify."""
    if isinstance(value, Mapping):
        return {key: _owned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_owned(item) for item in value]
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _identity(default: object) -> object:
    try:
        return _frozen(default)
    except RecursionError as error:
        raise SchemaError("Invalid default value: it is nested too deeply.") from error


def _frozen(value: object) -> object:
    """Return a hashable stand-in for a default value that distinguishes ``1``, ``1.0`` and ``True``."""
    if isinstance(value, Mapping):
        return (dict, frozenset((_frozen(key), _frozen(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return (list, tuple(_frozen(item) for item in value))
    if isinstance(value, (bytearray, memoryview)):
        return (bytes, repr(bytes(value)))
    if isinstance(value, int):
        return (value.__class__, value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return (dt.datetime, value - _EPOCH)
    # repr tells Decimal("1.0") from Decimal("1.00") and 0.0 from -0.0, which are equal.
    return (value.__class__, repr(value))


def decimal_scale(schema: Schema) -> int:
    """Return the scale of a Decimal schema; raise :class:`~connect.errors.SchemaError` if it has none."""
    text = schema.parameters.get("scale")
    if text is None:
        raise SchemaError("Invalid Decimal schema: scale parameter not found.")
    invalid = f"Invalid scale parameter found in Decimal schema: {text}"
    try:
        scale = int(text)
    except ValueError as error:
        raise SchemaError(invalid) from error
    if not INT32_MIN <= scale <= INT32_MAX:
        raise SchemaError(invalid)
    return scale


# -- whether a value is what its schema says -----------------------------------------------------------------

_EXACT_UP_TO: Final = {Type.FLOAT32: 2**24, Type.FLOAT64: 2**53}


def validate(schema: Schema | None, value: object, path: str = "") -> None:
    """Check ``value`` and all values nested in it against ``schema``; a schema of ``None`` allows any value.

    Raises a :class:`~connect.errors.DataError` with the path of the invalid value (``order.lines[2].price``). Nothing
    is converted. As usual in Python, an ``int`` is a valid float if a float of that width can represent it exactly.
    Null is valid if the schema is optional, and in a struct field whose schema has a default.
    """
    try:
        _check(schema, value, path)
    except RecursionError as error:
        raise DataError(f'Invalid value for field "{path or "value"}": it is nested too deeply') from error


def _check(schema: Schema | None, value: object, path: str) -> None:
    if schema is None:
        return
    if value is None:
        if not schema.optional:
            what = "null used for required field"
            raise DataError(f'Invalid value: {what}: "{path or "value"}", schema type: {schema.type.name}')
        return
    check = _LOGICAL.get(schema.name) if schema.name is not None else None
    (check or _PLAIN[schema.type])(schema, value, path)


def _refuse(schema: Schema, value: object, path: str, reason: str = "") -> DataError:
    expected = f"{schema.name} ({schema.type.name})" if schema.name in LOGICAL_NAMES else schema.type.name
    detail = f": {reason}" if reason else ""
    kind = type(value).__name__
    return DataError(f'Invalid value for field "{path or "value"}": {kind} where {expected} is expected{detail}')


def _integer(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refuse(schema, value, path)
    low, high = INTEGER_RANGES[schema.type]
    if not low <= value <= high:
        raise _refuse(schema, value, path, f"{excerpt(value)} is not between {low} and {high}")


def _float(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _refuse(schema, value, path)
    if isinstance(value, int):
        if abs(value) > _EXACT_UP_TO[schema.type]:
            text = excerpt(value)
            raise _refuse(schema, value, path, f"{text} may not be exact as a float; pass float({text})")
    elif schema.type is Type.FLOAT32 and math.isinf(single(value)) and not math.isinf(value):
        raise _refuse(schema, value, path, f"{value} is too large for single precision")


def _instance(*types: type) -> Callable[[Schema, object, str], None]:
    def check(schema: Schema, value: object, path: str) -> None:
        if not isinstance(value, types):
            raise _refuse(schema, value, path)

    return check


def _array(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise _refuse(schema, value, path)
    for index, item in enumerate(value):
        _check(schema.value_schema, item, f"{path}[{index}]")


def _map(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Mapping):
        raise _refuse(schema, value, path)
    for key, item in value.items():
        text = excerpt(key)
        _check(schema.key_schema, key, f"{path}{{key {text}}}")
        _check(schema.value_schema, item, f"{path}[{text}]")


def _struct(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, Mapping):
        raise _refuse(schema, value, path)
    for field in schema.fields:
        item = value.get(field.name)
        if item is not None or field.schema.default is None:
            _check(field.schema, item, f"{path}.{field.name}" if path else field.name)
    if len(value) > len(schema.fields) or any(schema.field(name) is None for name in value):
        unknown = next(name for name in value if schema.field(name) is None)
        raise _refuse(
            schema,
            value,
            path,
            f"{unknown if isinstance(unknown, str) else excerpt(unknown)} is not a valid field name",
        )


def _decimal(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, decimal.Decimal):
        raise _refuse(schema, value, path)
    exponent = value.as_tuple().exponent
    scale = decimal_scale(schema)
    if not isinstance(exponent, int) or -exponent != scale:
        raise _refuse(schema, value, path, f"{excerpt(value)} does not have the scale {scale} of the schema")


def _date(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise _refuse(schema, value, path)


def _time(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.time):
        raise _refuse(schema, value, path)
    if value.tzinfo is not None:
        raise _refuse(schema, value, path, "a time of day has no time zone")


def _timestamp(schema: Schema, value: object, path: str) -> None:
    if not isinstance(value, dt.datetime):
        raise _refuse(schema, value, path)
    if value.tzinfo is None:
        raise _refuse(schema, value, path, "the datetime has no time zone: give it one, such as datetime.UTC")


_PLAIN: Final[Mapping[Type, Callable[[Schema, object, str], None]]] = {
    Type.INT8: _integer,
    Type.INT16: _integer,
    Type.INT32: _integer,
    Type.INT64: _integer,
    Type.FLOAT32: _float,
    Type.FLOAT64: _float,
    Type.BOOLEAN: _instance(bool),
    Type.STRING: _instance(str),
    Type.BYTES: _instance(bytes, bytearray, memoryview),
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_LOGICAL: Final[Mapping[str, Callable[[Schema, object, str], None]]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}

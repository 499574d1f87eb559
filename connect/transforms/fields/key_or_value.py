"""Access to the key or value of a record, and base classes of transformations with a variant for each.

A :class:`Side` reads and replaces the key or the value, ``require_map`` and ``require_struct_schema`` reject everything
but structs, and a :class:`SchemaCache` remembers results computed for a schema.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from connect.config import Config
from connect.data import Batch, Column, Record, Schema, Type, ValueColumn
from connect.errors import DataError, PluginError
from connect.transformation import Transformation

__all__ = [
    "KEY",
    "VALUE",
    "Change",
    "KeyOrValueTransformation",
    "SchemaCache",
    "Side",
    "ValueTransformation",
    "copy_of",
    "require_map",
    "require_struct_schema",
    "type_name",
]

C = TypeVar("C", bound=Config)
R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])
T = TypeVar("T")

_readers: dict[type[Record], Callable[[Any], tuple[Any, ...]]] = {}


def copy_of(record: R) -> R:
    """Return a copy of a record that the caller may modify before passing it on."""
    kind = type(record)
    read = _readers.get(kind)
    if read is None:
        read = _readers[kind] = attrgetter(*(field.name for field in fields(kind)))
    return kind(*read(record))


class Side:
    """The key or the value of a record: how to read and replace it."""

    __slots__ = ("name", "read")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Final[Callable[[Record], tuple[Schema | None, Any]]] = attrgetter(f"{name}_schema", name)
        """Returns the schema of a record's key or value, and the key or value itself."""

    @abstractmethod
    def put(self, record: R, schema: Schema | None, data: object) -> R:
        """Return the record with another schema and another key or value."""

    @abstractmethod
    def column(self, batch: Batch[Any]) -> Column:
        """Return the keys or the values of a batch."""

    @abstractmethod
    def put_column(self, batch: B, column: Column) -> B:
        """Return the batch with other keys or values."""


class _Key(Side):
    __slots__ = ()

    def put(self, record: R, schema: Schema | None, data: object) -> R:
        new = copy_of(record)
        new.key_schema = schema
        new.key = data
        return new

    def column(self, batch: Batch[Any]) -> Column:
        return batch.key

    def put_column(self, batch: B, column: Column) -> B:
        return batch.replace(key=column)


class _Value(Side):
    __slots__ = ()

    def put(self, record: R, schema: Schema | None, data: object) -> R:
        new = copy_of(record)
        new.value_schema = schema
        new.value = data
        return new

    def column(self, batch: Batch[Any]) -> Column:
        return batch.value

    def put_column(self, batch: B, column: Column) -> B:
        return batch.replace(value=column)


KEY: Final[Side] = _Key("key")
VALUE: Final[Side] = _Value("value")


def require_map(value: object, schema: Schema | None, purpose: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a struct or map, else raise :class:`~connect.errors.DataError`."""
    if type(value) is dict or isinstance(value, Mapping):
        return value
    if schema is None:
        expected = "Only Map objects supported in absence of schema for"
    else:
        expected = "Only Struct objects supported for"
    raise DataError(f"{expected} [{purpose}], found: {type_name(value)}")


def require_struct_schema(schema: Schema, purpose: str) -> Schema:
    """Return the schema if it is that of a struct, else raise :class:`~connect.errors.DataError`."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {schema.type.name}")
    return schema


def type_name(value: object) -> str:
    """Return the name of a value's type for an error."""
    return "null" if value is None else type(value).__name__


class SchemaCache(Generic[T]):
    """Calls ``compute`` with a schema and keeps the results for the last ``limit`` schemas (invariant I9)."""

    __slots__ = ("_compute", "_entries", "_limit")

    def __init__(self, compute: Callable[[Schema | None], T], limit: int = 64) -> None:
        self._compute = compute
        self._limit = limit
        # Schemas are interned, so their identity suffices; the cache holds them, so that no other schema can get the
        # same id.
        self._entries: dict[int, tuple[Schema | None, T]] = {}

    def __call__(self, schema: Schema | None) -> T:
        """Return the result of ``compute`` for the schema."""
        entry = self._entries.get(id(schema))
        if entry is None:
            entry = (schema, self._compute(schema))
            if len(self._entries) >= self._limit:
                del self._entries[next(iter(self._entries))]
            self._entries[id(schema)] = entry
        return entry[1]


class Change(NamedTuple):
    """A change of the values of one schema: their new schema, and the function that changes a value.

    The optional ``column`` changes many values at once, with the same results as ``value``. It may return a column.
    """

    schema: Schema | None
    value: Callable[[Any], Any]
    column: Callable[[Sequence[Any]], Sequence[Any]] | None = None


class KeyOrValueTransformation(Transformation[C], Generic[C]):
    """The base of transformations with a variant for the key and one for the value, both created from one class.

    A class ``Upper(KeyOrValueTransformation[UpperConfig])`` gets the nested classes ``Upper.Key`` and ``Upper.Value``,
    which users refer to as ``Upper$Key`` and ``Upper$Value``. In them ``self.side`` reads and writes the key or the
    value.
    """

    side: ClassVar[Side]
    # The variants are subclasses of the class being defined, which a type checker cannot express.
    Key: ClassVar[type[Any]]
    Value: ClassVar[type[Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "side" not in cls.__dict__:
            cls.Key = _variant(cls, "Key", KEY)
            cls.Value = _variant(cls, "Value", VALUE)

    def __init__(self, config: C) -> None:
        if not hasattr(self, "side"):
            name = type(self).__name__
            raise PluginError(f"{name} works on the key or on the value: use {name}$Key or {name}$Value.")
        super().__init__(config)


def _variant(owner: type[Any], name: str, side: Side) -> type[Any]:
    namespace = {
        "side": side,
        "__doc__": owner.__doc__,
        "__module__": owner.__module__,
        "__qualname__": f"{owner.__qualname__}.{name}",
    }
    return type(name, (owner,), namespace)


class ValueTransformation(KeyOrValueTransformation[C], Generic[C]):
    """The base of transformations that read only the key or the value and replace it with one value.

    Define :meth:`change`; the methods for rows and batches follow from it.
    """

    passes_null: ClassVar[bool] = True
    """Whether null passes unchanged, with its schema."""

    def __init__(self, config: C) -> None:
        super().__init__(config)
        self._changes = SchemaCache(self.change)

    @abstractmethod
    def change(self, schema: Schema | None) -> Change:
        """Return the change of the values of a schema. Called once per schema."""

    def apply(self, record: R) -> R | None:
        """Return the record with its key or value changed."""
        schema, data = self.side.read(record)
        if data is None and self.passes_null:
            return record
        change = self._changes(schema)
        return self.side.put(record, change.schema, change.value(data))

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with its keys or values changed."""
        column = self.side.column(batch)
        values = column.values()
        nulls = self.passes_null and any(value is None for value in values)
        if nulls and all(value is None for value in values):
            return [batch]
        change = self._changes(column.schema)
        if nulls and change.schema is not column.schema:
            return super().apply_batch(batch)
        return [self.side.put_column(batch, _changed(change, values, nulls=nulls))]


def _changed(change: Change, values: Sequence[Any], *, nulls: bool) -> Column:
    change_value = change.value
    if nulls:
        return ValueColumn([None if value is None else change_value(value) for value in values], change.schema)
    if change.column is not None:
        new = change.column(values)
        return new if isinstance(new, Column) else ValueColumn(new, change.schema)
    return ValueColumn([change_value(value) for value in values], change.schema)

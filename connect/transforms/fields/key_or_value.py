"""Transformations that come in two variants, one for the key and one for the value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from connect.config import Config
from connect.data import Batch, Column, Record, Schema, ValueColumn
from connect.errors import PluginError
from connect.transformation import Transformation
from connect.transforms.fields.schema_cache import SchemaCache
from connect.transforms.fields.side import KEY, VALUE, Side

__all__ = ["Change", "KeyOrValueTransformation", "ValueTransformation"]

C = TypeVar("C", bound=Config)
R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class Change(NamedTuple):
    """What a transformation makes of values of one schema: the schema they have then, and how to change one.

    ``column`` changes many values at once and may be left out; it must agree with ``value``. It may give a column.
    """

    schema: Schema | None
    value: Callable[[Any], Any]
    column: Callable[[Sequence[Any]], Sequence[Any]] | None = None


class KeyOrValueTransformation(Transformation[C], Generic[C]):
    """Write a transformation once; its variants are made of it.

    A class ``Upper(KeyOrValueTransformation[UpperConfig])`` has the nested classes ``Upper.Key`` and
    ``Upper.Value``, which users name ``Upper$Key`` and ``Upper$Value``. In them ``self.side`` reads and writes
    the key or the value.
    """

    side: ClassVar[Side]
    # The variants are subclasses of their owner, which no type checker can say while that is being defined.
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
    """A transformation that looks at nothing but the key or the value, and makes one of each.

    Define :meth:`change`; rows and columns follow from it.
    """

    passes_null: ClassVar[bool] = True
    """Whether null stays as it is, with the schema it has."""

    def __init__(self, config: C) -> None:
        super().__init__(config)
        self._changes = SchemaCache(self.change)

    @abstractmethod
    def change(self, schema: Schema | None) -> Change:
        """What is to be done to the values of a schema; asked once for each schema."""

    def apply(self, record: R) -> R | None:
        """The record with its key or value changed."""
        schema, data = self.side.read(record)
        if data is None and self.passes_null:
            return record
        change = self._changes(schema)
        return self.side.put(record, change.schema, change.value(data))

    def apply_batch(self, batch: B) -> Sequence[B]:
        """The batch with its keys or values changed."""
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

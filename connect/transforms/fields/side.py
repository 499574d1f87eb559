"""The two sides of a record that a transformation can work on: its key and its value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, TypeVar

from connect.data import Batch, Column, Record, Schema

__all__ = ["KEY", "VALUE", "Side", "copy_of"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_readers: dict[type[Record], Callable[[Any], tuple[Any, ...]]] = {}


def copy_of(record: R) -> R:
    """A record equal to this one, for its maker to change before anybody else sees it."""
    kind = type(record)
    read = _readers.get(kind)
    if read is None:
        read = _readers[kind] = attrgetter(*(field.name for field in fields(kind)))
    return kind(*read(record))


class Side:
    """The key or the value of a record: how to read it and how to put another in its place."""

    __slots__ = ("name", "read")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Final[Callable[[Record], tuple[Schema | None, Any]]] = attrgetter(f"{name}_schema", name)
        """The schema of a record's key or value, and that itself."""

    @abstractmethod
    def put(self, record: R, schema: Schema | None, data: object) -> R:
        """The record with another schema and another key or value."""

    @abstractmethod
    def column(self, batch: Batch[Any]) -> Column:
        """The keys or the values of a batch."""

    @abstractmethod
    def put_column(self, batch: B, column: Column) -> B:
        """The batch with other keys or values."""


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

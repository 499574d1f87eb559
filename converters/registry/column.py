"""A column of messages, decoded to Python values or straight into Arrow, whichever its reader asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from connect.data import ArrowColumn, Column, Schema, Type
from connect.data.column import taken
from converters.registry.codecs import ArrowDecoder, Reader

__all__ = ["MessageColumn", "Use"]


@dataclass(slots=True)
class Use:
    """What has been asked for of a column."""

    is_arrow: bool = False


class MessageColumn(Column):
    """Messages of one schema, all of which have been decoded one way or the other, so that none of them is malformed.

    Few sinks need both Python values and Arrow, and to make one of the other takes longer than to decode the messages
    again.
    """

    __slots__ = ("_array", "_messages", "_reader", "_use", "_values")

    def __init__(
        self,
        messages: Sequence[bytes],
        reader: Reader,
        use: Use,
        *,
        values: Sequence[Any] | None = None,
        array: Any = None,
    ) -> None:
        """Take the messages, with their values or an array of them."""
        super().__init__(reader.schema)
        self._messages = messages
        self._reader = reader
        self._use = use
        self._values = values
        self._array = array

    @classmethod
    def decoded(cls, messages: Sequence[bytes], reader: Reader, use: Use, *, arrow: bool) -> MessageColumn:
        """Return the column of these messages; raise :class:`~connect.errors.DataError` if one is malformed."""
        if arrow:
            return cls(messages, reader, use, array=_columns(reader).read(messages))
        return cls(messages, reader, use, values=reader.decode(messages))

    def values(self) -> Sequence[Any]:
        if self._values is None:
            self._values = self._reader.decode(self._messages)
        return self._values

    def to_arrow(self) -> Any:
        from connect.data.arrow import conform  # noqa: PLC0415 - pyarrow is loaded only where columns are read

        self._use.is_arrow = True
        if self._array is None:
            self._array = _columns(self._reader).read(self._messages)
        assert self.schema is not None
        self._array = conform(self._array, self.schema)
        return self._array

    def members(self, name: str) -> Sequence[Any]:
        schema = self.schema
        field = None if schema is None or schema.type is not Type.STRUCT else schema.field(name)
        if field is None or not _pays_by_field(self._reader):
            return super().members(name)
        # The next column is decoded for the purpose; if this one has its values, they are at hand.
        self._use.is_arrow = True
        if self._values is not None or self._array is None or self._array.null_count:
            return super().members(name)
        return ArrowColumn(self._array.field(name), field.schema)

    def has_nulls(self) -> bool:
        if self._array is not None:
            return bool(self._array.null_count)
        return super().has_nulls()

    def slice(self, start: int, stop: int) -> MessageColumn:
        return MessageColumn(
            self._messages[start:stop],
            self._reader,
            self._use,
            values=None if self._values is None else self._values[start:stop],
            array=None if self._array is None else self._array.slice(start, max(stop - start, 0)),
        )

    def take(self, indices: Sequence[int]) -> MessageColumn:
        array = self._array
        if array is not None:
            # pyarrow cannot tell that an empty list holds integers.
            array = array.take(list(indices)) if len(indices) else array.slice(0, 0)
        values = None if self._values is None else taken(self._values, indices)
        return MessageColumn(taken(self._messages, indices), self._reader, self._use, values=values, array=array)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"MessageColumn(<{len(self)} messages>, {self.schema!r})"


@lru_cache(maxsize=1024)
def _is_flat(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and all(field.schema.type.is_primitive for field in schema.fields)


@cache
def _has_arrow() -> bool:
    return find_spec("pyarrow") is not None and find_spec("numpy") is not None


def _pays_by_field(reader: Reader) -> bool:
    """Return whether fields are made sooner from Arrow than from structs: if no field has parts itself."""
    if reader.columns is None or reader.schema is None or not _is_flat(reader.schema) or not _has_arrow():
        return False
    return _columns(reader).is_fast


def _columns(reader: Reader) -> ArrowDecoder:
    assert reader.columns is not None
    return reader.columns()

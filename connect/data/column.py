"""Columns: the keys or values of a batch as a sequence that is computed only when it is read.

A :class:`Column` holds the keys or the values of a batch and their schema, either as plain Python values or as Arrow.
The other columns of a batch (offsets, timestamps, headers) are ordinary sequences; :class:`Constant` and :class:`Lazy`
are cheap kinds of them.
"""

from __future__ import annotations

import builtins
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar, overload

from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowColumn", "Column", "Constant", "Lazy", "StructColumn", "ValueColumn", "taken"]

T = TypeVar("T")


class Constant(Sequence[T]):
    """A sequence that repeats one value ``length`` times."""

    __slots__ = ("_length", "value")

    def __init__(self, value: T, length: int) -> None:
        self.value = value
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return repeat(self.value, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return Constant(self.value, len(range(*index.indices(self._length))))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self.value


class Lazy(Sequence[T]):
    """A sequence of known length whose elements are computed when the first one is read."""

    __slots__ = ("_compute", "_length", "_values")

    def __init__(self, length: int, compute: Callable[[], Sequence[T]]) -> None:
        self._length = length
        self._compute: Callable[[], Sequence[T]] | None = compute
        self._values: Sequence[T] | None = None

    def values(self) -> Sequence[T]:
        """Return the elements."""
        if self._values is None:
            assert self._compute is not None
            self._values = self._compute()
            # What the values were computed from, often the client's messages, may be freed now.
            self._compute = None
        return self._values

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return iter(self.values())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice) and self._values is None:
            return Lazy(len(range(*index.indices(self._length))), lambda: self.values()[index])
        return self.values()[index]


def taken(values: Sequence[T], indices: Sequence[int]) -> Sequence[T]:
    """Return the elements at these indices, in this order; constant if ``values`` is constant."""
    if isinstance(values, Constant):
        return Constant(values.value, len(indices))
    known = values.values() if isinstance(values, Lazy) else values
    return [known[index] for index in indices]


class Column(Sequence[Any]):
    """The keys or the values of a batch: a schema (``None``: schemaless) and one value per record."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema

    @abstractmethod
    def values(self) -> Sequence[Any]:
        """Return the values as the plain Python types of :mod:`connect.data`."""

    @abstractmethod
    def to_arrow(self) -> pa.Array[Any]:
        """Return the values as an Arrow array of the schema's Arrow type. Needs pyarrow.

        Raises :class:`~connect.errors.DataError` if a value does not fit the schema.
        """

    def has_nulls(self) -> bool:
        """Return whether a value is null."""
        return any(map(is_, self.values(), repeat(None)))

    def members(self, name: str) -> Sequence[Any]:
        """Return what the field ``name`` has in each value, all of which are structs; ``None`` where it is missing.

        Code that needs fields one after the other, and no structs, reads them here: the structs need not be made.
        """
        structs = self.values()
        try:
            return [struct[name] for struct in structs]
        except KeyError:
            return [struct.get(name) for struct in structs]

    @abstractmethod
    def slice(self, start: int, stop: int) -> Column:
        """Return the values from ``start`` (inclusive) to ``stop`` (exclusive)."""

    @abstractmethod
    def take(self, indices: Sequence[int]) -> Column:
        """Return the values at these indices, in this order."""

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: builtins.slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | builtins.slice) -> Any:
        return self.values()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())


class ValueColumn(Column):
    """A column of plain Python values."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any], schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._values = values

    def values(self) -> Sequence[Any]:
        return self._values

    def to_arrow(self) -> pa.Array[Any]:
        from connect.data.arrow import to_array  # noqa: PLC0415 - pyarrow is loaded only where columns are read

        return to_array(self._values, self.schema)

    def slice(self, start: int, stop: int) -> ValueColumn:
        return ValueColumn(self._values[start:stop], self.schema)

    def take(self, indices: Sequence[int]) -> ValueColumn:
        return ValueColumn(taken(self._values, indices), self.schema)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in islice(self._values, 3))
        return f"ValueColumn([{shown}{', ...' if len(self) > 3 else ''}], {self.schema!r})"


class StructColumn(Column):
    """A column of structs, none of them null, stored as the values of each field. The structs are created on demand.

    Code that adds a field to many structs, or writes them out, does not need to create them.
    """

    __slots__ = ("_values", "fields")

    def __init__(self, fields: Mapping[str, Sequence[Any]], schema: Schema) -> None:
        """Take at least one field, in the order of the schema, each with one value per record."""
        super().__init__(schema)
        self.fields = fields
        self._values: Sequence[Any] | None = None

    def values(self) -> Sequence[Any]:
        if self._values is None:
            names = tuple(self.fields)
            self._values = [dict(zip(names, row, strict=True)) for row in zip(*self.fields.values(), strict=True)]
        return self._values

    def to_arrow(self) -> pa.Array[Any]:
        from connect.data.arrow import to_array  # noqa: PLC0415 - as above

        return to_array(self.values(), self.schema)

    def has_nulls(self) -> bool:
        return False

    def members(self, name: str) -> Sequence[Any]:
        return self.fields[name] if name in self.fields else super().members(name)

    def slice(self, start: int, stop: int) -> StructColumn:
        assert self.schema is not None
        return StructColumn({name: values[start:stop] for name, values in self.fields.items()}, self.schema)

    def take(self, indices: Sequence[int]) -> StructColumn:
        assert self.schema is not None
        return StructColumn({name: taken(values, indices) for name, values in self.fields.items()}, self.schema)

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def __repr__(self) -> str:
        return f"StructColumn({', '.join(self.fields)}, {len(self)} of {self.schema!r})"


class ArrowColumn(Column):
    """A column stored in Arrow. Its Python values are created when they are first read."""

    __slots__ = ("_array", "_values")

    def __init__(self, array: pa.Array[Any], schema: Schema | None) -> None:
        super().__init__(schema)
        self._array = array
        self._values: Sequence[Any] | None = None

    @classmethod
    def of(cls, column: Column) -> ArrowColumn:
        """Return a column in Arrow that keeps the values it was made of; raises :class:`~connect.errors.DataError` if
        one does not fit the schema.
        """
        made = cls(column.to_arrow(), column.schema)
        if not isinstance(column, ArrowColumn) or column.has_values:
            made._values = column.values()
        return made

    @property
    def has_values(self) -> bool:
        """Whether there are Python values, too."""
        return self._values is not None

    def values(self) -> Sequence[Any]:
        if self._values is None:
            from connect.data.arrow import to_values  # noqa: PLC0415 - as above

            self._values = to_values(self._array, self.schema)
        return self._values

    def to_arrow(self) -> pa.Array[Any]:
        if self.schema is not None:
            from connect.data.arrow import conform  # noqa: PLC0415 - as above

            self._array = conform(self._array, self.schema)
        return self._array

    def has_nulls(self) -> bool:
        return self.to_arrow().null_count > 0

    def slice(self, start: int, stop: int) -> ArrowColumn:
        part = ArrowColumn(self._array.slice(start, max(stop - start, 0)), self.schema)
        if self._values is not None:
            part._values = self._values[start:stop]
        return part

    def take(self, indices: Sequence[int]) -> ArrowColumn:
        # pyarrow cannot tell that an empty list holds integers.
        array = self._array.take(list(indices)) if len(indices) else self._array.slice(0, 0)
        part = ArrowColumn(array, self.schema)
        if self._values is not None:
            part._values = taken(self._values, indices)
        return part

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"ArrowColumn(<{len(self)} of {self._array.type}>, {self.schema!r})"

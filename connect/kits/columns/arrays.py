"""Arrow arrays made of numpy's: numbers, spans of messages, lists, and values that stand between nulls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from connect.kits.columns.cursors import Cursor, Messages, Vector

__all__ = ["Spread", "UnorderedError", "bits", "fixed_size", "list_offsets", "merged", "repetitive", "spans", "texts"]


class UnorderedError(Exception):
    """Raised for texts that do not follow each other, which no message causes: it guards what Arrow does not check."""


def _buffer(values: Vector) -> Any:
    data: Any = np.ascontiguousarray(values)
    return pa.py_buffer(data)


class Spread:
    """Where values stand in a longer array, which is null elsewhere."""

    def __init__(self, places: Vector, length: int) -> None:
        self.places = places
        self.length = length

    @cached_property
    def validity(self) -> Any:
        """The bitmap of an array that has values at these places."""
        present = np.zeros(self.length, np.bool_)
        present[self.places] = True
        return _buffer(np.packbits(present, bitorder="little"))

    @property
    def nulls(self) -> int:
        """The number of nulls."""
        return self.length - len(self.places)

    @cached_property
    def mask(self) -> Any:
        """An array that is true where the value is null."""
        absent = np.ones(self.length, np.bool_)
        absent[self.places] = False
        return pa.array(absent)

    def numbers(self, numbers: Vector) -> Any:
        """Return an array of numbers at these places, and nulls elsewhere."""
        return _of_buffers(pa.int32(), self.over(numbers.astype(np.int32)), self)

    def over(self, values: Vector) -> Vector:
        """Return the values at their places, with zeros elsewhere."""
        full = np.zeros((self.length, *values.shape[1:]), values.dtype)
        full[self.places] = values
        return full

    def apply(self, array: Any) -> Any:
        """Return an array of values at these places."""
        return array.take(self.numbers(np.arange(len(self.places))))


def _of_buffers(data_type: Any, values: Vector, spread: Spread | None = None) -> Any:
    """Return an array of fixed-size values; ``values`` are already spread."""
    data = _buffer(values)
    if spread is None:
        return pa.Array.from_buffers(data_type, len(values), [None, data], 0)
    return pa.Array.from_buffers(data_type, spread.length, [spread.validity, data], spread.nulls)


def fixed_size(data_type: Any, values: Vector, spread: Spread | None = None) -> Any:
    """Return an array of values that all take the same number of bytes."""
    return _of_buffers(data_type, values if spread is None else spread.over(values), spread)


def bits(values: Vector, spread: Spread | None) -> Any:
    """Return an array of booleans from zeros and ones."""
    full = values if spread is None else spread.over(values)
    data = _buffer(np.packbits(full, bitorder="little"))
    validity, nulls = (None, 0) if spread is None else (spread.validity, spread.nulls)
    return pa.Array.from_buffers(pa.bool_(), len(full), [validity, data], nulls)


def spans(messages: Messages, starts: Vector, ends: Vector, spread: Spread | None) -> Any:
    """Return the bytes between positions that never decrease."""
    count = len(starts)
    # As one array, these spans and what lies between them alternate; Arrow copies every second one.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = messages.last
    if (np.diff(offsets) < 0).any():
        raise UnorderedError
    data = [None, _buffer(offsets), _buffer(messages.data)]
    both = pa.Array.from_buffers(pa.binary(), 2 * count, data, 0)
    numbers: Any = np.arange(0, 2 * count, 2, dtype=np.int32)
    wanted: Any = pa.array(numbers) if spread is None else spread.numbers(numbers)
    return both.take(wanted)


def texts(cursor: Cursor, starts: Vector, ends: Vector, spread: Spread | None) -> Any:
    """Return the texts between positions that never decrease. Messages in which one is not UTF-8 are marked."""
    try:
        return spans(cursor.messages, starts, ends, spread).cast(pa.string())
    except pa.ArrowInvalid:
        found = spans(cursor.messages, starts, ends, None).to_pylist()
        good = np.fromiter(map(_is_text, found), np.bool_, len(found))
        cursor.mark(~good)
        return spans(cursor.messages, starts, np.where(good, ends, starts), spread).cast(pa.string())


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def merged(arrays: Sequence[Any], places: Sequence[Vector], length: int) -> Any:
    """Return an array with the values of each array at its places, and nulls elsewhere."""
    everywhere = np.concatenate(places)
    return Spread(everywhere, length).apply(pa.concat_arrays(arrays))


def repetitive(keys: Any, owners: Vector) -> Vector:
    """Return the maps that have a key more than once."""
    encoded = keys.dictionary_encode()
    kinds = len(encoded.dictionary)
    numbers = np.sort(owners * kinds + encoded.indices.to_numpy())
    return np.unique(numbers[1:][numbers[1:] == numbers[:-1]] // kinds)


def list_offsets(counts: Vector, spread: Spread | None) -> tuple[Any, Any]:
    """Return the offsets and the mask of an array of lists."""
    full = counts if spread is None else spread.over(counts)
    offsets = np.zeros(len(full) + 1, np.int32)
    np.cumsum(full, out=offsets[1:])
    return pa.array(offsets), None if spread is None or not spread.nulls else spread.mask

"""Decodes messages of one schema into Arrow arrays, in shares of bounded size. Importing this needs numpy and pyarrow.

The decoder by row is the specification. Single messages that the parts of a schema do not read themselves, and whole
schemas without parts, are left to that decoder, which also decides what is wrong with a message. So both give the same
values and the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from connect.data import Schema
from connect.data.arrow import to_array
from connect.kits.columns.arrays import UnorderedError
from connect.kits.columns.cursors import Cursor, Messages, Vector

__all__ = ["ColumnDecoder"]

_LEAST_MESSAGES: Final = 64
"""The number of messages from which reading them together is faster than one after the other."""
_SHARE_BYTES: Final = 2 << 20
"""The size of the messages that are read together."""
_MOST_BYTES: Final = 8 << 20
"""The size from which messages are read one after the other: the positions of many elements take much memory."""
_Bytes: TypeAlias = Callable[[int, int], bytes | memoryview]
_Rows: TypeAlias = Callable[[int, int], Sequence[bytes]]


class Root(Protocol):
    """Reads the values of a schema."""

    def read(self, cursor: Cursor) -> Any:
        """Return the value of each message as an Arrow array; move the cursor behind them, or mark the message."""


class ColumnDecoder:
    """The decoder for the messages of one schema."""

    def __init__(
        self, root: Root | None, schema: Schema, decode: Callable[[Sequence[bytes]], list[Any]], header: int
    ) -> None:
        """Take what reads messages together, if anything can, what reads them by row, and the size of their headers."""
        self._root = root
        self._header = header
        self._schema = schema
        self._decode = decode

    @property
    def is_fast(self) -> bool:
        """Whether messages are read together, and not one after the other."""
        return self._root is not None

    def read(self, messages: Sequence[bytes]) -> Any:
        """Return the values of messages, headers included, as an Arrow array of the schema's type.

        Raises :class:`~connect.errors.DataError` for the first malformed message, or if Arrow cannot hold a value.
        """
        if self._root is None:
            return self._by_row(messages)
        ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)))
        return self._read(
            ends, lambda start, stop: b"".join(messages[start:stop]), lambda start, stop: messages[start:stop]
        )

    def read_array(self, messages: Any) -> Any:
        """Return the values of an Arrow array of messages, none of which is null; errors as in :meth:`read`."""
        if self._root is None or not len(messages):
            return self._by_row(messages.to_pylist())
        binary = messages.cast(pa.binary())
        offsets = np.frombuffer(binary.buffers()[1], np.int32)[binary.offset :][: len(binary) + 1]
        data = memoryview(binary.buffers()[2])
        return self._read(
            (offsets[1:] - offsets[0]).astype(np.int64),
            lambda start, stop: data[offsets[start] : offsets[stop]],
            lambda start, stop: binary[start:stop].to_pylist(),
        )

    def _by_row(self, messages: Sequence[bytes]) -> Any:
        return to_array(self._decode(messages), self._schema)

    def _read(self, ends: Vector, data: _Bytes, rows: _Rows) -> Any:
        """Return the values of messages with these ends, whose bytes and rows are given from one number to another."""
        try:
            arrays = [self._share(ends, start, stop, data, rows) for start, stop in _shares(ends)]
            return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        except (UnorderedError, pa.ArrowInvalid):
            # Whatever Arrow cannot hold, such as more than 2 GiB of text, has its error there.
            return self._by_row(rows(0, len(ends)))

    def _share(self, ends: Vector, start: int, stop: int, data: _Bytes, rows: _Rows) -> Any:
        assert self._root is not None
        first = ends[start - 1] if start else 0
        count = stop - start
        if count < _LEAST_MESSAGES or ends[stop - 1] - first > _MOST_BYTES:
            return self._by_row(rows(start, stop))
        messages = Messages(data(start, stop), ends[start:stop] - first)
        cursor = messages.body(self._header)
        array = self._root.read(cursor)
        cursor.close()
        odd = np.flatnonzero(messages.marked)
        if not len(odd):
            return array
        others = self._by_row([rows(number, number + 1)[0] for number in (start + odd).tolist()])
        places = np.arange(count, dtype=np.int32)
        places[odd] = count + np.arange(len(odd))
        return pa.concat_arrays([array, others]).take(pa.array(places))


def _shares(ends: Vector) -> Iterator[tuple[int, int]]:
    """Divide messages into shares of bounded size, since positions take more memory than bytes."""
    start, count = 0, len(ends)
    while start < count:
        first = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, first + _SHARE_BYTES, "right")), start + _LEAST_MESSAGES)
        stop = stop if count - stop >= _LEAST_MESSAGES else count
        yield start, stop
        start = stop

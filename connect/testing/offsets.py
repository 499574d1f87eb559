"""In-memory source offsets, stored the way the runtime stores them on a topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from connect.data import Offset, SourceRecord
from connect.errors import DataError

__all__ = ["StoredOffsets"]


class StoredOffsets:
    """The newest offset of each source partition; serves as the ``offset_storage_reader`` of a source task.

    As in the runtime, partitions and offsets are converted to JSON, the order of a partition's keys matters, and
    records with an empty source partition are not stored.

    >>> offsets = StoredOffsets()
    >>> run_source(MyConnector, props, offsets=offsets)   # everything
    >>> run_source(MyConnector, props, offsets=offsets)   # what is new since
    """

    def __init__(self, offsets: Iterable[tuple[Offset, Offset]] = ()) -> None:
        self._offsets: dict[str, str] = {}
        for partition, offset in offsets:
            self.put(partition, offset)

    def offset(self, partition: Offset) -> Offset | None:
        """Return the offset of a source partition."""
        text = self._offsets.get(_json(partition))
        return None if text is None else dict(json.loads(text))

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        """Return the offset of each source partition, or ``None`` where none is stored."""
        return [self.offset(partition) for partition in partitions]

    def put(self, partition: Offset, offset: Offset) -> None:
        """Store an offset; raise :class:`~connect.errors.DataError` if it is not a flat map that JSON can hold."""
        if partition:
            self._offsets[_json(partition)] = _json(offset)

    def keep(self, records: Iterable[SourceRecord]) -> None:
        """Store the offsets of records, as the runtime does once Kafka has acknowledged them."""
        for record in records:
            self.put(record.source_partition, record.source_offset)

    def items(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return every source partition with its offset."""
        return [(json.loads(partition), json.loads(offset)) for partition, offset in self._offsets.items()]


def _json(part: Offset) -> str:
    wrong = [name for name, value in part.items() if not isinstance(value, str | int | float | bool | None)]
    if wrong or not all(isinstance(name, str) for name in part):
        raise DataError(
            f"Source partition or offset {dict(part)!r} cannot be stored: its keys must be strings and its values "
            "strings, numbers, booleans or nulls."
        )
    return json.dumps(dict(part))

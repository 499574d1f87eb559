"""Stream offsets: what Spark keeps in its checkpoint, and how the records of a batch are found between two of them.

A stream offset maps each source partition, as JSON, to its source offset and the number of its records before it. When
Spark requests a batch again, both are used to find its end: up to the record with that source offset or, where a
source's offsets contain more than a position (such as how often it was started), up to that many records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from connect.data import Offset, SourceBatch
from connect.errors import ConnectError
from connect.internals.chain.source import by_source_partition

__all__ = ["Replay", "StreamOffset", "advanced", "known_offsets"]

StreamOffset: TypeAlias = dict[str, Any]
"""A stream offset as Spark keeps it."""

_FURTHER: Final = 2
"""The search for a record by its source offset ends after this multiple of the expected number of records."""


def known_offsets(place: Mapping[str, Any]) -> list[tuple[Offset, Offset]]:
    """Return the source partitions of a stream offset, with their source offsets."""
    return [(json.loads(partition), kept["offset"]) for partition, kept in place.items()]


def advanced(place: Mapping[str, Any], batches: Iterable[SourceBatch]) -> StreamOffset:
    """Return the stream offset after these records; raises :class:`~connect.errors.ConnectError` if they have no source
    offsets.
    """
    after = dict(place)
    for batch in batches:
        for partition, part in _by_partition(batch):
            if partition == "{}":
                raise ConnectError(
                    f"The records of {batch.topic} have no source partition, so a stream could not continue "
                    "after them: read them with spark.read, or let the connector set source partitions and "
                    "offsets."
                )
            count = after.get(partition, {}).get("records", 0) + len(part)
            after[partition] = {"offset": dict(part.source_offsets[-1]), "records": count}
    return after


class Replay:
    """Finds the records between two stream offsets again, among those the source gives after the first."""

    def __init__(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> None:
        self._wanted = {
            partition: _Cut(kept["offset"], kept["records"] - start.get(partition, {}).get("records", 0))
            for partition, kept in end.items()
            if kept != start.get(partition)
        }

    @property
    def done(self) -> bool:
        """Whether all of them have been found."""
        return all(cut.done for cut in self._wanted.values())

    def take(self, batches: Iterable[SourceBatch]) -> None:
        """Search the source's next records."""
        for batch in batches:
            for partition, part in _by_partition(batch):
                if (cut := self._wanted.get(partition)) is not None:
                    cut.take(part)

    def records(self) -> Iterator[SourceBatch]:
        """Yield the records, once all are found or the source has no more.

        Raises :class:`~connect.errors.ConnectError` if the source no longer has all of them.
        """
        for partition, cut in self._wanted.items():
            yield from cut.records(partition)


class _Cut:
    """The records of one source partition up to a stream offset."""

    def __init__(self, offset: Offset, count: int) -> None:
        self.done = False
        self._offset = dict(offset)
        self._count = count
        self._held: list[SourceBatch] = []
        self._seen = 0
        self._found: int | None = None
        """The number of records up to and including the one with the source offset."""

    def take(self, batch: SourceBatch) -> None:
        if self.done:
            return
        self._held.append(batch)
        for offset in batch.source_offsets:
            if dict(offset) == self._offset:
                self._found = self._seen + 1
            elif self._found is not None:
                self.done = True
                return
            self._seen += 1
            if self._seen >= (self._count if self._found is not None else _FURTHER * self._count):
                self.done = True
                return

    def records(self, partition: str) -> Iterator[SourceBatch]:
        if self._found is None and self._seen < self._count:
            raise ConnectError(
                "The source no longer has all records that the stream has begun to process: "
                f"{self._count - self._seen} of source partition {partition} are missing. Restore them, or use "
                "another checkpoint location, which reads everything again."
            )
        left = self._count if self._found is None else self._found
        for batch in self._held:
            if left:
                yield batch if len(batch) <= left else batch.slice(0, left)
            left = max(0, left - len(batch))


def _by_partition(batch: SourceBatch) -> Iterator[tuple[str, SourceBatch]]:
    """Divide a batch by source partition; yields each partition as JSON with its part."""
    return ((_text(part.source_partitions[0]), part) for part in by_source_partition(batch) if len(part))


def _text(partition: Offset) -> str:
    return json.dumps(dict(partition), sort_keys=True)

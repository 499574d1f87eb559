"""Encodes the runs of a partition as a few chunks, each a record with a key of its own, so that compaction keeps it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from connect.errors import DataError
from connectors.mirror.records import Fields, text_bytes
from connectors.mirror.runs import Generation, Run, Runs

__all__ = ["RUNS_IN_CHUNK", "RunChunk", "RunKey", "RunWriter", "StoredRuns"]

RUNS_IN_CHUNK: Final = 128

_NUMBERS: Final = struct.Struct(">ii")
_START: Final = struct.Struct(">qqi")
_VERSION: Final = 0
_NO_ID: Final = UUID(int=0)
_LEAST_RUN: Final = 4
"""The number of bytes of the shortest run."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of a record: a partition of the source and the number of the chunk."""

    topic: str
    partition: int
    chunk: int

    def encode(self) -> bytes:
        """Encode the key."""
        return text_bytes(self.topic) + _NUMBERS.pack(self.partition, self.chunk)

    @classmethod
    def decode(cls, key: bytes | None) -> RunKey:
        """Decode a key; raise :class:`~connect.errors.DataError` if it is malformed."""
        fields = Fields(key, "key of runs")
        found = cls(fields.text(), fields.int32(), fields.int32())
        fields.end()
        return found


@dataclass(frozen=True, slots=True)
class RunChunk:
    """The value of a record: some runs, and the ids of the topics that they belong to."""

    generation: Generation
    runs: tuple[Run, ...]

    def encode(self) -> bytes:
        """Encode the value."""
        source, target = self.generation.source or _NO_ID, self.generation.target or _NO_ID
        first = self.runs[0] if self.runs else Run(0, 0, 0, 0)
        start = _START.pack(first.upstream, first.downstream, len(self.runs))
        parts = bytearray(struct.pack(">h", _VERSION) + source.bytes + target.bytes + start)
        upstream, downstream = first.upstream, first.downstream
        for run in self.runs:
            for number in (run.upstream - upstream, run.downstream - downstream, run.length, run.upstream - run.since):
                parts += _varint(number)
            upstream, downstream = run.upstream_end, run.downstream_end
        return bytes(parts)

    @classmethod
    def decode(cls, value: bytes) -> RunChunk:
        """Decode a value; raise :class:`~connect.errors.DataError` if it is malformed."""
        fields = Fields(value, "record of runs")
        fields.version(_VERSION)
        generation = Generation(_topic_id(fields), _topic_id(fields))
        upstream, downstream, count = fields.int64(), fields.int64(), fields.int32()
        if not 0 <= count <= len(value) // _LEAST_RUN:
            raise DataError(f"The record of runs claims to have {count} runs in {len(value)} bytes.")
        runs: list[Run] = []
        for _ in range(count):
            upstream, downstream = upstream + fields.varint(), downstream + fields.varint()
            length = fields.varint()
            run = Run(upstream, downstream, length, upstream - fields.varint())
            if length < 1 or run.since > upstream:
                raise DataError(f"The record of runs contains an impossible run: {run}.")
            runs.append(run)
            upstream, downstream = run.upstream_end, run.downstream_end
        fields.end()
        return cls(generation, tuple(runs))


class RunWriter:
    """Decides which records to write so that the topic matches the runs of a partition."""

    def __init__(self, topic: str, partition: int, written_chunks: int = 0) -> None:
        self._topic = topic
        self._partition = partition
        self._written = written_chunks

    def records(self, runs: Runs) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the key and value of each chunk that has changed since the last call; ``None`` removes a chunk.

        Yields nothing while the runs are behind the target. The first chunk is written even without runs, for the topic
        ids.
        """
        changed = None if runs.is_behind else runs.take_changes()
        if changed is None:
            return
        kept = runs.runs
        chunks = max(1, -(-len(kept) // RUNS_IN_CHUNK))
        for chunk in range(changed // RUNS_IN_CHUNK, chunks):
            part = kept[chunk * RUNS_IN_CHUNK : (chunk + 1) * RUNS_IN_CHUNK]
            yield self._key(chunk), RunChunk(runs.generation, part).encode()
        for chunk in range(chunks, self._written):
            yield self._key(chunk), None
        self._written = chunks

    def _key(self, chunk: int) -> bytes:
        return RunKey(self._topic, self._partition, chunk).encode()


@dataclass(slots=True)
class _Stored:
    generation: Generation
    chunks: dict[int, Sequence[Run]] = field(default_factory=dict)
    runs: Runs | None = None


class StoredRuns:
    """The contents of the topic of runs, fed record by record from its beginning. For one thread."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, int], _Stored] = {}

    def read(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record; raise :class:`~connect.errors.DataError` if it is malformed."""
        found = RunKey.decode(key)
        partition = found.topic, found.partition
        stored = self._stored.get(partition)
        if value is None:
            if stored is not None:
                stored.chunks.pop(found.chunk, None)
                stored.runs = None
            return
        chunk = RunChunk.decode(value)
        if stored is None or stored.generation != chunk.generation:
            # A topic was recreated: the runs of the former one no longer apply.
            stored = self._stored[partition] = _Stored(chunk.generation)
        stored.chunks[found.chunk] = chunk.runs
        stored.runs = None

    def runs(self, topic: str, partition: int) -> Runs | None:
        """Return the runs of a partition of the source; ``None`` if none are stored."""
        stored = self._stored.get((topic, partition))
        if stored is None:
            return None
        if stored.runs is None:
            every = (run for chunk in stored.chunks.values() for run in chunk)
            stored.runs = Runs.of(stored.generation, every)
        return stored.runs

    def writer(self, topic: str, partition: int) -> RunWriter:
        """Return a writer that continues the records of a partition."""
        stored = self._stored.get((topic, partition))
        return RunWriter(topic, partition, 1 + max(stored.chunks, default=-1) if stored else 0)

    def partitions(self) -> Mapping[tuple[str, int], Generation]:
        """Return the partitions of the source that have stored runs, with their topic ids."""
        return {partition: stored.generation for partition, stored in self._stored.items()}


def _topic_id(fields: Fields) -> UUID | None:
    found = UUID(bytes=fields.bytes(16))
    return None if found == _NO_ID else found


def _varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    parts = bytearray()
    while left > 0x7F:
        parts.append(left & 0x7F | 0x80)
        left >>= 7
    parts.append(left)
    return bytes(parts)

"""Measurements of each mirrored partition, under names close to those of MirrorMaker's MBeans."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final, cast

from connect.data import SourceBatch, TopicPartition
from connect.internals.kafka.clients.statistics import ClientStatistics
from connect.measurement import Measurement

__all__ = ["MirrorMeasurements", "Position", "Recent"]

_WINDOW_SECONDS: Final = 30.0
_MOST_PARTITIONS: Final = 200
"""Most partitions of a task that are reported: those with the largest lag."""

_OF_CLIENT: Final = {
    "connection-count": "Connections of the consumer to brokers of the source.",
    "incoming-byte-total": "Bytes that the consumer has received.",
    "outgoing-byte-total": "Bytes that the consumer has sent.",
    "records-consumed-total": "Records that the consumer has received.",
    "bytes-consumed-total": "Bytes of the records that the consumer has received.",
}
"""The statistics of the consumer that are reported."""


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, count: int, total: float, least: float, most: float) -> None:
        self.count += count
        self.total += total
        self.least = min(self.least, least)
        self.most = max(self.most, most)


class Recent:
    """Count, sum and bounds of the numbers of the last 30 to 60 seconds. For one thread."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._before = now
        self._last, self._now = _Sum(), _Sum()

    def add(self, now: float, count: int, total: float, least: float, most: float) -> None:
        """Add some numbers at once."""
        self._turn(now)
        self._now.add(count, total, least, most)

    def look(self, now: float) -> tuple[_Sum, float]:
        """Return the sum of all numbers, and the seconds that they cover."""
        self._turn(now)
        both = _Sum(self._last.count, self._last.total, self._last.least, self._last.most)
        both.add(self._now.count, self._now.total, self._now.least, self._now.most)
        return both, max(1.0, now - self._before)

    def bounds(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield the least, the greatest and the mean of the numbers, unless there are none."""
        known, _ = self.look(now)
        if known.count:
            yield from (("min", known.least), ("max", known.most), ("avg", known.total / known.count))

    def _turn(self, now: float) -> None:
        if now - self._began >= 2 * _WINDOW_SECONDS:
            self._last, self._now, self._before, self._began = _Sum(), _Sum(), now - _WINDOW_SECONDS, now
        elif now - self._began >= _WINDOW_SECONDS:
            self._last, self._now = self._now, _Sum()
            self._before, self._began = self._began, now


@dataclass(frozen=True, slots=True)
class _Batch:
    first: int
    last: int
    count: int
    earliest: int
    latest: int
    total: int
    newest: int
    """The timestamp of the last record."""


@dataclass(frozen=True, slots=True)
class Position:
    """The offset of a source partition that is read next, and its end offset."""

    next: int
    end: int


@dataclass(slots=True)
class _Partition:
    ages: Recent
    latencies: Recent
    bytes: Recent
    caught_up: float
    """When the partition was last known to be caught up, in seconds since 1970."""

    under_way: deque[_Batch] = field(default_factory=deque)
    records_total: int = 0
    bytes_total: int = 0
    age: float | None = None
    """The age of the last record when it was read, in seconds."""

    latency: float | None = None
    """The seconds that the last record took until it was acknowledged."""


class MirrorMeasurements:
    """Counts what a task has read and what Kafka has acknowledged, a batch at a time. For the task's thread.

    Times are in seconds since 1970. ``labels`` are on every measurement; ``names`` has the target's name of each topic.
    ``client`` is the name of the consumer, without what a configuration adds to it, which may be a secret.
    """

    def __init__(self, labels: tuple[tuple[str, str], ...], names: Mapping[str, str], client: str) -> None:
        self._labels = labels
        self._names = names
        self._client = (("client_id", client),)
        self._of_client: Mapping[str, float] = {}
        self._partitions: dict[TopicPartition, _Partition] = {}

    def read(self, partition: TopicPartition, batch: SourceBatch, size: int, now: float) -> None:
        """Count records that were read, all with timestamps; ``size`` is the bytes of their values."""
        kept = self._partition(partition, now)
        times = cast("Sequence[int]", batch.timestamps)
        first, last = batch.source_offsets[0]["offset"], batch.source_offsets[-1]["offset"]
        count, earliest, latest, total = len(times), min(times), max(times), sum(times)
        kept.under_way.append(_Batch(first, last, count, earliest, latest, total, times[-1]))
        kept.ages.add(now, count, count * now - total / 1000, now - latest / 1000, now - earliest / 1000)
        kept.age = now - times[-1] / 1000
        kept.bytes.add(now, count, size, 0, 0)
        kept.bytes_total += size

    def take_statistics(self, seen: ClientStatistics) -> None:
        """Keep the latest statistics of the consumer."""
        self._of_client = {name: seen.values[name] for name in _OF_CLIENT if name in seen.values}

    def acknowledged(self, partition: TopicPartition, last: int, now: float) -> None:
        """Count all records up to an offset of the source as written to the target."""
        kept = self._partition(partition, now)
        while kept.under_way and kept.under_way[0].last <= last:
            batch = kept.under_way.popleft()
            of_all = batch.count * now - batch.total / 1000
            kept.latencies.add(now, batch.count, of_all, now - batch.latest / 1000, now - batch.earliest / 1000)
            kept.latency = now - batch.newest / 1000
            kept.records_total += batch.count
            kept.caught_up = max(kept.caught_up, batch.latest / 1000)

    def measurements(
        self, places: Mapping[TopicPartition, Position], gaps: Mapping[TopicPartition, int], now: float
    ) -> Iterator[Measurement]:
        """Yield the measurements of the partitions with the largest lag."""
        lags = {partition: self._lag(partition, place, now) for partition, place in places.items()}
        for partition in nlargest(_MOST_PARTITIONS, lags, key=lambda each: lags[each]):
            labels = (
                *self._labels,
                ("topic", self._names.get(partition.topic, partition.topic)),
                ("partition", str(partition.partition)),
            )
            kept = self._partition(partition, now)
            for name, value, text in self._of(kept, lags[partition], gaps.get(partition, 0), now):
                yield Measurement(f"mirror_{name}", value, text, labels)
            yield self._behind(partition, places[partition])
        for name, value in self._of_client.items():
            yield Measurement(f"mirror_consumer_{name.replace('-', '_')}", value, _OF_CLIENT[name], self._client)

    def _behind(self, partition: TopicPartition, place: Position) -> Measurement:
        """Return how far the consumer is behind, by the topic's name at the source, as a consumer has it."""
        labels = (*self._client, ("topic", partition.topic), ("partition", str(partition.partition)))
        behind = max(0, place.end - place.next)
        return Measurement("mirror_consumer_records_lag", behind, "Records that the consumer is behind.", labels)

    def _lag(self, partition: TopicPartition, place: Position, now: float) -> int:
        kept = self._partition(partition, now)
        lag = max(0, place.end - (kept.under_way[0].first if kept.under_way else place.next))
        if not lag:
            kept.caught_up = max(kept.caught_up, now)
        return lag

    def _of(self, kept: _Partition, lag: int, gaps: int, now: float) -> Iterator[tuple[str, float, str]]:
        yield "lag_records", lag, "Records of the source that have not been mirrored yet."
        yield (
            "lag_seconds",
            round(max(0.0, now - kept.caught_up), 3) if lag else 0.0,
            "Seconds since the partition was last caught up.",
        )
        yield "records_total", kept.records_total, "Records that have been mirrored."
        yield "bytes_total", kept.bytes_total, "Bytes of the values that have been read."
        yield "gaps_total", gaps, "Gaps that have been passed."
        sizes, seconds = kept.bytes.look(now)
        yield "record_rate", round(sizes.count / seconds, 1), "Records read per second, over the last 30 to 60 seconds."
        yield (
            "byte_rate",
            round(sizes.total / seconds, 1),
            "Bytes of values read per second, over the last 30 to 60 seconds.",
        )
        for name, last, recent, text in (
            ("record_age", kept.age, kept.ages, "Age of records when they are read."),
            (
                "replication_latency",
                kept.latency,
                kept.latencies,
                "Time from the timestamp of a record to its acknowledgement by the target.",
            ),
        ):
            if last is not None:
                yield f"{name}_seconds", round(last, 3), f"{text} That of the last record."
            for kind, value in recent.bounds(now):
                yield f"{name}_{kind}_seconds", round(value, 3), text

    def _partition(self, partition: TopicPartition, now: float) -> _Partition:
        kept = self._partitions.get(partition)
        if kept is None:
            kept = _Partition(Recent(now), Recent(now), Recent(now), caught_up=now)
            self._partitions[partition] = kept
        return kept

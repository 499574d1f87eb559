"""How far tables are loaded: the offsets that each table keeps, and what they imply together.

Every commit of a connector stores in the table, as text, the next offset of each topic partition whose records go
there. A topic may go to several tables, which are committed one after the other. Then each commit of the load says so
(:class:`Pending`), and a reader of the first table knows that the load is complete only once the others have it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError

__all__ = ["Pending", "Positions", "Step", "TopicPositions", "next_offsets", "next_step", "parse_positions"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A load of one topic partition into several tables: where it began, and the tables that get a commit for it."""

    first: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicPositions:
    """How far one topic is loaded into one table.

    ``windows`` is the number of the saved state of a query's windows, 0 if no window is open.
    """

    topic_id: str | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)
    pending: Mapping[int, Pending] = field(default_factory=dict)
    windows: int = 0


@dataclass(frozen=True, slots=True)
class Positions:
    """How far the topics of one connector are loaded into one table."""

    topics: Mapping[str, TopicPositions] = field(default_factory=dict)

    def offset(self, tp: TopicPartition) -> int | None:
        """Return the next offset of a partition, if the table has stored one."""
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.offsets.get(tp.partition)

    def pending(self, tp: TopicPartition) -> Pending | None:
        """Return the last load of a partition, if it went to several tables and may be incomplete."""
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.pending.get(tp.partition)

    def advanced(self, ranges: Iterable[OffsetRange], tables: Sequence[str] = ()) -> Positions:
        """Return the positions after a load of these ranges, which gets a commit in each of ``tables``."""
        topics = dict(self.topics)
        for item in ranges:
            before = topics.get(item.topic, TopicPositions())
            pending = {number: load for number, load in before.pending.items() if number != item.partition}
            if len(tables) > 1:
                pending[item.partition] = Pending(item.first, tuple(sorted(tables)))
            topics[item.topic] = TopicPositions(
                item.topic_id or before.topic_id, {**before.offsets, item.partition: item.end}, pending, before.windows
            )
        return Positions(topics)

    def holding(self, topic: str, windows: int) -> Positions:
        """Return the positions with another window state for a topic."""
        return Positions({**self.topics, topic: replace(self.topics[topic], windows=windows)})

    def without_pending(self, complete: Mapping[TopicPartition, int]) -> Positions:
        """Return the positions without the loads that are complete, because all tables have reached these offsets."""
        topics = {}
        for name, topic in self.topics.items():
            left = {
                number: load
                for number, load in topic.pending.items()
                if complete.get(TopicPartition(name, number), -1) < topic.offsets[number]
            }
            topics[name] = replace(topic, pending=left)
        return Positions(topics)

    def to_text(self) -> str:
        """Compact JSON: for each topic its id, the next offsets ordered by partition, loads and windows."""
        return json.dumps({name: _written(topic) for name, topic in self.topics.items()}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a load whose records the tables in ``done`` have already; ``rest`` is left for later steps."""

    ranges: tuple[OffsetRange, ...]
    done: frozenset[str]
    rest: tuple[OffsetRange, ...]


def parse_positions(text: str, where: str) -> Positions:
    """Parse the output of :meth:`Positions.to_text`; ``where`` names the table in errors."""
    try:
        document: Mapping[str, Any] = json.loads(text)
        return Positions({name: _read(topic) for name, topic in document.items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConnectError(
            f"The offsets that table {where} keeps for this connector cannot be read ({error}): they were "
            "changed by hand. Restore the property or the snapshot, or give the connector another name and an "
            "empty table."
        ) from error


def next_offsets(tables: Mapping[str, Positions]) -> dict[TopicPartition, int]:
    """Return where to continue in each partition, so that every table has all records before that offset."""
    found: dict[TopicPartition, int] = {}
    for tp in _partitions(tables.values()):
        furthest = max(tables.values(), key=lambda table: _at(table, tp))
        offset, load = _at(furthest, tp), furthest.pending(tp)
        if load is not None:
            there = min(_at(tables.get(name, Positions()), tp) for name in load.tables)
            offset = min(offset, max(load.first, there))
        found[tp] = offset
    return found


def next_step(ranges: Sequence[OffsetRange], tables: Mapping[str, Positions]) -> Step:
    """Return the first part of the ranges whose records are in the same tables already.

    Records that some tables already have come first, so that an interrupted load is completed before another one
    begins.
    """
    parts = [_first_part(item, tables) for item in ranges]
    done = max((tables_done for _, tables_done in parts), key=lambda names: (len(names), sorted(names)))
    chosen: list[OffsetRange] = []
    rest: list[OffsetRange] = []
    for item, (part, tables_done) in zip(ranges, parts, strict=True):
        if tables_done != done:
            rest.append(item)
            continue
        chosen.append(part)
        if part.end < item.end:
            rest.append(replace(item, first=part.end))
    return Step(tuple(chosen), done, tuple(rest))


def _first_part(item: OffsetRange, tables: Mapping[str, Positions]) -> tuple[OffsetRange, frozenset[str]]:
    ahead = {name: at for name, table in tables.items() if (at := _at(table, item.topic_partition)) > item.first}
    return replace(item, end=min([item.end, *ahead.values()])), frozenset(ahead)


def _partitions(tables: Iterable[Positions]) -> Iterator[TopicPartition]:
    for table in tables:
        for name, topic in table.topics.items():
            for number in topic.offsets:
                yield TopicPartition(name, number)


def _at(table: Positions, tp: TopicPartition) -> int:
    offset = table.offset(tp)
    return -1 if offset is None else offset


def _written(topic: TopicPositions) -> dict[str, Any]:
    written: dict[str, Any] = {} if topic.topic_id is None else {"id": topic.topic_id}
    last = max(topic.offsets, default=-1)
    written["next"] = [topic.offsets.get(number) for number in range(last + 1)]
    if topic.pending:
        written["load"] = {str(number): [load.first, *load.tables] for number, load in sorted(topic.pending.items())}
    if topic.windows:
        written["windows"] = topic.windows
    return written


def _read(topic: Mapping[str, Any]) -> TopicPositions:
    offsets = {number: int(offset) for number, offset in enumerate(topic["next"]) if offset is not None}
    loads = {int(number): Pending(int(load[0]), tuple(load[1:])) for number, load in topic.get("load", {}).items()}
    return TopicPositions(topic.get("id"), offsets, loads, int(topic.get("windows", 0)))

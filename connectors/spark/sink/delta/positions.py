"""The positions of a connector in one Delta table, as transaction identifiers of the table's log.

Delta's log keeps, for each application id, the last version that a commit has set (``txn`` actions). These survive
checkpoints and log clean-up, whoever else writes to the table, and are read in one step. A connector has these::

    sluice/CONNECTOR                        number: even, a load is planned; odd, it is committed
    sluice/CONNECTOR/TOPIC/PARTITION/from   the next offset of the partition before the load
    sluice/CONNECTOR/TOPIC/PARTITION/to     the next offset after it
    sluice/CONNECTOR/TOPIC/PARTITION/all    for records that transformations route to several tables: the offset
                                            up to which all of those tables have them (-1 where that is the same)
    sluice/CONNECTOR/TOPIC/id/ID            when the topic was known to have that id; the latest counts
    sluice/CONNECTOR/TOPIC/windows/from     the state of a query's windows before the load, a number that names a file
    sluice/CONNECTOR/TOPIC/windows/to       the same after it; 0 if no window is open

A merge can set only one identifier, the number. So the offsets are written before the rows, with an even number, and
the rows count together with the odd number that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from connect.data import TopicPartition

__all__ = ["Positions", "application", "latest_ids"]

_UNKNOWN: Final = "-"
_WINDOWS: Final = "windows"


def application(connector: str) -> str:
    """Return the application id for a connector's numbers."""
    return f"sluice/{quote(connector, safe='')}"


@dataclass(frozen=True, slots=True)
class Positions:
    """The transaction identifiers of one connector in one table."""

    connector: str
    number: int = -1
    """Even while a load is planned, odd once it is committed; -1 if the connector never wrote to the table."""
    before: Mapping[TopicPartition, int] = field(default_factory=dict)
    after: Mapping[TopicPartition, int] = field(default_factory=dict)
    routed: Mapping[TopicPartition, int] = field(default_factory=dict)
    ids: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """When each topic was known to have which id."""
    windows_before: Mapping[str, int] = field(default_factory=dict)
    windows_after: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, connector: str, versions: Mapping[str, int]) -> Positions:
        """Extract the positions from all the transaction identifiers of a table."""
        prefix = application(connector)
        found: dict[str, dict[TopicPartition, int]] = {"from": {}, "to": {}, "all": {}}
        ids: dict[tuple[str, str], int] = {}
        windows: dict[str, dict[str, int]] = {"from": {}, "to": {}}
        for name, version in versions.items():
            if not name.startswith(f"{prefix}/"):
                continue
            topic, partition, kind = name.removeprefix(f"{prefix}/").split("/", 2)
            if partition == "id":
                ids[topic, unquote(kind)] = version
            elif partition == _WINDOWS:
                windows[kind][topic] = version
            elif kind in found:
                found[kind][TopicPartition(topic, int(partition))] = version
        number = versions.get(prefix, -1)
        return cls(connector, number, found["from"], found["to"], found["all"], ids, windows["from"], windows["to"])

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition, up to which this table has all records that belong there."""
        return self.after if self.number % 2 else self.before

    @property
    def windows(self) -> Mapping[str, int]:
        """For each topic that ever had windows, the number of their state."""
        return self.windows_after if self.number % 2 else self.windows_before

    @property
    def complete(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition, up to which all records are in every table they belong in."""
        return {
            tp: self.routed[tp] if self.routed.get(tp, -1) >= 0 else offset
            for tp, offset in {**self.offsets, **self._routed_elsewhere()}.items()
        }

    def _routed_elsewhere(self) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in self.routed.items() if offset >= 0 and tp not in self.offsets}

    def claim(self) -> Mapping[str, int]:
        """Return the changes that take over the table: loads planned earlier can no longer commit."""
        return self._changes(self._next(odd=True), self.offsets, self.offsets, {}, {})

    def plan(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        *,
        routed: bool,
        ids: Mapping[str, str],
        windows: Mapping[str, int],
        now: int,
    ) -> Mapping[str, int]:
        """Return the changes that plan a load; its rows are then committed with the number after that of the plan.

        All tables have the records before ``starts``. ``routed`` says whether those of the load may go to several
        tables; ``ids`` are the ids of its topics, known at the time ``now``, and ``windows`` the states that it leaves.
        """
        before = {**self.offsets, **starts}
        complete = starts if routed else {tp: -1 for tp in ends if tp in self.routed}
        new_ids = self._new_ids(ids, now)
        return self._changes(self._next(odd=False), before, {**before, **ends}, complete, new_ids, windows)

    def commit(self) -> Mapping[str, int]:
        """Return the changes that commit a planned load without rows."""
        return {application(self.connector): self.number + 1}

    def finish(self, offsets: Mapping[TopicPartition, int]) -> Mapping[str, int]:
        """Return the changes that record that all tables have the records up to these offsets."""
        return self._changes(self._next(odd=True), self.offsets, self.offsets, offsets, {})

    def skip(self, offsets: Mapping[TopicPartition, int], now: int) -> Mapping[str, int]:
        """Return the changes after which loading continues from these offsets, whatever the topic ids."""
        there = {**self.offsets, **offsets}
        routed = {tp: offset for tp, offset in offsets.items() if tp in self.routed}
        ids = self._new_ids({topic: _UNKNOWN for topic, _ in offsets}, now)
        return self._changes(self._next(odd=True), there, there, routed, ids)

    def _next(self, *, odd: bool) -> int:
        """Return a number that no load planned so far has, or will have once it is committed."""
        number = self.number + (1 if self.number % 2 else 2)
        return number + 1 if odd else number

    def _new_ids(self, ids: Mapping[str, str], now: int) -> dict[tuple[str, str], int]:
        latest = latest_ids(self.ids)
        return {
            (topic, topic_id): max(now, *(at + 1 for (name, _), at in self.ids.items() if name == topic), 0)
            for topic, topic_id in ids.items()
            if latest.get(topic, _UNKNOWN) != topic_id
        }

    def _changes(
        self,
        number: int,
        before: Mapping[TopicPartition, int],
        after: Mapping[TopicPartition, int],
        routed: Mapping[TopicPartition, int],
        ids: Mapping[tuple[str, str], int],
        windows: Mapping[str, int] | None = None,
    ) -> dict[str, int]:
        prefix = application(self.connector)
        changes = {prefix: number}
        kinds = (("from", before, self.before), ("to", after, self.after), ("all", routed, self.routed))
        for kind, wanted, there in kinds:
            for (topic, partition), offset in wanted.items():
                if there.get(TopicPartition(topic, partition)) != offset:
                    changes[f"{prefix}/{topic}/{partition}/{kind}"] = offset
        states = {**dict.fromkeys(windows or (), 0), **self.windows}
        for kind, new, known in (
            ("from", states, self.windows_before),
            ("to", {**states, **(windows or {})}, self.windows_after),
        ):
            for topic, state in new.items():
                if known.get(topic) != state:
                    changes[f"{prefix}/{topic}/{_WINDOWS}/{kind}"] = state
        for (topic, topic_id), at in ids.items():
            changes[f"{prefix}/{topic}/id/{quote(topic_id, safe='')}"] = at
        return changes


def latest_ids(ids: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """Return the last known id of each topic that has one."""
    found: dict[str, tuple[int, str]] = {}
    for (topic, topic_id), at in ids.items():
        found[topic] = max(found.get(topic, (-1, _UNKNOWN)), (at, topic_id))
    return {topic: topic_id for topic, (_, topic_id) in found.items() if topic_id != _UNKNOWN}

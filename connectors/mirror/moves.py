"""Where a group continues in the other cluster of a flow: one row for each partition that it has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.mirror.checkpoints import FlowTopics, GroupOffset, OffsetTranslator, source_topic, target_topic
from connectors.mirror.records import Checkpoint
from connectors.mirror.runs import Translation

__all__ = ["Move", "moves_back", "moves_by_checkpoints", "moves_over", "read_again"]


@dataclass(frozen=True, slots=True)
class Move:
    """What a group has committed at one cluster, and where it continues at the other; ``None`` if that is not known."""

    origin: GroupOffset
    topic: str
    found: Translation | None
    there: int | None
    """The offset that the group has at the other cluster already."""

    is_measured: bool = True
    """Whether it is known how much is read again."""

    @property
    def is_due(self) -> bool:
        """Whether the offset is to be committed: none is ever moved back."""
        return self.found is not None and (self.there is None or self.found.offset > self.there)

    @property
    def remark(self) -> str:
        """What a reader should know: whether the offset is exact, and why it is not committed, if so."""
        if self.found is None:
            return "unknown: the mirror has noted nothing before this offset"
        if self.there is not None and not self.is_due:
            return "is there already" if self.there == self.found.offset else f"stays at {self.there}, further on"
        if not self.is_measured:
            return "by the last checkpoint"
        return "exact" if self.found.is_exact else "conservative"

    def committed(self) -> GroupOffset:
        """What to commit; only for one that is due."""
        assert self.found is not None
        return GroupOffset(self.topic, self.origin.partition, self.found.offset, self.origin.metadata)

    @property
    def read_again(self) -> int | None:
        """How many records the group reads again at most; ``None`` if that is not known."""
        return self.found.again if self.found is not None and self.is_measured else None

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "topic": self.origin.topic,
            "partition": self.origin.partition,
            "offset": self.origin.offset,
            "topic_there": self.topic,
            "offset_there": None if self.found is None else self.found.offset,
            "read_again": self.read_again,
            "commit": self.is_due,
            "remark": self.remark,
        }


def moves_over(
    flow: FlowTopics, translator: OffsetTranslator, committed: Iterable[GroupOffset], there: Iterable[GroupOffset]
) -> Iterator[Move]:
    """How a group of the source continues at the target."""
    known = _by_place(there)
    for place in sorted(committed, key=_order):
        if flow.filter.should_replicate_topic(place.topic):
            topic = target_topic(flow.policy, flow.source_alias, flow.target_alias, place.topic)
            found = translator.downstream_of(place.topic, place.partition, place.offset)
            yield Move(place, topic, found, known.get((topic, place.partition)))


def moves_by_checkpoints(checkpoints: Iterable[Checkpoint], there: Iterable[GroupOffset]) -> Iterator[Move]:
    """How a group continues at the target by what was told of it last. How much it reads again is not known then."""
    known = _by_place(there)
    for each in sorted(checkpoints, key=lambda each: (each.topic, each.partition)):
        origin = GroupOffset(each.topic, each.partition, each.upstream, each.metadata)
        found = Translation(each.downstream)
        yield Move(origin, each.topic, found, known.get((each.topic, each.partition)), is_measured=False)


def moves_back(
    flow: FlowTopics, translator: OffsetTranslator, committed: Iterable[GroupOffset], there: Iterable[GroupOffset]
) -> Iterator[Move]:
    """How a group that has read mirrored topics at the target continues at the source. Other topics are left out."""
    known = _by_place(there)
    for place in sorted(committed, key=_order):
        topic = source_topic(flow.policy, flow.source_alias, place.topic)
        if topic is not None and flow.filter.should_replicate_topic(topic):
            found = translator.upstream_of(topic, place.partition, place.offset)
            yield Move(place, topic, found, known.get((topic, place.partition)))


def read_again(moves: Iterable[Move]) -> int:
    """How many records a group reads again in all its partitions, at most, as far as that is known."""
    return sum(move.read_again or 0 for move in moves)


def _by_place(offsets: Iterable[GroupOffset]) -> Mapping[tuple[str, int], int]:
    return {(place.topic, place.partition): place.offset for place in offsets}


def _order(place: GroupOffset) -> tuple[str, int]:
    return place.topic, place.partition

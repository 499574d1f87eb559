"""Selects the topics and groups that a flow mirrors, and says why others are left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from connectors.mirror.filters import GroupFilter, TopicFilter, group_filter, topic_filter
from connectors.mirror.policies import ReplicationPolicy, is_cycle, replication_policy

_OF_CONNECT: Final = re.compile(r"(?:.*[._-])?connect(?:[._-].*)?[._-](?:offsets?|configs?|status)")

__all__ = ["INTERNAL_TOPICS", "GroupSelection", "LeftOut", "TopicSelection"]

INTERNAL_TOPICS: Final = "worker.internal.topics"
"""The key under which the worker names the topics with its own state, among them the passwords of all connectors."""


class LeftOut(StrEnum):
    """The reason why a topic or a group is not mirrored."""

    INTERNAL = "internal"
    """It belongs to Kafka, to the mirror or to the worker."""

    CYCLE = "cycle"
    """By its name it comes from the target."""

    CONNECT = "connect"
    """It looks like an internal topic of Kafka Connect. Mirrored both ways, such topics feed each other."""

    FILTER = "filter"
    """The filter does not select it."""

    NO_OFFSETS = "no offsets"
    """The group has committed no offset in a mirrored topic."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """The selection of topics of one flow."""

    filter: TopicFilter
    policy: ReplicationPolicy
    target_alias: str
    replicate_heartbeats: bool = True
    named: frozenset[str] = frozenset()
    """Topics that the configuration names literally, not just by a pattern."""

    internal: frozenset[str] = frozenset()
    """The topics of the worker. They are told by their names, whatever cluster they are in."""

    source_of_itself: str | None = None
    """The alias of the source if it is the same cluster as the target: what came from there would come again."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the selection for a connector's configuration."""
        heartbeats = (props.get("heartbeats.replication.enabled") or "true").strip().lower() == "true"
        target = props.get("target.cluster.alias") or "target"
        named, internal = _items(props.get("topics")), _items(props.get(INTERNAL_TOPICS))
        return cls(topic_filter(props), replication_policy(props), target, heartbeats, named, internal)

    def left_out(self, topic: str) -> LeftOut | None:
        """Return why a topic is not mirrored; ``None`` if it is. Reasons that no filter could change come first."""
        if self.policy.is_internal_topic(topic) or topic in self.internal:
            return LeftOut.INTERNAL
        if any(is_cycle(self.policy, topic, alias) for alias in (self.target_alias, self.source_of_itself) if alias):
            return LeftOut.CYCLE
        if self.filter.should_replicate_topic(topic):
            return LeftOut.CONNECT if topic not in self.named and _OF_CONNECT.fullmatch(topic) else None
        heartbeats = self.replicate_heartbeats and self.policy.is_heartbeats_topic(topic)
        return None if heartbeats else LeftOut.FILTER

    def __contains__(self, topic: object) -> bool:
        return isinstance(topic, str) and self.left_out(topic) is None


def _items(value: str | None) -> frozenset[str]:
    return frozenset(item.strip() for item in (value or "").split(","))


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The selection of groups of one flow. As in MirrorMaker 2, topics only have to pass the filter."""

    filter: GroupFilter
    topics: TopicFilter

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the selection for a connector's configuration."""
        return cls(group_filter(props), topic_filter(props))

    def left_out(self, group: str, committed: Collection[str]) -> LeftOut | None:
        """Return why a group with offsets in these topics gets no checkpoints; ``None`` if it does."""
        if not self.filter.should_replicate_group(group):
            return LeftOut.FILTER
        if not any(self.topics.should_replicate_topic(topic) for topic in committed):
            return LeftOut.NO_OFFSETS
        return None

"""Plans flows: what they would mirror, what they leave out and why, and what will not work. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connectors.mirror.flows import Flow
from connectors.mirror.policies import IdentityReplicationPolicy, ReplicationPolicy
from connectors.mirror.selection import GroupSelection, LeftOut, TopicSelection
from connectors.mirror.survey import Survey

__all__ = ["FlowPlan", "PlannedGroup", "PlannedTopic", "plan_flow", "problems_between"]

_SOURCE: Final = "MirrorSourceConnector"
_CHECKPOINT: Final = "MirrorCheckpointConnector"
_PROVENANCE: Final = "mirror.provenance.header"
_LONGEST_NAME: Final = 249
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")
_REPLICATION: Final = {
    "replication.factor": 2,
    "offset-syncs.topic.replication.factor": 3,
    "checkpoints.topic.replication.factor": 3,
    "heartbeats.topic.replication.factor": 3,
}
"""The replication factors of a mirror's topics, with their defaults."""


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic of the source with its name at the target, or the reason why it is not mirrored, and a remark."""

    topic: str
    partitions: int
    remote: str | None
    reason: str | None = None
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A consumer group of the source, and the reason why it gets no checkpoints, if so."""

    group: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The plan of one flow; ``problems`` lists what will not work as it is."""

    flow: str
    topics: tuple[PlannedTopic, ...]
    groups: tuple[PlannedGroup, ...]
    problems: tuple[str, ...]

    @property
    def remotes(self) -> Mapping[str, str]:
        """The topics at the target that the flow writes to, each with its source topic."""
        return {topic.remote: topic.topic for topic in self.topics if topic.remote is not None}

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return {
            "flow": self.flow,
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": topic.partitions,
                    "remote": topic.remote,
                    "reason": topic.reason,
                    "remark": topic.remark,
                }
                for topic in self.topics
            ],
            "groups": [{"group": group.group, "reason": group.reason} for group in self.groups],
            "problems": list(self.problems),
        }


def plan_flow(flow: Flow, source: Survey, target: Survey) -> FlowPlan:
    """Plan one flow between two clusters in their current state."""
    props = flow.connectors[_SOURCE]
    selection = TopicSelection.configured(props)
    groups = GroupSelection.configured(flow.connectors[_CHECKPOINT])
    topics = tuple(
        _topic(flow, selection, topic, partitions, target) for topic, partitions in sorted(source.topics.items())
    )
    planned_groups = tuple(
        PlannedGroup(group, _group_reason(groups.left_out(group, committed)))
        for group, committed in sorted(source.groups.items())
    )
    return FlowPlan(flow.name, topics, planned_groups, tuple(_problems(props, topics, source, target)))


def problems_between(flows: Sequence[Flow], plans: Sequence[FlowPlan], surveys: Mapping[str, Survey]) -> list[str]:
    """Return the problems between flows: two aliases of one cluster, topics that two flows write, endless cycles."""
    return [*_same_clusters(surveys), *_clashes(flows, plans), *_circles(flows)]


def _topic(flow: Flow, selection: TopicSelection, topic: str, partitions: int, target: Survey) -> PlannedTopic:
    left_out = selection.left_out(topic)
    if left_out is not None:
        return PlannedTopic(topic, partitions, None, _topic_reason(flow, selection, topic, left_out, target))
    remote = selection.policy.format_remote_topic(flow.source, topic)
    return PlannedTopic(topic, partitions, remote, None, _remark(partitions, remote, target))


def _topic_reason(flow: Flow, selection: TopicSelection, topic: str, left_out: LeftOut, target: Survey) -> str:
    match left_out:
        case LeftOut.INTERNAL:
            return "internal: it belongs to Kafka or to a mirror"
        case LeftOut.CYCLE:
            upstream = selection.policy.upstream_topic(topic)
            if upstream in target.topics:
                return f"cycle: it was mirrored from {flow.target}"
            return (
                f"cycle by its name alone: {flow.target} has no topic {upstream}. If it is a topic of {flow.source}'s "
                "own, rename it or choose another alias for the cluster"
            )
        case LeftOut.CONNECT:
            return "connect: it looks like an internal topic of Kafka Connect. If it is not, name it in topics"
        case _:
            return "filter: topics does not match it, or topics.exclude does"


def _remark(partitions: int, remote: str, target: Survey) -> str | None:
    there = target.topics.get(remote)
    if there is None:
        return "will be created"
    if there < partitions:
        return f"exists with {there} partitions and will get more"
    return f"exists with {there} partitions: the last {there - partitions} stay empty" if there > partitions else None


def _group_reason(left_out: LeftOut | None) -> str | None:
    match left_out:
        case None:
            return None
        case LeftOut.NO_OFFSETS:
            return "no offsets: it has committed none in a topic that topics matches"
        case _:
            return "filter: groups does not match it, or groups.exclude does"


def _problems(
    props: Mapping[str, str], topics: Sequence[PlannedTopic], source: Survey, target: Survey
) -> Iterator[str]:
    if all(topic.remote is None for topic in topics):
        yield "No topic would be mirrored."
    at_source = props.get("offset-syncs.topic.location", "source") == "source"
    for key, default in _REPLICATION.items():
        cluster = source if at_source and key.startswith("offset-syncs.") else target
        wanted = int(props.get(key, default))
        if wanted > cluster.brokers:
            yield f"{key} is {wanted}, more than the cluster has brokers ({cluster.brokers}): topics cannot be created."
    for topic in topics:
        if topic.remote is not None:
            yield from _problems_of(topic.topic, topic.remote)


def _problems_of(topic: str, remote: str) -> Iterator[str]:
    if len(remote) > _LONGEST_NAME or not _LEGAL.fullmatch(remote):
        yield f"{topic}: Kafka allows no topic {remote}. A name has at most {_LONGEST_NAME} of letters, digits, . _ -"


def _same_clusters(surveys: Mapping[str, Survey]) -> Iterator[str]:
    aliases: dict[str, list[str]] = defaultdict(list)
    for alias, found in surveys.items():
        aliases[found.id].append(alias)
    for cluster, names in aliases.items():
        if len(names) > 1:
            yield (
                f"{' and '.join(names)} are the same cluster ({cluster}): records would be mirrored endlessly. "
                "Use one alias per cluster."
            )


def _clashes(flows: Sequence[Flow], plans: Sequence[FlowPlan]) -> Iterator[str]:
    writers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for flow, plan in zip(flows, plans, strict=True):
        for remote, topic in plan.remotes.items():
            writers[flow.target, remote].append(f"{flow.name} (from {topic})")
    for (target, remote), names in writers.items():
        if len(names) > 1:
            yield f"{remote} of {target} would be written by {' and '.join(names)}. Exclude it from all but one flow."


def _circles(flows: Sequence[Flow]) -> Iterator[str]:
    identity = {
        (flow.source, flow.target): flow
        for flow in flows
        if flow.enabled and isinstance(_policy(flow), IdentityReplicationPolicy) and not _knows_provenance(flow)
    }
    for source, target in identity:
        if source < target and (target, source) in identity:
            yield (
                f"{source}->{target} and {target}->{source} both keep topic names, so records would circle for "
                f"ever. Set {_PROVENANCE} in both flows, or mirror different topics."
            )


def _policy(flow: Flow) -> ReplicationPolicy:
    return TopicSelection.configured(flow.connectors[_SOURCE]).policy


def _knows_provenance(flow: Flow) -> bool:
    return bool(flow.connectors[_SOURCE].get(_PROVENANCE, "").strip())

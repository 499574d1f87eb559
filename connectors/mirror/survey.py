"""Surveys a cluster for a plan of flows: its id, brokers, topics and groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from connect.errors import ConnectError
from connectors.mirror.groups import Groups
from connectors.mirror.patience import Patience

__all__ = ["Survey", "survey"]

_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Survey:
    """The state of a cluster at one moment. ``groups`` has the topics in which each group has committed offsets."""

    id: str
    brokers: int
    topics: Mapping[str, int]
    """The topics, with the number of their partitions."""

    groups: Mapping[str, Collection[str]] = field(default_factory=dict)


def survey(admin: AdminClient, alias: str, *, with_groups: bool) -> Survey:
    """Ask a cluster for its state; raise :class:`~connect.errors.ConnectError` if it does not answer."""
    try:
        metadata = admin.list_topics(timeout=_TIMEOUT_SECONDS)
        groups = _groups(admin, alias) if with_groups else {}
    except KafkaException as error:
        raise ConnectError(
            f"The cluster {alias} does not answer: {error.args[0].str()}. Check {alias}.bootstrap.servers and the "
            "security settings of that cluster."
        ) from error
    topics = {name: len(topic.partitions) for name, topic in metadata.topics.items()}
    return Survey(str(metadata.cluster_id), len(metadata.brokers), topics, groups)


def _groups(admin: AdminClient, alias: str) -> dict[str, Collection[str]]:
    groups = Groups(lambda: admin, Patience(alias, _TIMEOUT_SECONDS, lambda _: True))
    found: dict[str, Collection[str]] = {}
    for name, committed in groups.committed(groups.names()).items():
        if isinstance(committed, ConnectError):
            raise committed
        found[name] = frozenset(place.topic for place in committed)
    return found

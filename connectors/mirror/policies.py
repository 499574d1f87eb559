"""Replication policies: how a topic of one cluster is called in another, and where a topic comes from by its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Final, Self

from connectors.mirror.extensions import extension_class

__all__ = [
    "POLICIES",
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "ReplicationPolicy",
    "hops",
    "is_cycle",
    "replication_policy",
    "sources",
    "upstream_clusters",
]

_CLASS: Final = "replication.policy.class"
_SEPARATOR: Final = "replication.policy.separator"
_INTERNAL_SEPARATOR: Final = "replication.policy.internal.topic.separator.enabled"
_HEARTBEATS: Final = "heartbeats"


class ReplicationPolicy(ABC):
    """Names topics. Subclass it to name them in another way, and offer the class by an entry point."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """The policy for a connector's configuration."""
        return cls()

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The name at the target of a topic of the source cluster."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that a topic was mirrored from; ``None`` for one that was not mirrored."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """The name of a mirrored topic in the cluster that it was mirrored from."""

    def original_topic(self, topic: str) -> str:
        """The name of a topic in the cluster that its records were first written to."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are written to."""
        return _HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """The topic of offset syncs. ``alias`` is that of the other cluster, seen from where the topic lies."""
        return f"mm2-offset-syncs.{alias}.internal"

    def offset_runs_topic(self, alias: str) -> str:
        """The topic of runs, which lies beside that of offset syncs; ``alias`` is the same."""
        return f"mm2-offset-runs.{alias}.internal"

    def gaps_topic(self, alias: str) -> str:
        """The topic at the target that tells of gaps in what was mirrored from the cluster ``alias``."""
        return f"mm2-gaps.{alias}.internal"

    def verified_topic(self, alias: str) -> str:
        """The topic at the target that tells what was verified of the mirror of the cluster ``alias``, and when."""
        return f"mm2-verified.{alias}.internal"

    def missing_topic(self, alias: str) -> str:
        """The topic at the target that tells since when topics are missing at the cluster ``alias``."""
        return f"mm2-missing.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """The topic of checkpoints of groups of the cluster ``alias``."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether a topic has heartbeats, of this cluster or mirrored."""
        return self.heartbeats_topic() == self.original_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether a topic has checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mirror_internal_topic(self, topic: str) -> bool:
        """Whether a topic belongs to the mirror itself: syncs, runs, checkpoints, or a worker's own."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Whether a topic is never mirrored, because it belongs to the mirror or to Kafka."""
        return topic.startswith(("__", ".")) or self.is_mirror_internal_topic(topic)


class DefaultReplicationPolicy(ReplicationPolicy):
    """Puts the alias of the source and a separator before the name: ``A.orders``."""

    def __init__(self, separator: str = ".", internal_separator: str = ".") -> None:
        self.separator = separator
        self._internal = internal_separator

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """The policy with the separators of a configuration."""
        return cls(*_separators(props))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """What stands before the first separator; any topic with a separator counts as mirrored, as in Java."""
        if not self.separator:
            return topic[0] if len(topic) > 1 else None
        source, separator, upstream = topic.partition(self.separator)
        # Java's split leaves empty parts at the end out, so that "B." and "B.." have no source.
        return source if separator and upstream.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs{self._internal}{alias}{self._internal}internal"

    def offset_runs_topic(self, alias: str) -> str:
        return f"mm2-offset-runs{self._internal}{alias}{self._internal}internal"

    def verified_topic(self, alias: str) -> str:
        return f"mm2-verified{self._internal}{alias}{self._internal}internal"

    def missing_topic(self, alias: str) -> str:
        return f"mm2-missing{self._internal}{alias}{self._internal}internal"

    def gaps_topic(self, alias: str) -> str:
        return f"mm2-gaps{self._internal}{alias}{self._internal}internal"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}{self._internal}checkpoints{self._internal}internal"

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(f"{self._internal}checkpoints{self._internal}internal")

    def is_mirror_internal_topic(self, topic: str) -> bool:
        own = topic.startswith("mm2") and topic.endswith(f"{self._internal}internal")
        return own or self.is_checkpoints_topic(topic)


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Keeps the names. Only topics that end in ``heartbeats`` have the alias before them."""

    def __init__(self, separator: str = ".", internal_separator: str = ".", source_alias: str | None = None) -> None:
        super().__init__(separator, internal_separator)
        self._source_alias = source_alias

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """The policy with the separators and the source of a configuration."""
        return cls(*_separators(props), props.get("source.cluster.alias"))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if topic.endswith(_HEARTBEATS) else topic

    def topic_source(self, topic: str) -> str | None:
        """The one source there is: a name does not tell where a topic comes from."""
        return super().topic_source(topic) if topic.endswith(_HEARTBEATS) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if topic.endswith(_HEARTBEATS) else topic


POLICIES: Final[Mapping[str, type[ReplicationPolicy]]] = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": DefaultReplicationPolicy,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
}
"""The policies that come with Sluice, by Java's names."""


def replication_policy(props: Mapping[str, str | None]) -> ReplicationPolicy:
    """The policy that a configuration names; raise :class:`~connect.errors.ConfigError` if there is none such."""
    name = props.get(_CLASS) or next(iter(POLICIES))
    # mypy takes an abstract class for none that may be a type argument.
    return extension_class(_CLASS, name, ReplicationPolicy, POLICIES).configured(props)  # type: ignore[type-abstract]


def sources(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """The aliases in the name of a topic from the nearest cluster on, each once."""
    seen: set[str] = set()
    while (source := policy.topic_source(topic)) is not None and source not in seen:
        seen.add(source)
        yield source
        upstream = policy.upstream_topic(topic)
        if upstream is None:
            return
        topic = upstream


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether a topic was mirrored from the target already, however many clusters it has passed since."""
    while (source := policy.topic_source(topic)) is not None:
        if source == target_alias:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return False
        topic = upstream
    return False


def hops(policy: ReplicationPolicy, topic: str, alias: str) -> int | None:
    """How many clusters lie between ``alias`` and a topic that comes from there; ``None`` if it does not."""
    return next((hop for hop, source in enumerate(sources(policy, topic), start=1) if source == alias), None)


def upstream_clusters(policy: ReplicationPolicy, topic: str) -> frozenset[str]:
    """The aliases of all clusters that a topic has passed."""
    return frozenset(sources(policy, topic))


def _separators(props: Mapping[str, str | None]) -> tuple[str, str]:
    separator = props.get(_SEPARATOR)
    if separator is None:
        # As in Java, the internal separator is looked at only beside one for topics.
        return ".", "."
    own = (props.get(_INTERNAL_SEPARATOR) or "true").strip().lower() == "true"
    return separator, separator if own else "."

"""Replication policies: how a topic of one cluster is named in another, and which cluster a name says it comes from."""

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
    """Names topics. To use another naming scheme, subclass it and offer the class as an entry point."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """Return the policy for a connector's configuration."""
        return cls()

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the target's name of a topic of the source cluster."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic was mirrored from; ``None`` if it was not mirrored."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of a mirrored topic in the cluster that it was mirrored from."""

    def original_topic(self, topic: str) -> str:
        """Return the name of a topic in the cluster where its records were first written."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """Return the name of the heartbeats topic."""
        return _HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the offset syncs topic; ``alias`` is that of the cluster where it does not lie."""
        return f"mm2-offset-syncs.{alias}.internal"

    def offset_runs_topic(self, alias: str) -> str:
        """Return the name of the topic of runs, which lies beside that of offset syncs; ``alias`` is the same."""
        return f"mm2-offset-runs.{alias}.internal"

    def gaps_topic(self, alias: str) -> str:
        """Return the name of the target's topic of gaps in what was mirrored from the cluster ``alias``."""
        return f"mm2-gaps.{alias}.internal"

    def verified_topic(self, alias: str) -> str:
        """Return the name of the target's topic of verifications of the cluster ``alias``."""
        return f"mm2-verified.{alias}.internal"

    def missing_topic(self, alias: str) -> str:
        """Return the name of the target's topic of topics that are missing at the cluster ``alias``."""
        return f"mm2-missing.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return the name of the topic of checkpoints for groups of the cluster ``alias``."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether a topic contains heartbeats, of this cluster or mirrored."""
        return self.heartbeats_topic() == self.original_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return whether a topic contains checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mirror_internal_topic(self, topic: str) -> bool:
        """Return whether a topic belongs to the mirror: syncs, runs, checkpoints, or a worker's topics."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether a topic is never mirrored, because it belongs to the mirror or to Kafka."""
        return topic.startswith(("__", ".")) or self.is_mirror_internal_topic(topic)


class DefaultReplicationPolicy(ReplicationPolicy):
    """Prefixes the name with the alias of the source and a separator: ``A.orders``."""

    def __init__(self, separator: str = ".", internal_separator: str = ".") -> None:
        self.separator = separator
        self._internal = internal_separator

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the policy with the separators of a configuration."""
        return cls(*_separators(props))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return what precedes the first separator. As in Java, any topic with a separator counts as mirrored."""
        if not self.separator:
            return topic[0] if len(topic) > 1 else None
        source, separator, upstream = topic.partition(self.separator)
        # Java's split drops empty parts at the end, so "B." and "B.." have no source.
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
    """Keeps the names. Only topics that end in ``heartbeats`` get the alias as a prefix."""

    def __init__(self, separator: str = ".", internal_separator: str = ".", source_alias: str | None = None) -> None:
        super().__init__(separator, internal_separator)
        self._source_alias = source_alias

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the policy with the separators and the source of a configuration."""
        return cls(*_separators(props), props.get("source.cluster.alias"))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if topic.endswith(_HEARTBEATS) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the only source there is, since a name does not tell where a topic comes from."""
        return super().topic_source(topic) if topic.endswith(_HEARTBEATS) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if topic.endswith(_HEARTBEATS) else topic


POLICIES: Final[Mapping[str, type[ReplicationPolicy]]] = {
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy": DefaultReplicationPolicy,
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": IdentityReplicationPolicy,
}
"""The built-in policies, by Java's names. Strimzi had the last one before Kafka had its own."""


def replication_policy(props: Mapping[str, str | None]) -> ReplicationPolicy:
    """Return the policy of a configuration; raise :class:`~connect.errors.ConfigError` if it does not exist."""
    name = props.get(_CLASS) or next(iter(POLICIES))
    # mypy does not accept an abstract class as a type argument.
    return extension_class(_CLASS, name, ReplicationPolicy, POLICIES).configured(props)  # type: ignore[type-abstract]


def sources(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Yield the aliases in the name of a topic, from the nearest cluster on, each once."""
    seen: set[str] = set()
    while (source := policy.topic_source(topic)) is not None and source not in seen:
        seen.add(source)
        yield source
        upstream = policy.upstream_topic(topic)
        if upstream is None:
            return
        topic = upstream


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Return whether a topic was already mirrored from the target, however many clusters it has passed since."""
    while (source := policy.topic_source(topic)) is not None:
        if source == target_alias:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return False
        topic = upstream
    return False


def hops(policy: ReplicationPolicy, topic: str, alias: str) -> int | None:
    """Return how many flows a topic has passed since the cluster ``alias``; ``None`` if it does not come from there."""
    return next((hop for hop, source in enumerate(sources(policy, topic), start=1) if source == alias), None)


def upstream_clusters(policy: ReplicationPolicy, topic: str) -> frozenset[str]:
    """Return the aliases of all clusters that a topic has passed."""
    return frozenset(sources(policy, topic))


def _separators(props: Mapping[str, str | None]) -> tuple[str, str]:
    separator = props.get(_SEPARATOR)
    if separator is None:
        # As in Java, the internal separator is used only if the other one is set as well.
        return ".", "."
    own = (props.get(_INTERNAL_SEPARATOR) or "true").strip().lower() == "true"
    return separator, separator if own else "."

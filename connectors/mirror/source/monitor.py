"""Watches the topics of a flow for its source connector, and keeps their settings and ACLs in sync."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from confluent_kafka.admin import AdminClient

from connect.data import TopicPartition
from connect.errors import ConfigError, RetriableError
from connect.source import SourceConnectorContext
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.filters import config_property_filter
from connectors.mirror.patience import StoppedError
from connectors.mirror.policies import replication_policy
from connectors.mirror.selection import TopicSelection
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.topics.deletion import DeletionNotes, Deletions
from connectors.mirror.topics.upkeep import TopicUpkeep

__all__ = ["TopicMonitor"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ids: TypeAlias = tuple[UUID | None, UUID | None]
"""The ids of a topic at the source and at the target."""

_JOIN_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 2.0
_NEW_SECONDS: Final = 3.0
"""How long to wait for the ids of new topics; old brokers have none."""
_NEW_LOOK_SECONDS: Final = 0.1
_NO_TOPIC: Final = (
    "No selected topic exists at both clusters; the source waits until one does. Create one at the source cluster, "
    "correct the keys topics and topics.exclude, or see the log if one cannot be created at the target."
)
_ANY_TOPIC: Final = "topic"
_NO_IDS: Final[Ids] = (None, None)
_PATIENCE_SECONDS: Final = 10.0
"""Seconds for a first look. A cluster that is unreachable is asked again soon, not waited for longer."""


@dataclass(slots=True)
class _Job:
    """Something to do every ``interval`` seconds, or only once if that is not positive."""

    do: Callable[[], None]
    interval: float
    due: float = 0.0


class TopicMonitor:
    """Runs its jobs in a thread of its own, at the start and then at the configured intervals.

    When the partitions change, it requests new task configs. A cluster that does not answer is asked again after a few
    seconds, also at the start, and not after the next interval.
    """

    def __init__(self, config: MirrorSourceConfig, context: SourceConnectorContext) -> None:
        self._config = config
        self._context = context
        self._stopped = threading.Event()
        self._answered = threading.Event()
        """Set once both clusters have answered, or have failed to."""
        self._partitions: tuple[TopicPartition, ...] | None = None
        self._ids: Mapping[str, Ids] = {}
        self._deletes = config.mirror_topic_deletion_policy == "delete"
        self._orphans: Mapping[str, int] = {}
        self._own: frozenset[str] = frozenset()
        self._source_away: Callable[[], None] = lambda: None
        self._away: str | None = None
        self._thread = threading.Thread(target=self._run, name="mirror-topics", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; one that waits for a cluster ends with its process."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def partitions(self, seconds: float) -> Sequence[TopicPartition]:
        """Return the partitions to mirror, or none if they are not known within ``seconds``."""
        self._answered.wait(seconds)
        return self._partitions or ()

    @property
    def orphans(self) -> Mapping[str, int]:
        """The topics that are gone at the source, and how many partitions each has at the target."""
        return self._orphans

    def may_delete(self, own: Iterable[str]) -> None:
        """Say which of the orphans this connector has mirrored itself, so that they may be deleted at the target."""
        self._own = frozenset(own)

    def ids_of(self, share: Iterable[TopicPartition]) -> str:
        """Return a list with a hash for each topic of these partitions, which changes if either end recreates it."""
        return ",".join(self._stands_for(topic) for topic in sorted({partition.topic for partition in share}))

    def _stands_for(self, topic: str) -> str:
        return hashlib.sha256(repr((topic, self._ids.get(topic))).encode()).hexdigest()[:12]

    def _run(self) -> None:
        try:
            jobs = self._jobs()
            while not self._stopped.is_set():
                for job in jobs:
                    self._attend(job)
                soonest = min((job.due for job in jobs), default=float("inf"))
                self._stopped.wait(None if soonest == float("inf") else max(0.0, soonest - time.monotonic()))
        except Exception as error:
            self._answered.set()
            if not self._stopped.is_set():
                self._context.raise_error(error)

    def _attend(self, job: _Job) -> None:
        if job.due > time.monotonic() or self._stopped.is_set():
            return
        try:
            job.do()
        except StoppedError:
            return
        except RetriableError as error:
            self._tell_away(f"{error}")
            self._answered.set()
            job.due = time.monotonic() + (min(_RETRY_SECONDS, job.interval) if job.interval > 0 else _RETRY_SECONDS)
        else:
            job.due = time.monotonic() + job.interval if job.interval > 0 else float("inf")

    def _jobs(self) -> list[_Job]:
        config, props = self._config, self._config.originals
        clients, seconds = Clients(props), config.admin_timeout_ms / 1000
        admins = {
            Cluster.SOURCE: clients.admin(Cluster.SOURCE, "replication-source-admin"),
            Cluster.TARGET: clients.admin(Cluster.TARGET, "replication-target-admin"),
        }
        source, target = self._topics(admins, Cluster.SOURCE, seconds), self._topics(admins, Cluster.TARGET, seconds)
        selection = self._on_one_cluster(source, target, TopicSelection.configured(props))
        alias, chosen = config.source_cluster_alias, config_property_filter(props)
        grace = config.mirror_topic_deletion_grace_ms / 1000
        deletions = Deletions(grace) if self._deletes else None
        notes = DeletionNotes(config, min(seconds, _PATIENCE_SECONDS), self._go_on) if self._deletes else None
        upkeep = TopicUpkeep(source, target, selection, alias, chosen, config.replication_factor, deletions, notes)
        self._source_away = upkeep.source_is_away
        refresh = config.refresh_topics_interval_seconds if config.refresh_topics_enabled else 0
        jobs = [_Job(lambda: self._look(upkeep), refresh)]
        if config.emit_offset_syncs_enabled:
            at = Cluster(config.offset_syncs_topic_location)
            jobs.insert(0, _Job(lambda: self._create_internal(self._topics(admins, at, seconds), *self._of_syncs()), 0))
        if config.mirror_gap_policy == "mark":
            gaps = replication_policy(props).gaps_topic(alias)
            jobs.insert(0, _Job(lambda: self._create_internal(target, gaps), 0))
        if config.sync_topic_acls_enabled:
            jobs.append(_Job(upkeep.sync_acls, config.sync_topic_acls_interval_seconds))
        if config.sync_topic_configs_enabled:
            jobs.append(_Job(upkeep.sync_settings, config.sync_topic_configs_interval_seconds))
        return jobs

    def _on_one_cluster(
        self, source: ClusterTopics, target: ClusterTopics, selection: TopicSelection
    ) -> TopicSelection:
        """Return the selection for a flow from a cluster to itself, which must not mirror its own copies.

        Raises :class:`~connect.errors.ConfigError` if topics would keep their names: each would be copied onto itself
        without end. Waits until both clusters have answered.
        """
        ids = self._answer(lambda: (source.cluster_id(), target.cluster_id()))
        here = None if ids is None else ids[0]
        if ids is None or here is None or here != ids[1]:
            return selection
        alias, policy = self._config.source_cluster_alias, selection.policy
        if policy.format_remote_topic(alias, _ANY_TOPIC) == _ANY_TOPIC:
            raise ConfigError(
                "replication.policy.class",
                self._config.replication_policy_class,
                f"The clusters {alias} and {self._config.target_cluster_alias} are the same (id {here}), and with this "
                "policy each topic would be copied onto itself endlessly: correct the bootstrap servers, or use "
                "DefaultReplicationPolicy, which renames topics",
            )
        return replace(selection, source_of_itself=alias)

    def _answer(self, ask: Callable[[], T]) -> T | None:
        """Return the answer of the clusters, whenever they give it; ``None`` if the connector is to stop."""
        while not self._stopped.is_set():
            try:
                return ask()
            except RetriableError as error:
                self._tell_away(f"{error}")
                self._answered.set()
                self._stopped.wait(_RETRY_SECONDS)
        return None

    def _go_on(self, seconds: float) -> bool:
        return not self._stopped.wait(seconds)

    def _topics(self, admins: dict[Cluster, AdminClient], cluster: Cluster, seconds: float) -> ClusterTopics:
        config = self._config
        alias = config.source_cluster_alias if cluster is Cluster.SOURCE else config.target_cluster_alias
        return ClusterTopics(admins[cluster], alias, min(seconds, _PATIENCE_SECONDS))

    def _of_syncs(self) -> tuple[str, str]:
        policy, alias = replication_policy(self._config.originals), self._config.alias_in_syncs
        return policy.offset_syncs_topic(alias), policy.offset_runs_topic(alias)

    def _create_internal(self, topics: ClusterTopics, *names: str) -> None:
        there = topics.partitions()
        for topic in names:
            if topic not in there:
                topics.create_compacted(topic, self._config.offset_syncs_topic_replication_factor)

    def _look(self, upkeep: TopicUpkeep) -> None:
        found, before = upkeep.look(), (self._partitions, self._ids)
        ids = self._ids_now(upkeep, found)
        if self._deletes:
            self._orphans = upkeep.orphans()
            upkeep.delete(self._orphans, self._own, time.time())
        if self._away is not None:
            logger.info("Both clusters answer again.")
            self._away = None
        self._partitions, self._ids = found, ids
        self._answered.set()
        self._context.show_wait(None if found else _NO_TOPIC)
        if (found, ids) == before:
            return
        if before[0] is not None:
            logger.info("The selected topics or partitions have changed: %d partitions now.", len(found))
        self._context.request_task_reconfiguration()

    def _ids_now(self, upkeep: TopicUpkeep, found: Sequence[TopicPartition]) -> dict[str, Ids]:
        """Return the ids of the topics at both ends, or the former ones. New topics get a moment."""
        deadline = time.monotonic() + _NEW_SECONDS
        while True:
            ids = upkeep.ids(found)
            settled = all(topic in self._ids or None not in both for topic, both in ids.items())
            if settled or time.monotonic() > deadline or self._stopped.wait(_NEW_LOOK_SECONDS):
                before = {topic: self._ids.get(topic, _NO_IDS) for topic in ids}
                return {
                    topic: (source or before[topic][0], target or before[topic][1])
                    for topic, (source, target) in ids.items()
                }

    def _tell_away(self, error: str) -> None:
        self._source_away()
        self._away = error
        self._context.show_wait(f"{error}; asking again every few seconds.")

"""Compares the records of a flow at both ends, while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from connect.errors import ConfigError
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.flow import EMIT_OFFSET_SYNCS
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.offset_topics import OffsetTopics, alias_of, patience_with
from connectors.mirror.patience import Wait
from connectors.mirror.policies import replication_policy
from connectors.mirror.selection import TopicSelection
from connectors.mirror.source.batches import Provenance
from connectors.mirror.topics.cluster import ClusterTopics
from connectors.mirror.verification.comparison import Part, PartitionReport, Piece, compared, hole, pieces
from connectors.mirror.verification.stretches import STRETCHES, Content, Stretch, StretchReader

__all__ = ["FlowVerifier"]

_AT_ONCE: Final = 20_000
"""How many records of each end are held in memory: I9."""


class FlowVerifier:
    """Compares the topics of one flow, by the configuration of its source connector. For one thread.

    The runs of the flow tell where each record lies. Each method raises a ``ConnectError`` if a cluster does not
    answer.
    """

    def __init__(self, props: Mapping[str, str], wait: Wait = lambda _: True) -> None:
        self._config = config = MirrorSourceConfig.parse(props)
        if not config.emit_offset_syncs_enabled:
            raise ConfigError(
                EMIT_OFFSET_SYNCS,
                "false",
                "Without runs, the place of a record at the target is unknown. Set it to true",
            )
        self._clients = Clients(props)
        self._policy = replication_policy(props)
        self._selection = TopicSelection.configured(props)
        self._wait = wait
        header, aliases = config.mirror_provenance_header, (config.source_cluster_alias, config.target_cluster_alias)
        self._provenance = Provenance(header, *aliases) if header else None
        self._compacted: dict[Cluster, frozenset[str]] = {}

    def reports(self, last: int | None = None) -> Iterator[PartitionReport]:
        """Compare every mirrored partition, or only the ``last`` offsets of each, and yield the reports."""
        offsets = OffsetTopics(self._config, self._clients, self._policy, self._wait)
        here, there = self._reader(Cluster.SOURCE), self._reader(Cluster.TARGET)
        try:
            offsets.read_to_end()
            partitions = self._partitions()
            self._compacted = {
                Cluster.SOURCE: self._with_compaction(Cluster.SOURCE, list(partitions)),
                Cluster.TARGET: self._with_compaction(Cluster.TARGET, [self._remote(topic) for topic in partitions]),
            }
            for topic, count in partitions.items():
                for partition in range(count):
                    runs = offsets.translator.runs.runs(topic, partition)
                    start, end = here.bounds(topic, partition)
                    first = start if last is None else max(start, end - last)
                    found = pieces(() if runs is None else runs.runs, first, end)
                    yield self._report(topic, partition, found, here, there)
        finally:
            offsets.close()
            here.close()
            there.close()

    def _report(
        self, topic: str, partition: int, found: Iterator[Piece], here: StretchReader, there: StretchReader
    ) -> PartitionReport:
        report = PartitionReport(topic, partition, self._remote(topic))
        for whole in found:
            for piece in _divided(whole):
                report = self._and(report, piece, here, there)
                if report.difference is not None:
                    return report
        return report

    def _and(self, report: PartitionReport, piece: Piece, here: StretchReader, there: StretchReader) -> PartitionReport:
        """Add another piece to a report."""
        partition, records = report.partition, report.topic
        mine = self._stretch(Cluster.SOURCE, here, (records, partition), piece.first, piece.end)
        match piece.part:
            case Part.UNKNOWN:
                return replace(report, unknown=report.unknown + len(mine.records))
            case Part.WAITING:
                return replace(report, waiting=report.waiting + len(mine.records))
            case Part.EMPTY:
                return replace(report, difference=hole(mine))
        end = piece.there + piece.end - piece.first
        copies = self._stretch(Cluster.TARGET, there, (report.topic_there, partition), piece.there, end)
        equal, expired, difference = compared(piece, mine, copies)
        return replace(report, equal=report.equal + equal, expired=report.expired + expired, difference=difference)

    def _stretch(
        self, cluster: Cluster, reader: StretchReader, place: tuple[str, int], first: int, end: int
    ) -> Stretch:
        records = reader.read(*place, first, end)
        if cluster is Cluster.SOURCE and self._provenance is not None:
            records = _as_copied(records, self._provenance)
        # Asked after reading: records that have expired meanwhile are not missing.
        start, _ = reader.bounds(*place)
        return Stretch(records, reader.reached, start, place[0] in self._compacted[cluster])

    def _reader(self, cluster: Cluster) -> StretchReader:
        isolation = {"isolation.level": self._config.isolation_level} if cluster is Cluster.SOURCE else {}
        forced = {**STRETCHES, **isolation}
        consumer = self._clients.consumer(cluster, f"verify-{cluster}-consumer", forced)
        return StretchReader(consumer, patience_with(self._config, cluster, self._wait))

    def _partitions(self) -> dict[str, int]:
        found = self._cluster(Cluster.SOURCE).partitions()
        return {topic: count for topic, count in sorted(found.items()) if topic in self._selection}

    def _with_compaction(self, cluster: Cluster, topics: list[str]) -> frozenset[str]:
        found = self._cluster(cluster).settings(topics)
        return frozenset(
            topic
            for topic, settings in found.items()
            if any(each.name == "cleanup.policy" and "compact" in (each.value or "") for each in settings)
        )

    def _cluster(self, cluster: Cluster) -> ClusterTopics:
        waiting = patience_with(self._config, cluster, self._wait)
        return ClusterTopics(
            self._clients.admin(cluster, f"verify-{cluster}-admin"), alias_of(self._config, cluster), waiting.seconds
        )

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self._config.source_cluster_alias, topic)


def _as_copied(records: Mapping[int, Content], provenance: Provenance) -> dict[int, Content]:
    """Return records of the source as they are copied: with one more header, without those that were at the target."""
    return {
        offset: (key, value, tuple(provenance.added(headers)), timestamp)
        for offset, (key, value, headers, timestamp) in records.items()
        if not provenance.comes_from_target(headers)
    }


def _divided(piece: Piece) -> Iterator[Piece]:
    for first in range(piece.first, piece.end, _AT_ONCE):
        there = piece.there + first - piece.first
        yield Piece(piece.part, first, min(piece.end, first + _AT_ONCE), there)

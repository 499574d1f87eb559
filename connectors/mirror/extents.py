"""Where the partitions of a flow begin and end at both clusters, which translates offsets of empty partitions.

No record of such a partition was mirrored, so that neither runs nor offset syncs tell where a group continues.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from connect.data import TopicPartition
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.config.flow import TopicsConfig
from connectors.mirror.runs import Translation
from connectors.mirror.topics.cluster import ClusterTopics

__all__ = ["Extent", "Extents", "FlowExtents"]

_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets of the first record of a partition and after its last one."""

    begin: int
    end: int

    @property
    def is_empty(self) -> bool:
        """Whether the partition has no record."""
        return self.begin >= self.end


@dataclass(frozen=True, slots=True)
class Extents:
    """A partition at the source, and its copy at the target, which was looked at first."""

    source: Extent
    target: Extent

    def downstream_of(self, offset: int) -> Translation | None:
        """Return where a group that has read up to ``offset`` at the source continues at the target, if that is known.

        An empty target has nothing to read: all that is mirrored from now on comes after its end. If the source is
        empty and the group has read it all, it has read all that the target had when it was looked at.
        """
        if self.target.is_empty:
            read = 0 if self.source.is_empty else max(0, offset - self.source.begin)
            return Translation(self.target.end, read)
        if self.source.is_empty and offset >= self.source.end:
            return Translation(self.target.end)
        return None

    def upstream_of(self, offset: int) -> Translation | None:
        """Return where a group that has read up to ``offset`` at the target continues at the source, if that is known.

        What it has not read at the target is not mirrored back, so it has to have read everything.
        """
        if self.source.is_empty and (self.target.is_empty or offset >= self.target.end):
            return Translation(self.source.end)
        return None


class FlowExtents:
    """Asks both clusters of a flow for the extents of partitions. For one thread.

    ``remote`` returns the target's name of a topic of the source.
    """

    def __init__(self, config: TopicsConfig, clients: Clients, remote: Callable[[str], str]) -> None:
        self._config = config
        self._clients = clients
        self._remote = remote

    def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Extents]:
        """Return the extents of those of the source's ``partitions`` that exist at both clusters.

        Raises a ``RetriableError`` if a cluster does not answer.
        """
        copies = {place: TopicPartition(self._remote(place.topic), place.partition) for place in partitions}
        targets = self._at(Cluster.TARGET, copies.values())
        sources = self._at(Cluster.SOURCE, [place for place, copy in copies.items() if copy in targets])
        return {place: Extents(found, targets[copies[place]]) for place, found in sources.items()}

    def _at(self, cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        if not partitions:
            return {}
        config, admin = self._config, self._clients.admin(cluster, f"checkpoint-{cluster}-admin")
        alias = config.source_cluster_alias if cluster is Cluster.SOURCE else config.target_cluster_alias
        topics = ClusterTopics(admin, alias, config.admin_timeout_ms / _MS)
        begins, ends = topics.begins(partitions), topics.ends(partitions)
        return {place: Extent(begins[place], end) for place, end in ends.items() if place in begins}

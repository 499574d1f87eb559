"""A real ``sluice distributed`` process."""

from __future__ import annotations

from typing import ClassVar

from equipment.workers.standalone import StandaloneWorker

__all__ = ["DistributedWorker"]


class DistributedWorker(StandaloneWorker):
    """One worker of a cluster. Workers with the same ``group.id`` form a cluster; by default, each forms its own.

    Its timeouts are short, so that its work is soon taken over.
    """

    mode: ClassVar = "distributed"

    def mode_props(self) -> dict[str, str]:
        """The group and its topics, with one replica since there is one broker."""
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in {"topic": f"{self.folder.name}-{kind}", "replication.factor": "1"}.items()
        }
        return topics | {
            "group.id": self.folder.name,
            "offset.storage.partitions": "5",
            "status.storage.partitions": "2",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
        }

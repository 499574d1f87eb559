"""A real ``sluice distributed`` process."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import ClassVar

from equipment.workers.standalone import StandaloneWorker

__all__ = ["DistributedWorker"]


class DistributedWorker(StandaloneWorker):
    """One worker of a cluster. Workers with the same ``group`` form a cluster; by default, each forms its own.

    Its timeouts are short, so that its work is soon taken over.
    """

    mode: ClassVar = "distributed"

    def __init__(self, folder: Path, bootstrap: str, *, group: str | None = None, **props: str) -> None:
        # The tests of a run share a broker, and folders of the same name are made in several of them.
        self.group = group or f"{folder.name}-{zlib.crc32(bytes(folder)):08x}"
        super().__init__(folder, bootstrap, **props)

    def mode_props(self) -> dict[str, str]:
        """The group and its topics, with one replica since there is one broker."""
        topics = {
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in {"topic": f"{self.group}-{kind}", "replication.factor": "1"}.items()
        }
        return topics | {
            "group.id": self.group,
            "offset.storage.partitions": "5",
            "status.storage.partitions": "2",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
        }

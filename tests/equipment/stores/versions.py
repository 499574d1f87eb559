"""A store of versions in memory that fails on request."""

from __future__ import annotations

from collections.abc import Sequence

from connect.errors import ConnectError
from worker.stores.versions.version import MOST_VERSIONS, Version, VersionStore

__all__ = ["MemoryVersionStore"]


class MemoryVersionStore(VersionStore):
    """Keeps versions in memory; ``fails`` makes every call fail."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Version]] = {}
        self.fails = False

    def latest(self) -> dict[str, Version]:
        self._check()
        return {name: versions[-1] for name, versions in self.kept.items()}

    def versions(self, connector: str) -> list[Version]:
        self._check()
        return list(self.kept.get(connector, ()))

    def append(self, versions: Sequence[Version], forgotten: Sequence[Version]) -> None:
        self._check()
        for version in versions:
            kept = [*self.kept.get(version.seen.connector, ()), version]
            self.kept[version.seen.connector] = kept[-MOST_VERSIONS:]
        for version in forgotten:
            self.kept.pop(version.seen.connector, None)

    def close(self) -> None:
        """Do nothing."""

    def _check(self) -> None:
        if self.fails:
            raise ConnectError("the store is away")

"""The version history of configurations: each change is recorded with its author and can be undone.

Used only in the herder's thread, except where a method says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from connect.errors import ConnectError, NotFoundError
from worker.herder.cluster.leadership import Leadership
from worker.herder.requests import Request, Requests, Steps, asked
from worker.stores.config.store import ConfigStore, ConnectorEntry
from worker.stores.versions.service import VersionService
from worker.stores.versions.version import Seen, Version

__all__ = ["ConfigHistory", "Versions"]


@dataclass(frozen=True, slots=True)
class ConfigHistory:
    """The versions of a connector's configuration, oldest first, and the current one if the connector exists."""

    versions: tuple[Version, ...]
    present: ConnectorEntry | None

    def config(self, number: int) -> Mapping[str, str]:
        """Return the configuration of a version. Raises :class:`~connect.errors.NotFoundError` if it is not kept."""
        for version in self.versions:
            if version.number == number and version.seen.config is not None:
                return version.seen.config
        raise NotFoundError(
            f"There is no version {number} of this configuration. Choose one of the versions that are kept."
        )


class Versions:
    """Reports changes to the history. In a standalone worker, which forgets configurations, they are not ``complete``.

    Without a ``service``, no history is kept.
    """

    def __init__(
        self,
        requests: Requests,
        configs: ConfigStore,
        leadership: Leadership,
        service: VersionService | None,
        *,
        complete: bool,
    ) -> None:
        self._requests = requests
        self._configs = configs
        self._service = service
        self._complete = complete
        self._known: dict[str, int] = {}
        self._removers: dict[str, str | None] = {}
        leadership.when_taken(self._lead)
        if service is not None:
            leadership.when_lost(service.follow)

    def changed(self, name: str) -> None:
        """Record the configuration that a connector has now."""
        entry = self._configs.connectors().get(name)
        if entry is not None:
            self._known[name] = entry.revision
            self._saw(_seen(name, entry))

    def removes(self, name: str, author: str | None) -> None:
        """Remember the user who deletes a connector until it is gone."""
        self._removers[name] = author

    def removed(self, name: str) -> None:
        """Record that a connector is gone."""
        author = self._removers.pop(name, None)
        revision = self._known.pop(name, None)
        if revision is not None:
            self._saw(Seen(name, revision + 1, _now(), author, None))

    @asked
    def read(self, request: Request[ConfigHistory], name: str) -> Steps[ConfigHistory]:
        """Return the versions of a connector's configuration, even if it was deleted. Any thread may call this.

        Fails with :class:`~connect.errors.NotFoundError` if no versions are kept.
        """
        if self._service is None:
            raise ConnectError("This worker keeps no history of configurations.")
        request.enter(f"reading the history of connector {name}")
        present = self._configs.connectors().get(name)
        versions: list[Version] = yield self._service.versions(name)
        if not versions and present is None:
            raise NotFoundError(f"Connector {name} not found")
        return ConfigHistory(tuple(versions), present)

    def _lead(self) -> None:
        present = [_seen(name, entry) for name, entry in self._configs.connectors().items()]
        self._known = {item.connector: item.revision for item in present}
        if self._service is not None:
            self._service.lead(present, complete=self._complete)

    def _saw(self, seen: Seen) -> None:
        if self._service is not None:
            self._service.saw(seen)


def _seen(name: str, entry: ConnectorEntry) -> Seen:
    return Seen(name, entry.revision, entry.changed, entry.author, entry.config)


def _now() -> int:
    return time.time_ns() // 1_000_000

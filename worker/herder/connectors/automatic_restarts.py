"""Restarts units whose provider values have expired (KIP-297), and decides when failed units are restarted.

Used only in the herder's thread.

Each process of a connector or task reports how long the values of its config providers are valid. After that the unit
is restarted and looks them up again. Apache Kafka Connect restarts only connectors, whose tasks keep the old values
(KAFKA-17627). Crash point: a killed worker loses these times. Wherever its connectors and tasks start again, they look
up all values, and a new period begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from connect.errors import ConfigError
from worker.config.restarts import RestartConfig
from worker.herder.inbox import Inbox, Later
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Expires
from worker.unit import Unit

__all__ = ["ExpiryRestarts", "RestartPolicy"]

logger = logging.getLogger(__name__)
# With a TTL of 0, a unit would only ever restart.
_SHORTEST_SECONDS: Final = 1.0
_ON_FAILURE: Final = "on-failure"
# More than any delay needs; a float cannot be doubled more than a thousand times.
_MOST_DOUBLINGS: Final = 64
_OVER: Final = (Phase.GONE, Phase.DRAINED)


class ExpiryRestarts:
    """Restarts units whose values have expired. ``restart`` ignores units that do not run."""

    def __init__(self, restart: Callable[[Iterable[Unit]], None], inbox: Inbox) -> None:
        self._restart = restart
        self._inbox = inbox
        self._due: dict[Unit, tuple[float, Later]] = {}

    def expires(self, notice: Expires) -> None:
        """Schedule the restart of a unit that has reported how long its values are valid; the shortest time counts."""
        unit, seconds = notice.unit, max(notice.seconds, _SHORTEST_SECONDS)
        if unit in self._due and self._due[unit][0] <= seconds:
            return
        self._forget(unit)
        self._due[unit] = (seconds, self._inbox.after(seconds, lambda: self._reload(unit)))
        logger.info(
            "%s will be restarted in %.1f s, when the values of its config providers expire",
            unit,
            seconds,
            extra={"context": str(unit)},
        )

    def changed(self, change: Changed) -> None:
        """Cancel the restart of a unit that has ended or is drained."""
        if change.phase in _OVER:
            self._forget(change.unit)

    def _reload(self, unit: Unit) -> None:
        self._forget(unit)
        logger.info(
            "%s is restarted: the values of its config providers have expired", unit, extra={"context": str(unit)}
        )
        self._restart([unit])

    def _forget(self, unit: Unit) -> None:
        if unit in self._due:
            self._due.pop(unit)[1].cancel()


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The ``restart.policy`` of a connector: up to ``limit`` restarts within ``window`` seconds.

    The first restart comes after ``backoff`` seconds, and each delay is twice the one before, up to ``longest``.
    """

    enabled: bool = False
    backoff: float = 1.0
    longest: float = 60.0
    limit: int = 10
    window: float = 3600.0

    @classmethod
    def of(cls, config: Mapping[str, str]) -> RestartPolicy:
        """Read the policy from a connector's configuration; disabled if the configuration is invalid.

        It may have been written by a newer worker, or by a Java worker, which does not validate these keys.
        """
        if config.get("restart.policy") != _ON_FAILURE:
            return cls()
        try:
            parsed = RestartConfig.parse(config)
        except ConfigError as error:
            logger.warning(
                "Connector %s will not be restarted if it fails, because its restart.policy is invalid: %s",
                config.get("name"),
                error,
            )
            return cls()
        return cls(
            enabled=True,
            backoff=parsed.restart_backoff_ms / 1000,
            longest=parsed.restart_backoff_max_ms / 1000,
            limit=parsed.restart_limit,
            window=parsed.restart_window_ms / 1000,
        )

    def recent(self, restarts: tuple[float, ...], now: float) -> tuple[float, ...]:
        """Return the times of the restarts that still count."""
        return tuple(at for at in restarts if now - at < self.window)

    def delay(self, restarts: tuple[float, ...], now: float) -> float | None:
        """Return the seconds to wait before the next restart; ``None`` if there will be none."""
        count = len(self.recent(restarts, now))
        if not self.enabled or count >= self.limit:
            return None
        return min(self.backoff * 2.0 ** min(count, _MOST_DOUBLINGS), self.longest)

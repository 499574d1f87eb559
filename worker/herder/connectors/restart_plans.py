"""Plans of restarts: the units a request restarts (KIP-745), and the time at which a failed one starts again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from connect.errors import ConfigError
from worker.config.restarts import RestartConfig
from worker.stores.status.store import State, Status
from worker.unit import Unit

__all__ = ["RestartPolicy", "restart_plan", "restarting"]


def restart_plan(
    connector: str, statuses: Mapping[Unit, Status], *, include_tasks: bool, only_failed: bool
) -> frozenset[Unit]:
    """The units to restart: the connector, with its tasks if asked for, or only the failed ones among them."""
    return frozenset(
        unit
        for unit, status in statuses.items()
        if unit.connector == connector
        and (include_tasks or not unit.is_task)
        and (not only_failed or status.state is State.FAILED)
    )


def restarting(statuses: Mapping[Unit, Status], plan: frozenset[Unit]) -> dict[Unit, Status]:
    """The statuses as they are shown once ``plan`` is under way."""
    return {
        unit: replace(status, state=State.RESTARTING) if unit in plan else status for unit, status in statuses.items()
    }


logger = logging.getLogger(__name__)
_ON_FAILURE: Final = "on-failure"
# Longer than any wait; a float cannot be doubled more than a thousand times.
_MOST_DOUBLINGS: Final = 64


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """``restart.policy`` of a connector: at most ``limit`` restarts in ``window`` seconds, each later than the last.

    The first comes after ``backoff`` seconds, each further one after twice as long, up to ``longest``.
    """

    enabled: bool = False
    backoff: float = 1.0
    longest: float = 60.0
    limit: int = 10
    window: float = 3600.0

    @classmethod
    def of(cls, config: Mapping[str, str]) -> RestartPolicy:
        """The policy that a connector's configuration asks for; none where it cannot be read.

        Others may have written that one: a newer worker, or Java's, which does not look at these keys.
        """
        if config.get("restart.policy") != _ON_FAILURE:
            return cls()
        try:
            parsed = RestartConfig.parse(config)
        except ConfigError as error:
            logger.warning("Connector %s has no restart policy now: %s", config.get("name"), error)
            return cls()
        return cls(
            enabled=True,
            backoff=parsed.restart_backoff_ms / 1000,
            longest=parsed.restart_backoff_max_ms / 1000,
            limit=parsed.restart_limit,
            window=parsed.restart_window_ms / 1000,
        )

    def recent(self, restarts: tuple[float, ...], now: float) -> tuple[float, ...]:
        """The times of those restarts that still count."""
        return tuple(at for at in restarts if now - at < self.window)

    def delay(self, restarts: tuple[float, ...], now: float) -> float | None:
        """The seconds to wait before the next restart after these; ``None`` if there is to be none."""
        count = len(self.recent(restarts, now))
        if not self.enabled or count >= self.limit:
            return None
        return min(self.backoff * 2.0 ** min(count, _MOST_DOUBLINGS), self.longest)

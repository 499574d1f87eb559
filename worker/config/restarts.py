"""The keys that start a connector automatically: after a failure, and on a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from connect.config import LOW, MEDIUM, Config, ConfigRuleError, Long, Width, at_least, option, validator
from connect.config.errors import invalid_value
from connect.errors import ConfigError

__all__ = ["RestartConfig"]

_GROUP: Final = "Restart"
_SCHEDULE: Final = "Schedule"


@validator("cron expression of five fields")
def _cron(key: str, value: str) -> None:
    if not value:
        return
    try:
        CronSim(value, datetime.now(UTC))
    except CronSimError as error:
        reason = f"{error}. Write minute, hour, day, month and day of the week, as in 0 2 * * * for two every night"
        raise invalid_value(key, value, reason) from error


@validator("name of a time zone")
def _zone(key: str, value: str) -> None:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise invalid_value(key, value, "There is no such time zone; use a name such as Europe/Berlin") from error


class RestartConfig(Config):
    """The connector keys that the herder itself reads, so their values cannot refer to config providers."""

    restart_policy: Literal["none", "on-failure"] = option(
        default="none",
        importance=MEDIUM,
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart policy",
        doc="What happens to a connector or task that has failed: none leaves it failed until a user restarts it, "
        "on-failure restarts it automatically.",
    )
    restart_backoff_ms: Long = option(
        default=1_000,
        importance=LOW,
        validator=at_least(0),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart backoff",
        doc="Delay before the first restart, in milliseconds; each further delay is twice as long.",
    )
    restart_backoff_max_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Maximum restart backoff",
        doc="The longest delay before a restart, in milliseconds.",
    )
    restart_limit: int = option(
        default=10,
        importance=LOW,
        validator=at_least(1),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart limit",
        doc="The most restarts within restart.window.ms; a connector or task that fails once more stays failed.",
    )
    restart_window_ms: Long = option(
        default=3_600_000,
        importance=LOW,
        validator=at_least(1),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart window",
        doc="How long a restart counts towards restart.limit, in milliseconds.",
    )

    schedule: str = option(
        default="",
        importance=MEDIUM,
        validator=_cron,
        group=_SCHEDULE,
        width=Width.MEDIUM,
        display_name="Schedule",
        doc="When to run a connector with run.until=drained, as a cron expression with five fields: it is started "
        "at each of these times and stops once it is drained. A run that is still in progress continues. Runs missed "
        "because no worker was up are made up for by one run. A connector that a user has stopped stays stopped.",
    )
    schedule_timezone: str = option(
        default="UTC",
        importance=LOW,
        validator=_zone,
        group=_SCHEDULE,
        width=Width.SHORT,
        display_name="Schedule time zone",
        doc="The time zone of the schedule, such as Europe/Berlin.",
    )

    def check(self) -> Iterable[ConfigError]:
        yield from super().check()
        # As given: a schedule that cannot be read would end the check, and hide the rules after it.
        if self.originals.get("schedule") and self.originals.get("run.until") != "drained":
            yield ConfigRuleError(
                "A connector with a schedule must end by itself: set run.until=drained too.",
                "schedule",
                "run.until",
            )

"""When a connector is started by itself: after a failure, and by the clock."""

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
        raise invalid_value(key, value, "There is no such time zone; write one as Europe/Berlin or UTC") from error


class RestartConfig(Config):
    """What the herder reads of a connector's configuration; the values may hold no references to config providers."""

    restart_policy: Literal["none", "on-failure"] = option(
        default="none",
        importance=MEDIUM,
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart policy",
        doc="What becomes of a connector or task that has failed: none leaves it as it is until somebody restarts it, "
        "on-failure starts it again by itself.",
    )
    restart_backoff_ms: Long = option(
        default=1_000,
        importance=LOW,
        validator=at_least(0),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart backoff",
        doc="How long to wait before the first restart, in milliseconds; each further wait is twice as long.",
    )
    restart_backoff_max_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Maximum restart backoff",
        doc="Longest wait before a restart, in milliseconds.",
    )
    restart_limit: int = option(
        default=10,
        importance=LOW,
        validator=at_least(1),
        group=_GROUP,
        width=Width.SHORT,
        display_name="Restart limit",
        doc="Most restarts within restart.window.ms; what fails once more stays failed.",
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
        doc="When a connector with run.until=drained runs, as a cron expression of five fields: at each of these times "
        "it is started, and it rests once it is drained. A run that is still under way goes on; one that was missed, "
        "because no worker was there, is made up for once. A connector that a user has stopped stays stopped.",
    )
    schedule_timezone: str = option(
        default="UTC",
        importance=LOW,
        validator=_zone,
        group=_SCHEDULE,
        width=Width.SHORT,
        display_name="Schedule time zone",
        doc="The time zone of the schedule, as Europe/Berlin.",
    )

    def check(self) -> Iterable[ConfigError]:
        yield from super().check()
        if self.schedule and self.originals.get("run.until") != "drained":
            yield ConfigRuleError(
                "A connector with a schedule has to come to an end: set run.until=drained beside it.",
                "schedule",
                "run.until",
            )

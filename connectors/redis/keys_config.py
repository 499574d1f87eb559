"""The options of the source of keys: the keys of Redis's own connector."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    non_empty,
    one_of,
    option,
)
from connect.errors import ConfigError
from connectors.redis.checks import notification_problems
from connectors.redis.connection import ConnectionConfig

__all__ = ["RedisKeysSourceConfig"]


class RedisKeysSourceConfig(ConnectionConfig):
    """Which keys to watch."""

    redis_keys_pattern: str = option(
        default="*",
        importance=HIGH,
        validator=non_empty,
        doc="Which keys to publish: * stands for any text, ? for one character, [ab] for either.",
    )
    topic: str = option(default="rediskeys", importance=MEDIUM, validator=non_empty, doc="The topic to publish to.")
    mode: str = option(
        default="LIVE",
        importance=MEDIUM,
        validator=one_of("LIVE", "LIVEONLY", ignore_case=True),
        doc="LIVE publishes all keys at each start and then those that change, LIVEONLY those that change.",
    )
    redis_keys_timeout: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="With run.until=drained: after how many milliseconds without a change the connector ends; 0 is never.",
    )
    batch_size: int = option(default=500, importance=LOW, validator=at_least(1), doc="Most keys of a read.")

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        key = "redis.uri" if self.redis_uri.value else "redis.host"
        for problem in notification_problems(self.client):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if self.redis_cluster:
            yield ConfigRuleError(
                "Each node of a cluster tells of its own keys only: remove redis.cluster, and run a connector for each "
                "master, with its address in redis.uri.",
                "redis.cluster",
            )

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        if self.originals.get("redis.pool"):
            yield "The key redis.pool has no effect: a task reads by one connection, and listens by another."

    @property
    def scans(self) -> bool:
        """Whether all keys are published at a start."""
        return self.mode.strip().upper() == "LIVE"

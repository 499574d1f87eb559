"""The options of the source of streams: the keys of Redis's own connector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    matches,
    non_empty,
    option,
)
from connect.errors import ConfigError
from connectors.redis.checks import server_problems
from connectors.redis.connection import ConnectionConfig

__all__ = ["TASKS_KEY", "TASK_KEY", "RedisStreamSourceConfig"]

TASK_KEY: Final = "task.id"
"""Set by the connector in the configurations of its tasks: the number of the task."""
TASKS_KEY: Final = "redis.stream.tasks"
"""Set likewise: how many tasks there are."""

_TASK: Final = "${task}"


class RedisStreamSourceConfig(ConnectionConfig):
    """Which stream to read, as which consumers of which group."""

    redis_stream_name: str = option(importance=HIGH, validator=non_empty, doc="The key of the stream.")
    topic: str = option(
        default="${stream}",
        importance=MEDIUM,
        validator=non_empty,
        doc="The topic to publish to; ${stream} stands for the key of the stream.",
    )
    redis_stream_offset: str = option(
        default="0-0",
        importance=MEDIUM,
        validator=matches(r"\$|\d{1,20}(-\d{1,20})?", "an id such as 0-0 or 1700000000000-0, or $ for what comes next"),
        doc="After which entry to begin if there is no consumer group yet; $ takes only what comes from then on.",
    )
    redis_stream_delivery: Literal["at-least-once", "at-most-once"] = option(
        default="at-least-once",
        importance=MEDIUM,
        doc="Whether entries are acknowledged once Kafka has them, or as they are read.",
    )
    redis_stream_consumer_group: str = option(
        default="kafka-consumer-group", importance=MEDIUM, validator=non_empty, doc="The consumer group; it is created."
    )
    redis_stream_consumer_name: str = option(
        default="consumer-${task}",
        importance=MEDIUM,
        validator=non_empty,
        doc="The name of a task's consumer; ${task} stands for its number.",
    )
    redis_stream_block: Long = option(
        default=100,
        importance=LOW,
        validator=at_least(0),
        doc="How many milliseconds the server waits for entries if there are none.",
    )
    redis_stream_claim_idle_ms: Long = option(
        default=300_000,
        importance=LOW,
        validator=at_least(1_000),
        doc="When the entries of a consumer that is none of this connector's, such as that of a task it no longer has, "
        "count as left behind: after it was silent for so long, the first task reads them in its place.",
    )
    batch_size: int = option(default=500, importance=LOW, validator=at_least(1), doc="Most entries of a read.")

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        key = "redis.uri" if self.redis_uri.value else "redis.host"
        for _, problem in server_problems(self.client):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if str(self.originals.get("tasks.max") or "1").strip() != "1" and _TASK not in self.redis_stream_consumer_name:
            key = "redis.stream.consumer.name"
            yield ConfigRuleError(f"Several tasks need consumers of their own: write ${{task}} in {key}.", key)

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        if self.originals.get("redis.pool"):
            yield "The key redis.pool has no effect: a task has one connection, which keeps the order of its commands."

    @property
    def topic_name(self) -> str:
        """The topic to publish to."""
        return self.topic.replace("${stream}", self.redis_stream_name)

    def consumer(self, task: int) -> str:
        """Return the name of a task's consumer."""
        return self.redis_stream_consumer_name.replace(_TASK, str(task))

    @property
    def task(self) -> int:
        """The number of this task."""
        return int(self.originals.get(TASK_KEY) or 0)

    @property
    def consumers(self) -> tuple[str, ...]:
        """The consumers of all tasks."""
        return tuple(self.consumer(task) for task in range(int(self.originals.get(TASKS_KEY) or 1)))

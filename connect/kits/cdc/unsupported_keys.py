"""Keys of Debezium's that are not supported here.

A key that would change which records are sent is an error; any other gives a warning. A value that asks for what
happens anyway gives neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.config import ConfigRuleError
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError

__all__ = ["DEBEZIUM_KEYS", "unsupported_key_errors", "unsupported_key_warnings"]

_NO_CLASSES: Final = "Java classes cannot run here: remove the key, and use a transformation (transforms) instead."

_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "converters": UnsupportedKey(_NO_CLASSES),
    "post.processors": UnsupportedKey(_NO_CLASSES),
    "transaction.metadata.factory": UnsupportedKey(
        "Java classes cannot run here: remove the key.",
        ("", "io.debezium.pipeline.txmetadata.defaulttransactionmetadatafactory"),
    ),
    "snapshot.mode.custom.name": UnsupportedKey(_NO_CLASSES),
    "snapshot.query.mode.custom.name": UnsupportedKey(_NO_CLASSES),
    "snapshot.locking.mode.custom.name": UnsupportedKey(_NO_CLASSES),
    "snapshot.query.mode": UnsupportedKey(
        "Remove the key, and set snapshot.select.statement.overrides for tables that are not to be read as they are.",
        ("", "select_all"),
    ),
    "event.processing.failure.handling.mode": UnsupportedKey(
        "An event that cannot be read fails the task, so that none is lost: remove the key. For values that their "
        "schema cannot hold set event.converting.failure.handling.mode.",
        ("", "fail"),
    ),
    "openlineage.integration.enabled": UnsupportedKey(
        "Lineage is not sent by connectors here: remove the key.", ("", "false")
    ),
}
_MEMORY: Final = "there is no queue between the database and Kafka: memory is bounded by max.batch.size"
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "max.queue.size": UnsupportedKey(_MEMORY),
    "max.queue.size.in.bytes": UnsupportedKey(_MEMORY, ("", "0")),
    "query.fetch.size": UnsupportedKey("changes are read as the database sends them", ("", "0")),
    "poll.interval.ms": UnsupportedKey("changes are passed on when they arrive"),
    "errors.max.retries": UnsupportedKey("a lost connection is retried until it is back", ("", "-1")),
    "retriable.restart.connector.wait.ms": UnsupportedKey("the pause between attempts is the connector's own"),
    "custom.metric.tags": UnsupportedKey("metrics have the labels connector and task"),
    "executor.shutdown.timeout.ms": UnsupportedKey("the worker's task.shutdown.graceful.timeout.ms applies"),
    "topic.cache.size": UnsupportedKey("names of topics are kept with their tables"),
    "statistics.metrics.enabled": UnsupportedKey("the worker always measures latencies", ("", "true")),
    "memory.management.schemas.class": UnsupportedKey("the schemas of captured tables are kept in memory"),
    "memory.management.tables.class": UnsupportedKey("the schemas of captured tables are kept in memory"),
    "table.ignore.builtin": UnsupportedKey("the database's own tables are always left out", ("", "true")),
    "guardrail.collections.max": UnsupportedKey("any number of tables may be captured", ("", "0")),
    "guardrail.collections.limit.action": UnsupportedKey("any number of tables may be captured", ("", "warn")),
    "legacy.snapshot.max.threads": UnsupportedKey("tables are divided into chunks of their keys", ("", "false")),
    "custom.sanitize.pattern": UnsupportedKey("passwords are never shown, whatever their keys are called"),
}
DEBEZIUM_KEYS: Final = (*_REFUSED, *_WITHOUT_EFFECT, "internal.", "openlineage.")
"""The beginnings of keys of which these functions tell what they mean here, where they mean anything else; besides
them, of keys that mean nothing without those, or are Debezium's own business.
"""


def unsupported_key_errors(props: Mapping[str, str | None]) -> Iterator[ConfigError]:
    """Yield an error for each key that cannot be honoured."""
    for key, value, told in given_keys(_REFUSED, props):
        yield ConfigRuleError(f"{key}={value} is not supported. {told}", key)


def unsupported_key_warnings(props: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a warning for each key that has no effect."""
    yield from without_effect(_WITHOUT_EFFECT, props)

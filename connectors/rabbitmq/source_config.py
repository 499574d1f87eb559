"""The options of the RabbitMQ sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    at_least,
    between,
    non_empty_list,
    option,
)
from connect.errors import ConfigError
from connectors.rabbitmq.checks import queue_problems
from connectors.rabbitmq.config import ConnectionConfig, name_map, names

__all__ = ["ConsumerMode", "RabbitMQSourceConfig", "RecordFormat"]

_MEGABYTE: Final = 1 << 20
_DEFAULT_PREFETCH: Final = 5000
_MOST_PREFETCH: Final = 65_535
_STRUCT_CLASSES: Final = "com.github.jcustenborder."


class ConsumerMode(StrEnum):
    """Which tasks consume a queue."""

    DEDICATED = "dedicated"
    SHARED = "shared"


class RecordFormat(StrEnum):
    """What a message is as a record."""

    BODY = "body"
    MESSAGE = "message"


class RabbitMQSourceConfig(ConnectionConfig):
    """What to consume, and where to publish it."""

    kafka_topic: str = option(
        default="",
        importance=HIGH,
        doc="The topic of all messages but those of queues in rabbitmq.queue.topic.map.",
    )
    rabbitmq_queue: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The queues to consume, which must exist: classic or quorum queues.",
    )
    rabbitmq_queue_topic_map: str = option(
        default="",
        importance=MEDIUM,
        validator=names,
        doc='The topics of queues, as a JSON object such as {"orders": "shop-orders"}. The messages of others go to '
        "kafka.topic.",
    )
    rabbitmq_queue_consumer_mode: ConsumerMode = option(
        default=ConsumerMode.DEDICATED,
        importance=MEDIUM,
        doc="dedicated: the queues are divided among the tasks, and the messages of a queue keep their order. shared: "
        "each task consumes each queue, which is faster for one queue and does not keep its order.",
    )
    rabbitmq_prefetch_count: int = option(
        default=0,
        importance=MEDIUM,
        validator=between(0, _MOST_PREFETCH),
        doc="The most messages of a queue that a task has and that Kafka has not acknowledged. 0: "
        f"{_DEFAULT_PREFETCH}.",
    )
    rabbitmq_prefetch_global: bool = option(
        default=False,
        importance=LOW,
        doc="Without effect: each queue has a channel of its own, so that both settings mean the same.",
    )
    rabbitmq_record_format: RecordFormat | None = option(
        default=None,
        importance=MEDIUM,
        doc="body: the record's value is the body, its key the message id, and properties are headers, as with "
        "Confluent's connector. message: the value is a struct of envelope, properties and body, and the key one of "
        "the message id, as with jcustenborder's. By default as the name in connector.class has it: body, unless that "
        "is jcustenborder's.",
    )
    rabbitmq_batch_size: int = option(
        default=2000, importance=LOW, validator=at_least(1), doc="The most messages that are published together."
    )
    rabbitmq_inbox_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=at_least(_MEGABYTE),
        doc="How many bytes of messages a task holds before it stops reading. RabbitMQ keeps the rest.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for key, problem in queue_problems(self, self.rabbitmq_queue):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if not self.kafka_topic:
            unmapped = [queue for queue in self.rabbitmq_queue if queue not in self.topics]
            if unmapped:
                yield ConfigRuleError(
                    f"The queue {unmapped[0]} has no topic: set kafka.topic, or name it in rabbitmq.queue.topic.map.",
                    "kafka.topic",
                )
        if len(set(self.rabbitmq_queue)) < len(self.rabbitmq_queue):
            yield ConfigRuleError("rabbitmq.queue names a queue twice: remove one of them.", "rabbitmq.queue")

    @property
    def topics(self) -> Mapping[str, str]:
        """The topics of queues that have their own."""
        return name_map(self.rabbitmq_queue_topic_map)

    @property
    def record_format(self) -> RecordFormat:
        """What a message is as a record."""
        if self.rabbitmq_record_format is not None:
            return self.rabbitmq_record_format
        is_struct = (self.originals.get("connector.class") or "").startswith(_STRUCT_CLASSES)
        return RecordFormat.MESSAGE if is_struct else RecordFormat.BODY

    @property
    def prefetch(self) -> int:
        """The most messages of a queue under way."""
        return self.rabbitmq_prefetch_count or _DEFAULT_PREFETCH

    @property
    def patience_seconds(self) -> float:
        """How long the connection's thread may do nothing else than wait for room."""
        return min(10.0, self.rabbitmq_requested_heartbeat_seconds / 6 or 10.0)

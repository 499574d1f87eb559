"""The options of the RabbitMQ sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, at_least, option
from connect.errors import ConfigError
from connectors.rabbitmq.checks import exchange_problems
from connectors.rabbitmq.config import ConnectionConfig, name_map, names

__all__ = ["RabbitMQSinkConfig"]

_MEGABYTE: Final = 1 << 20
_DEFAULT_WINDOW: Final = 1000


class RabbitMQSinkConfig(ConnectionConfig):
    """Where to publish, and how."""

    rabbitmq_exchange: str | None = option(
        default=None,
        importance=HIGH,
        doc="The exchange to publish to, which must exist. An empty value is the default exchange, which routes to the "
        "queue with the name of the routing key.",
    )
    rabbitmq_routing_key: str = option(
        default="",
        importance=HIGH,
        doc="The routing key. ${topic} in it stands for the record's topic, ${key} for its key.",
    )
    rabbitmq_topic_queue_map: str = option(
        default="",
        importance=MEDIUM,
        validator=names,
        doc='Queues of topics, as a JSON object such as {"orders": "shop-orders"}: their records go there, by the '
        "default exchange.",
    )
    rabbitmq_delivery_mode: Literal["PERSISTENT", "TRANSIENT"] = option(
        default="PERSISTENT",
        importance=HIGH,
        doc="Whether RabbitMQ keeps messages in durable queues when it is restarted (PERSISTENT), or not (TRANSIENT).",
    )
    rabbitmq_mandatory: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether a message that reaches no queue is a bad record, which errors.tolerance decides about. Otherwise "
        "RabbitMQ drops it.",
    )
    rabbitmq_forward_kafka_key: bool = option(
        default=False, importance=LOW, doc="Whether the record's key, as text, is the message's correlation id."
    )
    rabbitmq_forward_kafka_metadata: bool = option(
        default=False,
        importance=LOW,
        doc="Whether messages have the headers KAFKA_TOPIC, KAFKA_PARTITION and KAFKA_OFFSET, by which a consumer "
        "can tell if a message comes twice.",
    )
    rabbitmq_forward_kafka_headers: bool = option(
        default=False, importance=LOW, doc="Whether the record's headers are headers of the message."
    )
    rabbitmq_publish_max_batch_size: int = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc=f"The most messages that are sent and not confirmed. 0: {_DEFAULT_WINDOW}.",
    )
    rabbitmq_publish_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=at_least(_MEGABYTE),
        doc="The most bytes of messages that are not confirmed; one message may be larger.",
    )
    rabbitmq_publish_ack_timeout: Long = option(
        default=10_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How many milliseconds RabbitMQ may take to confirm a message before the connection is made again, and the "
        "message sent again. 0: a day.",
    )
    rabbitmq_publish_max_retries: int = option(
        default=-1,
        importance=MEDIUM,
        validator=at_least(-1),
        doc="How often a message that RabbitMQ does not accept, because its queue is full, is sent again before it is "
        "a bad record. -1: until it is accepted.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for key, problem in exchange_problems(self, self.rabbitmq_exchange or "", self.queues.values()):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if self.rabbitmq_exchange is None and not self.queues:
            yield ConfigRuleError(
                "Set rabbitmq.exchange, which may be empty for the default exchange, or rabbitmq.topic.queue.map.",
                "rabbitmq.exchange",
            )

    @property
    def queues(self) -> Mapping[str, str]:
        """The queues of topics that have their own."""
        return name_map(self.rabbitmq_topic_queue_map)

    @property
    def window(self) -> int:
        """The most messages that are not confirmed."""
        return self.rabbitmq_publish_max_batch_size or _DEFAULT_WINDOW

    @property
    def confirm_seconds(self) -> float:
        """How long a confirmation may take."""
        return (self.rabbitmq_publish_ack_timeout or 86_400_000) / 1000

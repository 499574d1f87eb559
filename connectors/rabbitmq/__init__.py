"""RabbitMQ: sources of queues, and a sink for exchanges."""

from connectors.rabbitmq.sink import RabbitMQSinkConnector, RabbitMQSinkTask
from connectors.rabbitmq.sink_config import RabbitMQSinkConfig
from connectors.rabbitmq.source import (
    MessageSourceTask,
    RabbitMQMessageSourceConnector,
    RabbitMQSourceConnector,
    RabbitMQSourceTask,
)
from connectors.rabbitmq.source_config import MessageSourceConfig, RabbitMQSourceConfig

__all__ = [
    "MessageSourceConfig",
    "MessageSourceTask",
    "RabbitMQMessageSourceConnector",
    "RabbitMQSinkConfig",
    "RabbitMQSinkConnector",
    "RabbitMQSinkTask",
    "RabbitMQSourceConfig",
    "RabbitMQSourceConnector",
    "RabbitMQSourceTask",
]

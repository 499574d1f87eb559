"""RabbitMQ: a source of queues, and a sink for exchanges."""

from connectors.rabbitmq.sink import RabbitMQSinkConnector, RabbitMQSinkTask
from connectors.rabbitmq.sink_config import RabbitMQSinkConfig
from connectors.rabbitmq.source import RabbitMQSourceConnector, RabbitMQSourceTask
from connectors.rabbitmq.source_config import RabbitMQSourceConfig

__all__ = [
    "RabbitMQSinkConfig",
    "RabbitMQSinkConnector",
    "RabbitMQSinkTask",
    "RabbitMQSourceConfig",
    "RabbitMQSourceConnector",
    "RabbitMQSourceTask",
]

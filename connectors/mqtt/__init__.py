"""MQTT: a source of topics, and a sink for them."""

from connectors.mqtt.sink import MqttSinkConnector, MqttSinkTask
from connectors.mqtt.sink_config import MqttSinkConfig
from connectors.mqtt.source import MqttSourceConnector, MqttSourceTask
from connectors.mqtt.source_config import MqttSourceConfig

__all__ = [
    "MqttSinkConfig",
    "MqttSinkConnector",
    "MqttSinkTask",
    "MqttSourceConfig",
    "MqttSourceConnector",
    "MqttSourceTask",
]

"""The options of the MQTT sink."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, at_least, between, non_empty, option
from connect.errors import ConfigError
from connectors.mqtt.config import ConnectionConfig
from connectors.mqtt.topics import topic_problem

__all__ = ["MqttSinkConfig"]

_MEGABYTE: Final = 1 << 20


class MqttSinkConfig(ConnectionConfig):
    """What to publish, and how."""

    mqtt_qos: int = option(
        default=0,
        importance=HIGH,
        validator=between(0, 2),
        doc="The quality of service of messages. 0: what is under way when the connection or the task ends may be "
        "lost. 1: each is sent until the server has acknowledged it. 2: as 1, and it comes once even if the connection "
        "is lost.",
    )
    mqtt_retained_enabled: bool = option(
        default=True, importance=LOW, doc="Whether the server keeps the last message of a topic for later subscribers."
    )
    mqtt_clean_session_enabled: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the server forgets the session with the connection. With mqtt.qos=2 it always keeps it.",
    )
    mqtt_topic_template: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=non_empty,
        doc="The topic of messages. ${topic} in it stands for the record's topic, ${key} for its key.",
    )
    mqtt_forward_kafka_headers: bool = option(
        default=False,
        importance=LOW,
        doc="Whether headers that are texts are user properties of the message; needs mqtt.version=5.",
    )
    mqtt_publish_max_messages: int = option(
        default=1000,
        importance=MEDIUM,
        validator=between(1, 65_535),
        doc="The most messages that are sent and not acknowledged.",
    )
    mqtt_publish_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=at_least(_MEGABYTE),
        doc="The most bytes of messages that are not acknowledged; one message may be larger.",
    )
    mqtt_publish_timeout_ms: Long = option(
        default=30_000,
        importance=LOW,
        validator=at_least(100),
        doc="How long the server may take to acknowledge a message before the connection is made again.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        from connectors.mqtt.checks import connection_problems  # noqa: PLC0415 - it loads the library

        for key, problem in connection_problems(self):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        filled = self.mqtt_topic_template.replace("${topic}", "x").replace("${key}", "x")
        if problem := topic_problem(filled):
            yield ConfigError("mqtt.topic.template", self.mqtt_topic_template, problem.capitalize())
        if self.mqtt_forward_kafka_headers and not self.is_version_5:
            yield ConfigError(
                "mqtt.forward.kafka.headers", "true", "Messages have user properties with mqtt.version=5 only"
            )

    @property
    def is_clean(self) -> bool:
        """Whether the session ends with the connection."""
        return self.mqtt_clean_session_enabled and self.mqtt_qos < 2

"""The options of the MQTT source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

import orjson

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    at_least,
    between,
    invalid_value,
    non_empty,
    non_empty_list,
    option,
    validator,
)
from connect.errors import ConfigError
from connectors.mqtt.config import ConnectionConfig
from connectors.mqtt.topics import filter_problem, kafka_problem

__all__ = ["ConsumerMode", "MqttSourceConfig"]

_MEGABYTE: Final = 1 << 20


class ConsumerMode(StrEnum):
    """Which tasks receive the messages of a filter."""

    DEDICATED = "dedicated"
    SHARED = "shared"


@validator("filters of topics, such as sensors/+/temperature or sensors/#")
def _filters(key: str, value: Collection[str]) -> None:
    for each in value:
        if problem := filter_problem(each):
            raise invalid_value(key, each, problem.capitalize())


@validator('JSON object such as {"sensors/+/temperature": "temperatures"}')
def _topic_map(key: str, value: str) -> None:
    try:
        pairs = orjson.loads(value) if value.strip() else {}
    except orjson.JSONDecodeError as error:
        raise invalid_value(key, value, f"It is no JSON ({error})") from None
    if not isinstance(pairs, dict) or not all(isinstance(name, str) for name in pairs.values()):
        raise invalid_value(key, value, "It must be a JSON object of texts")
    for each in pairs:
        if problem := filter_problem(each):
            raise invalid_value(key, each, problem.capitalize())


class MqttSourceConfig(ConnectionConfig):
    """What to subscribe to, and where to publish it."""

    mqtt_topics: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The topics to subscribe to. + stands for one level, # for all below: sensors/+/temperature, sensors/#.",
    )
    kafka_topic: str = option(
        default="mqtt",
        importance=HIGH,
        validator=non_empty,
        doc="The topic of Kafka. ${topic} in it stands for the topic of the message, with dots for slashes and _ for "
        "characters that Kafka does not allow.",
    )
    mqtt_topic_map: str = option(
        default="",
        importance=MEDIUM,
        validator=_topic_map,
        doc='Topics of Kafka by filters, as a JSON object such as {"sensors/+/temperature": "temperatures"}. The first '
        "filter that matches counts, and kafka.topic for the other messages.",
    )
    mqtt_qos: int = option(
        default=0,
        importance=MEDIUM,
        validator=between(0, 2),
        doc="The quality of service to subscribe with. 0: messages may be lost. 1: each is acknowledged once Kafka has "
        "it. 2: as 1, since MQTT's exactly once ends at the client, before Kafka has the message.",
    )
    mqtt_clean_session_enabled: bool | None = option(
        default=None,
        importance=LOW,
        doc="Whether the server forgets the session when the connection ends: what is published until the next one "
        "is lost then. By default so with mqtt.qos=0 alone.",
    )
    mqtt_consumer_mode: ConsumerMode = option(
        default=ConsumerMode.DEDICATED,
        importance=MEDIUM,
        doc="dedicated: the topics are divided among the tasks, and messages keep their order. shared: each task "
        "subscribes to each topic as a member of a group ($share/), among which the server divides the messages.",
    )
    mqtt_share_group: str = option(
        default="",
        importance=LOW,
        doc="The group of mqtt.consumer.mode=shared; by default the name of the connector.",
    )
    mqtt_receive_max: int = option(
        default=1000,
        importance=MEDIUM,
        validator=between(1, 65_535),
        doc="The most messages that Kafka has not acknowledged yet. The server is told with MQTT 5; one of 3.1.1 has a "
        "limit of its own, often 20.",
    )
    mqtt_batch_size: int = option(
        default=1000, importance=LOW, validator=at_least(1), doc="The most messages that are published together."
    )
    mqtt_inbox_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=at_least(_MEGABYTE),
        doc="How many bytes of messages a task holds before it stops reading.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect and subscribe, and yield an error for what would fail later."""
        from connectors.mqtt.checks import subscription_problems  # noqa: PLC0415 - it loads the library

        for key, problem in subscription_problems(self, self.mqtt_topics, self.mqtt_qos):
            yield ConfigRuleError(problem, key)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        try:
            _filters("mqtt.topics", self.mqtt_topics)
        except ConfigError as error:
            yield error
        if problem := kafka_problem(self.kafka_topic.replace("${topic}", "x")):
            yield ConfigError("kafka.topic", self.kafka_topic, problem.capitalize())
        for name in self.topic_map.values():
            if problem := kafka_problem(name.replace("${topic}", "x")):
                yield ConfigError("mqtt.topic.map", name, problem.capitalize())

    def warnings(self) -> Iterator[str]:
        """Yield warnings about a valid configuration."""
        yield from super().warnings()
        if self.mqtt_qos and self.mqtt_clean_session_enabled:
            yield (
                "With mqtt.clean.session.enabled=true the server forgets the session when the task stops: what is "
                "published until it runs again is lost. Remove the key to keep it."
            )

    @property
    def is_clean(self) -> bool:
        """Whether the session ends with the connection."""
        given = self.mqtt_clean_session_enabled
        return self.mqtt_qos == 0 if given is None else given

    @property
    def asked_qos(self) -> int:
        """The quality of service of the subscriptions. With 2 the server would forget messages before Kafka has
        them."""
        return min(self.mqtt_qos, 1)

    @property
    def topic_map(self) -> Mapping[str, str]:
        """The topics of Kafka by filters."""
        found: Mapping[str, str] = orjson.loads(self.mqtt_topic_map) if self.mqtt_topic_map.strip() else {}
        return found

    @property
    def share_group(self) -> str:
        """The group that shares the messages."""
        return self.mqtt_share_group or str(self.originals.get("name") or "sluice")

"""Topics, filters and options of MQTT."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connectors.mqtt import MqttSinkConfig, MqttSourceConfig
from connectors.mqtt.topics import filter_problem, kafka_name, kafka_problem, matches, shared_filter, topic_problem

SOURCE = {"mqtt.server.uri": "tcp://host:1883", "mqtt.topics": "a/#"}


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+/c", "a//c", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("#", "$SYS/uptime", False),
        ("+/uptime", "$SYS/uptime", False),
        ("$SYS/#", "$SYS/uptime", True),
        ("$share/group/a/+", "a/b", True),
    ],
)
def test_filters_match_as_the_standard_says(topic_filter: str, topic: str, expected: bool) -> None:
    assert matches(topic_filter, topic) is expected


def test_filters_and_topics_are_checked() -> None:
    assert [filter_problem(each) is None for each in ("a/+/#", "#", "+", "$share/g/a", "a//b")] == [True] * 5
    assert [filter_problem(each) is None for each in ("a/#/b", "a#", "a+/b", "$share/g", "$share//a", "")] == [
        False
    ] * 6
    assert [topic_problem(each) is None for each in ("a/b", "a/+", "#", "", "a" * 65_536)] == [True] + [False] * 4
    assert shared_filter("a/#", "g") == "$share/g/a/#"
    assert shared_filter("$share/own/a", "g") == "$share/own/a"
    assert kafka_name("plant/7/°C $x") == "plant.7._C__x"
    assert [kafka_problem(each) is None for each in ("a.b", "..", "a/b", "a" * 250)] == [True, False, False, False]


def test_a_session_lasts_unless_messages_may_be_lost() -> None:
    assert MqttSourceConfig.parse(SOURCE).is_clean
    lasting = MqttSourceConfig.parse({**SOURCE, "mqtt.qos": "2", "name": "n"})
    assert (lasting.is_clean, lasting.asked_qos, lasting.client_id) == (False, 1, "sluice-n")
    asked = MqttSourceConfig.parse({**SOURCE, "mqtt.qos": "1", "mqtt.clean.session.enabled": "true"})
    assert asked.is_clean
    assert "is lost" in next(iter(asked.warnings()))


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"mqtt.server.uri": "host:1883"}, "Write it as tcp://host:1883 or ssl://host:8883"),
        ({"mqtt.server.uri": "ws://host"}, "MQTT over WebSockets is not supported"),
        ({"mqtt.server.uri": "tcp://a,ssl://b"}, "Use either tcp:// or ssl:// for all servers"),
        ({"mqtt.topics": "a/#/b"}, "# stands for all levels below"),
        ({"kafka.topic": "a/b"}, "It has other characters than letters"),
        ({"mqtt.topic.map": "[]"}, "It must be a JSON object of texts"),
        ({"mqtt.qos": "3"}, "mqtt.qos"),
        ({"mqtt.will.topic": "a/+"}, "A topic to publish to has no wildcards"),
    ],
)
def test_mistakes_are_refused(props: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        MqttSourceConfig.parse(SOURCE | props)


def test_a_password_in_a_uri_is_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"mqtt\.username") as caught:
        MqttSourceConfig.parse(SOURCE | {"mqtt.server.uri": "tcp://u:geheim@host"})
    assert "geheim" not in str(caught.value)


def test_user_properties_need_mqtt_5() -> None:
    with pytest.raises(ConfigError, match=r"mqtt\.version=5"):
        MqttSinkConfig.parse({"mqtt.server.uri": "tcp://h", "mqtt.forward.kafka.headers": "true"})

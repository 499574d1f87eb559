"""The MQTT connectors keep the contract."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connectors.mqtt import MqttSinkConnector, MqttSourceConnector
from equipment.proofs import thorough, thorough_stories
from equipment.servers.mosquitto import MosquittoServer, Subscriber, topic_name
from equipment.waiting import wait_until

MESSAGES = [b"message %d" % number for number in range(12)]


class RepeatingPublisher:
    """Publishes the same messages again and again, for as long as it is there."""

    def __init__(self, server: MosquittoServer, topic: str) -> None:
        self._client = server.client()
        self._topic = topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            for message in MESSAGES:
                self._client.publish(self._topic, message, 1)

    def close(self) -> None:
        """Stop."""
        self._ended.set()
        self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()


@thorough_stories("test_resumes_after_every_offset")
class TestMqttSource(SourceConnectorTests):
    """A server forgets what is acknowledged: a device that starts over stands for the beginning."""

    connector_class = MqttSourceConnector
    record_count = len(MESSAGES)
    resumes_exactly = False

    @pytest.fixture(params=["1", *thorough("0", "2")])
    def props(self, mosquitto: MosquittoServer, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
        topic = topic_name()
        publisher = RepeatingPublisher(mosquitto, topic)
        yield {**mosquitto.props, "mqtt.topics": topic, "mqtt.qos": request.param, "mqtt.client.id": topic}
        publisher.close()
        # The session would go on for ever.
        client = mosquitto.client(topic)
        client.disconnect()
        client.loop_stop()

    def identity(self, record: SourceRecord) -> object:
        """The payload: the offset counts messages."""
        return record.value


@thorough_stories("test_nothing_is_lost_when_it_is_killed")
class TestMqttSink(SinkConnectorTests):
    """Texts to a topic."""

    connector_class = MqttSinkConnector

    @pytest.fixture
    def subscriber(self, mosquitto: MosquittoServer) -> Iterator[tuple[str, Subscriber]]:
        topic = topic_name()
        subscriber = Subscriber(mosquitto, topic)
        yield topic, subscriber
        subscriber.close()

    @pytest.fixture(params=["1", *thorough("2")])
    def props(
        self, mosquitto: MosquittoServer, subscriber: tuple[str, Subscriber], request: pytest.FixtureRequest
    ) -> Mapping[str, str]:
        topic = subscriber[0]
        return {
            **mosquitto.props,
            "mqtt.qos": request.param,
            "mqtt.topic.template": topic,
            "mqtt.client.id": f"sink-{topic}",
        }

    @pytest.fixture
    def written(self, mosquitto: MosquittoServer, subscriber: tuple[str, Subscriber]) -> Callable[[], Iterable[Any]]:
        topic, received = subscriber

        def texts() -> list[str]:
            # What was acknowledged before it comes before it.
            ends = sum(payload == b"end" for payload in received.payloads)
            mosquitto.publish(topic, [b"end"])
            wait_until("the end is there", lambda: sum(each == b"end" for each in received.payloads) > ends, 120)
            return [payload.decode() for payload in received.payloads if payload != b"end"]

        return texts

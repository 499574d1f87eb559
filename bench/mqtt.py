"""Measures how fast the MQTT connectors move messages, beside bare Paho: ``python bench/mqtt.py [MESSAGES]``.

The ceilings are a subscriber that acknowledges what it receives, and a publisher with a thousand messages under way, in
this process. CPU seconds are those of the worker, with its start. The time of the source is that from its first message
on the topic to its last.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from standalone import Bench, show, show_title

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from own_broker import own_broker
from paho.mqtt.client import Client, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion
from queue_rates import FEW, PAYLOAD, fill, sourced, timed

from equipment.servers.mosquitto import MosquittoServer, mosquitto_server
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerConfig

_BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}


def main() -> None:
    """Measure and print."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        server = stack.enter_context(mosquitto_server())
        bench = Bench(folder, broker.bootstrap_servers, messages)
        for topic, count in (("bare", messages), ("many", messages)):
            _session(server, topic)
            server.publish(topic, [b"%d " % number + PAYLOAD for number in range(count)])
        show_title("MQTT to topic, QoS 1")
        bare = timed("paho: subscriber", messages, lambda: _received(server, "bare", messages))
        show(bare, bare)
        source = {"connector.class": "MqttSource", "mqtt.qos": "1", **server.props}
        props = {**source, "mqtt.topics": "many", "mqtt.client.id": "many", "kafka.topic": "b"}
        show(sourced(folder, broker.bootstrap_servers, "MqttSource", props, "b", messages), bare)

        show_title("topic to MQTT, QoS 1")
        fill(broker.bootstrap_servers, "messages", messages)
        fill(broker.bootstrap_servers, "few-messages", FEW)
        bare = timed("paho: publisher", messages, lambda: _published(server, messages))
        show(bare, bare)
        sink = {"connector.class": "MqttSink", "mqtt.qos": "1", **server.props}
        start = bench.sluice("MqttSink, few", {**sink, "topics": "few-messages"}, _BYTES, FEW)
        show(start, bare)
        show(bench.sluice("MqttSink", {**sink, "topics": "messages"}, _BYTES), bare, start)


def _session(server: MosquittoServer, topic: str) -> None:
    """Make a session that holds the messages of a topic; its client id is the topic."""
    client = server.client(topic, is_clean=False, version=MQTTv311)
    subscribed = threading.Event()
    client.on_subscribe = lambda *_: subscribed.set()
    wait_until("it is connected", client.is_connected)
    client.subscribe(topic, 1)
    subscribed.wait(60)
    client.disconnect()
    client.loop_stop()


def _received(server: MosquittoServer, topic: str, messages: int) -> None:
    """Receive what the session of the topic holds."""
    count, done = 0, threading.Event()
    client = server.client(topic, is_clean=False, version=MQTTv311)

    def came(_client: Any, _data: Any, _message: Any) -> None:
        nonlocal count
        count += 1
        if count == messages:
            done.set()

    client.on_message = came
    done.wait(600)
    client.disconnect()
    client.loop_stop()
    # The first messages may have come before there was somebody to count them.
    assert count > messages * 0.95


def _published(server: MosquittoServer, messages: int) -> None:
    """Publish with a thousand messages under way."""
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv311)
    client.max_inflight_messages_set(1000)
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    for info in [client.publish("bare-out", b"%d " % number + PAYLOAD, 1) for number in range(messages)]:
        info.wait_for_publish(600)
    client.disconnect()
    client.loop_stop()


if __name__ == "__main__":
    main()

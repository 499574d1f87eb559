"""RabbitMQ's and MQTT's connectors on a real worker, with configurations as they are published elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.servers.mosquitto import MosquittoServer, Subscriber, topic_name
from equipment.servers.rabbitmq import RabbitServer, queue_name
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]

pytestmark = [pytest.mark.cluster, pytest.mark.integration]

PATIENCE = 180.0
LICENCE = {
    "confluent.license": "",
    "confluent.topic.bootstrap.servers": "broker:9092",
    "confluent.topic.replication.factor": "1",
}


@pytest.mark.thorough
def test_rabbitmq_both_ways(standalone: MakeWorker, rabbitmq: RabbitServer, bootstrap: str, topic: str) -> None:
    """Confluent's and jcustenborder's, as in their examples but for host, port and names; a record that reaches no
    queue is a dead letter."""
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"{topic}-struct")
    dead = f"{topic}-dead"
    myqueue, own, queue1, exchange1 = (rabbitmq.declare(queue_name()) for _ in range(4))
    with rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.exchange_declare(exchange1, "direct")
        channel.queue_bind(queue1, exchange1, "rkey1")
    server = {**rabbitmq.props, "rabbitmq.username": "guest", "rabbitmq.password": "guest"}
    worker = standalone()
    worker.connector(
        "rabbitmq-source",
        **{
            "connector.class": "io.confluent.connect.rabbitmq.RabbitMQSourceConnector",
            "tasks.max": "10",
            "kafka.topic": topic,
            "rabbitmq.queue": myqueue,
            "rabbitmq.virtual.host": "/",
            "rabbitmq.prefetch.count": "500",
            "rabbitmq.automatic.recovery.enabled": "true",
            "rabbitmq.network.recovery.interval.ms": "10000",
            "rabbitmq.topology.recovery.enabled": "true",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            **LICENCE,
            **server,
        },
    )
    worker.connector(
        "connector1",
        **{
            "tasks.max": "1",
            "connector.class": "com.github.jcustenborder.kafka.connect.rabbitmq.RabbitMQSourceConnector",
            "kafka.topic": f"{topic}-struct",
            "rabbitmq.queue": own,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            **server,
        },
    )
    worker.connector(
        "rabbitmq-sink",
        **{
            "connector.class": "io.confluent.connect.rabbitmq.sink.RabbitMQSinkConnector",
            "tasks.max": "1",
            "topics": f"{topic},{topic}-out",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "rabbitmq.queue": "myqueue",
            "rabbitmq.exchange": exchange1,
            "rabbitmq.routing.key": "rkey1",
            "rabbitmq.delivery.mode": "PERSISTENT",
            "rabbitmq.forward.kafka.headers": "true",
            "rabbitmq.topic.queue.map": f'{{"{topic}-out": "nowhere-{myqueue}"}}',
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
            "errors.deadletterqueue.topic.replication.factor": "1",
            **LICENCE,
            **server,
        },
    )
    # The validation asks for the queues of the map.
    rabbitmq.declare(f"nowhere-{myqueue}")
    worker.start()
    worker.wait_for_states("rabbitmq-sink", "RUNNING", "RUNNING")
    rabbitmq.delete(f"nowhere-{myqueue}")
    rabbitmq.publish(myqueue, [b"\x00one", b"two"], message_id="4", headers={"a": "b"})
    rabbitmq.publish(own, [b"three"])
    produce(bootstrap, f"{topic}-out", [b"lost"])
    found = []

    def came() -> bool:
        found.extend(rabbitmq.take(queue1))
        return len(found) >= 2

    wait_until("they came by Kafka", came, PATIENCE)
    assert [body for _, _, body in found] == [b"\x00one", b"two"]
    assert found[0][1].headers["rabbitmq.headers.a"] == "b"
    first = read_topic(bootstrap, topic)[0]
    assert (first.key(), dict(first.headers())["rabbitmq.routing.key"]) == (b"4", myqueue.encode())
    struct = wait_until("the struct came", lambda: read_topic(bootstrap, f"{topic}-struct"), PATIENCE)[0]
    assert b'"name":"com.github.jcustenborder.kafka.connect.rabbitmq.Message"' in struct.value()
    assert b'"body":"dGhyZWU="' in struct.value()
    letter = wait_until("the dead letter is there", lambda: read_topic(bootstrap, dead), PATIENCE)[0]
    assert letter.value() == b"lost"
    # Now nothing is left: everything was acknowledged, once the offsets were stored.
    assert worker.terminate() == 0
    assert rabbitmq.waiting(myqueue) == 0


def test_mqtt_both_ways(standalone: MakeWorker, mosquitto: MosquittoServer, bootstrap: str, topic: str) -> None:
    """Confluent's, as in its examples but for host, port and names."""
    create_topic(bootstrap, topic)
    base = topic_name()
    subscriber = Subscriber(mosquitto, topic)
    worker = standalone()
    worker.connector(
        "source-mqtt",
        **{
            "connector.class": "io.confluent.connect.mqtt.MqttSourceConnector",
            "tasks.max": "1",
            "mqtt.topics": f"{base}/#",
            "kafka.topic": topic,
            "mqtt.qos": "2",
            "mqtt.username": "device",
            "mqtt.password": "geheim",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            **LICENCE,
            **mosquitto.props,
            "mqtt.clean.session.enabled": "false",
        }
        | {"mqtt.topics": f"open/{base}/#", "mqtt.client.id": base},
    )
    worker.connector(
        "sink-mqtt",
        **{
            "connector.class": "io.confluent.connect.mqtt.MqttSinkConnector",
            "tasks.max": "1",
            "topics": topic,
            "mqtt.qos": "2",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "mqtt.client.id": f"sink-{base}",
            **LICENCE,
            **mosquitto.props,
        },
    )
    worker.start()
    worker.wait_for_states("source-mqtt", "RUNNING", "RUNNING")

    def came() -> bool:
        # The task says that it runs before it has subscribed.
        mosquitto.publish(f"open/{base}/x", [b"This is my message"], 2)
        return bool(subscriber.found)

    wait_until("it came by Kafka", came, PATIENCE)
    assert (subscriber.found[0].topic, subscriber.payloads[0]) == (topic, b"This is my message")
    record = read_topic(bootstrap, topic)[0]
    assert record.key() == f"open/{base}/x".encode()
    assert dict(record.headers())["mqtt.qos"] == b"1"
    subscriber.close()
    assert worker.terminate() == 0

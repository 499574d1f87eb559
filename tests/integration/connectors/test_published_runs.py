"""Configurations of Java's connectors as they were published run against real servers.

What is changed of them is where their servers are, how to sign in, and their names. The records and messages are such
as their topics and queues would hold.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from equipment.brokers.topics import create_topic, read_topic
from equipment.ports import own_port
from equipment.servers.mongodb import MongoServer
from equipment.servers.mosquitto import MosquittoServer, Subscriber
from equipment.servers.rabbitmq import RabbitServer
from equipment.servers.redis import PASSWORD, RedisServer, redis_server
from equipment.servers.search_servers import SearchServer
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
]

_DATA: Final = Path(__file__).parents[2] / "parity/data/published_configurations.json"
PUBLISHED: Final = {
    each["published"].split()[0] + " " + each["config"]["connector.class"].rpartition(".")[2]: each["config"]
    for each in json.loads(_DATA.read_text())
}
PATIENCE: Final = 180.0
_SCHEMA: Final = {"type": "struct", "fields": [{"field": "a", "type": "int32"}]}
_WITH_SCHEMA: Final = {"schema": _SCHEMA, "payload": {"a": 1}}


def started(worker: StandaloneWorker, changes: Mapping[str, Mapping[str, str]]) -> StandaloneWorker:
    """Start a worker with some of the configurations, changed so; their names are their places."""
    tasks = {}
    for number, (published, own) in enumerate(changes.items()):
        props = {**PUBLISHED[published], **own}
        props.pop("name", None)
        worker.connector(f"published-{number}", **props)
        tasks[f"published-{number}"] = int(props.get("tasks.max", "1"))
    worker.start()
    for name, count in tasks.items():
        worker.wait_for_states(name, "RUNNING", *["RUNNING"] * count)
    return worker


def put(bootstrap: str, topic: str, value: object, key: object = None) -> None:
    """Put a record on a topic, texts as they are and everything else as JSON."""
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    texts = [each if isinstance(each, str) or each is None else json.dumps(each) for each in (value, key)]
    producer.produce(topic, texts[0], texts[1])
    producer.flush()


def test_elasticsearch(standalone: MakeWorker, search: SearchServer, bootstrap: str) -> None:
    plain = {"a": 1}
    put(bootstrap, "my_new_topic", _WITH_SCHEMA)
    put(bootstrap, "mysql.testdb.orders", _WITH_SCHEMA, "7")
    put(bootstrap, "dbserver1.db.customers", plain, plain)
    put(bootstrap, "logs", plain)
    put(bootstrap, "test-opensearch-sink", _WITH_SCHEMA)
    here = {"connection.url": search.url, "consumer.override.auto.offset.reset": "earliest"}
    names = [name for name in PUBLISHED if name.endswith("SearchSinkConnector") or "Elasticsearch" in name]
    assert len(names) == 5
    worker = started(standalone(value_converter="JsonConverter"), dict.fromkeys(names, here))
    # One of them has topic.index.map, which Confluent's connector knows no more: the index is called as the topic.
    for index in ("my_new_topic", "mysql.testdb.orders", "dbserver1.db.customers", "logs", "test-opensearch-sink"):
        wait_until(
            f"{index} has its document",
            lambda index=index: plain in search.documents(index).values(),
            PATIENCE,
        )
    assert worker.terminate() == 0


def test_mongodb(standalone: MakeWorker, mongodb: MongoServer, own_mongodb: MongoServer, bootstrap: str) -> None:
    """The two of one project are a replication: the changes of a collection go to another server."""
    create_topic(bootstrap, "test.users")
    create_topic(bootstrap, "mongo.testdb.testcoll")
    worker = started(
        standalone(),
        {
            "ZloyEgor/iot_task MongoSourceConnector": {"connection.uri": mongodb.uri},
            "ZloyEgor/iot_task MongoSinkConnector": {"connection.uri": own_mongodb.uri},
            "nethish/experiments MongoSourceConnector": {"connection.uri": mongodb.uri},
        },
    )
    with mongodb.client() as source, own_mongodb.client() as target:
        users, numbers = source["test"]["users"], iter(range(1 << 20))

        def replicated() -> bool:
            # The stream begins when the task has opened it.
            source["testdb"]["testcoll"].insert_one({})
            users.insert_one({"_id": next(numbers), "name": "Ada"})
            return target["test"]["users"].find_one({"name": "Ada"}) is not None

        wait_until("a document is replicated", replicated, PATIENCE)
        last = next(numbers)
        users.insert_one({"_id": last, "name": "Bob"})
        users.update_one({"_id": last}, {"$set": {"name": "Eve"}})
        wait_until(
            "a change is replicated", lambda: target["test"]["users"].find_one({"_id": last, "name": "Eve"}), PATIENCE
        )
        users.delete_many({})
        wait_until("they are deleted", lambda: target["test"]["users"].count_documents({}) == 0, PATIENCE)
    first = wait_until("its changes came", lambda: read_topic(bootstrap, "mongo.testdb.testcoll"), PATIENCE)[0]
    assert json.loads(first.value())["operationType"] == "insert"
    assert worker.terminate() == 0


def test_syslog(standalone: MakeWorker, bootstrap: str) -> None:
    port = own_port()
    create_topic(bootstrap, "syslog")
    published = "vdesabou/kafka-docker-playground SyslogSourceConnector"
    worker = started(standalone(value_converter="JsonConverter"), {published: {"syslog.port": str(port)}})
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed\n")
        record = wait_until("it came", lambda: read_topic(bootstrap, "syslog"), PATIENCE)[0]
    assert json.loads(record.value())["payload"]["message"] == "'su root' failed"
    assert worker.terminate() == 0


@pytest.fixture
def guarded_redis() -> Iterator[RedisServer]:
    with redis_server(password=PASSWORD) as server:
        yield server


def test_redis(standalone: MakeWorker, guarded_redis: RedisServer, bootstrap: str) -> None:
    put(bootstrap, "transactions", {"amount": 3}, "17")
    put(bootstrap, "twitter", "a tweet", "its id")
    reset = {"consumer.override.auto.offset.reset": "earliest"}
    worker = started(
        standalone(),
        {
            "jphaugla/Redisearch-Digital-Banking-redisTemplate RedisSinkConnector": {
                "redis.uri": guarded_redis.uri,
                "redis.password": PASSWORD,
                **reset,
            },
            "jcustenborder/kafka-connect-redis RedisSinkConnector": {
                "redis.hosts": f"127.0.0.1:{guarded_redis.port}",
                "redis.password": PASSWORD,
                **reset,
            },
        },
    )
    # jcustenborder's default is the database 1.
    with guarded_redis.client() as client, guarded_redis.client(db=1) as other:
        wait_until("the hash is there", lambda: client.hgetall("Trans:17") == {"amount": "3"}, PATIENCE)
        wait_until("the string is there", lambda: other.get("its id") == "a tweet", PATIENCE)
    assert worker.terminate() == 0


def test_mqtt(standalone: MakeWorker, mosquitto: MosquittoServer, bootstrap: str) -> None:
    put(bootstrap, "sink-messages", "a message")
    create_topic(bootstrap, "mqtt-source-1")
    create_topic(bootstrap, "data_mqtt")
    anybody = {**mosquitto.props, "mqtt.username": "", "mqtt.password": ""}
    subscriber = Subscriber(mosquitto, "sink-messages")
    worker = started(
        standalone(),
        {
            "confluentinc/kafka-docker-playground MqttSourceConnector": anybody,
            "confluentinc/demo-scene MqttSourceConnector": anybody,
            "vdesabou/kafka-docker-playground MqttSinkConnector": {
                **anybody,
                "consumer.override.auto.offset.reset": "earliest",
            },
        },
    )

    def came() -> bool:
        # The tasks say that they run before they have subscribed.
        mosquitto.publish("my-mqtt-topic", [b"one"], 2)
        mosquitto.publish("owntracks/user/phone", [b"two"], 0)
        return all(read_topic(bootstrap, topic) for topic in ("mqtt-source-1", "data_mqtt"))

    wait_until("messages came", came, PATIENCE)
    assert read_topic(bootstrap, "data_mqtt")[0].key() == b"owntracks/user/phone"
    wait_until("the record is a message", lambda: subscriber.payloads == [b"a message"], PATIENCE)
    subscriber.close()
    assert worker.terminate() == 0


def test_rabbitmq(standalone: MakeWorker, rabbitmq: RabbitServer, bootstrap: str) -> None:
    for topic in ("from-rabbit", "rabbitmq"):
        create_topic(bootstrap, topic)
    put(bootstrap, "rabbitmq-messages", "a message")
    bound, queues = rabbitmq.declare("bound"), [rabbitmq.declare("test-queue-01"), rabbitmq.declare("myqueue")]
    with rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.exchange_declare("exchange1", "direct")
        channel.queue_bind(bound, "exchange1", "rkey1")
    guest = {**rabbitmq.props, "rabbitmq.username": "guest", "rabbitmq.password": "guest"}
    worker = started(
        standalone(),
        {
            "confluentinc/stream-me-up-scotty RabbitMQSourceConnector": guest,
            "vdesabou/kafka-docker-playground RabbitMQSourceConnector": {**guest, **_BYTES},
            "vdesabou/kafka-docker-playground RabbitMQSinkConnector": {
                **guest,
                "consumer.override.auto.offset.reset": "earliest",
            },
        },
    )
    for queue in queues:
        rabbitmq.publish(queue, [queue.encode()])
    for topic, queue in zip(("from-rabbit", "rabbitmq"), queues, strict=True):
        record: Any = wait_until("the message came", lambda topic=topic: read_topic(bootstrap, topic), PATIENCE)[0]
        assert record.value() == queue.encode()
    wait_until(
        "the record is a message", lambda: [each[2] for each in rabbitmq.take(bound)] == [b"a message"], PATIENCE
    )
    assert worker.terminate() == 0


_BYTES: Final = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
"""What the project sets for its worker."""

"""The MQTT connectors with a real server: what they carry, what they refuse, and how they come back."""

from __future__ import annotations

import gc
import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from connect.data import Header, Headers, SinkBatch, SourceRecord, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext
from connect.testing.contexts import SourceTaskTestContext
from connect.testing.offsets import StoredOffsets
from connect.testing.samples import sink_records
from connect.testing.source_run import SourceTaskRun
from connectors.mqtt import (
    MqttSinkConfig,
    MqttSinkConnector,
    MqttSinkTask,
    MqttSourceConfig,
    MqttSourceConnector,
    MqttSourceTask,
)
from equipment.brokers.certificates import Authority
from equipment.brokers.proxy import Proxy
from equipment.fakes.mqtt_server import ForgetfulServer
from equipment.ports import own_port
from equipment.proofs import thorough
from equipment.servers.mosquitto import SECRET, USER, MosquittoServer, Subscriber, mosquitto_server, topic_name
from equipment.waiting import wait_until

PARTITION = TopicPartition("test", 0)
PATIENCE = 120.0


@pytest.fixture
def consuming() -> Iterator[Callable[..., SourceTaskRun]]:
    """Starts source tasks, waits for their connections, and stops them at the end."""
    with ExitStack() as started:

        def start(server: MosquittoServer, topics: str, *, connects: bool = True, **props: str) -> SourceTaskRun:
            given = {
                "mqtt.topics": topics,
                "mqtt.client.id": topics,
                "mqtt.qos": "1",
                "mqtt.reconnect.interval.ms": "100",
            }
            given |= server.props | {key.replace("_", "."): value for key, value in props.items()}
            offsets = StoredOffsets()
            context = SourceTaskTestContext(offsets)
            task = MqttSourceTask(MqttSourceConfig.parse(given), context)
            started.callback(task.stop)
            task.start()
            run = SourceTaskRun(task, context, offsets)
            if connects:
                wait_until("it is subscribed", lambda: probed(server, run, topics), PATIENCE)
            return run

        yield start


def probed(server: MosquittoServer, run: SourceTaskRun, topics: str) -> bool:
    """Whether a message comes through; it is forgotten."""
    server.publish(topics.split(",", maxsplit=1)[0].replace("#", "probe").replace("+", "probe"), [b"probe"])
    run.poll()
    came = any(record.value == b"probe" for record in run.records)
    run.records.clear()
    return came


def records(run: SourceTaskRun, count: int) -> list[SourceRecord]:
    """The records, once there are so many; without probes that came late."""

    def enough() -> list[SourceRecord]:
        run.poll()
        run.records[:] = [record for record in run.records if record.value != b"probe"]
        return run.records if len(run.records) >= count else []

    return wait_until(f"{count} records came", enough, PATIENCE)


class Publishing:
    """A sink task that runs."""

    def __init__(self, server: MosquittoServer | ForgetfulServer, **props: str) -> None:
        self.context = SinkTaskTestContext([PARTITION])
        self.errant: ErrantRecords[Any] = ErrantRecords(tolerate=True)
        self.context.errant_record_reporter = self.errant
        given = {"mqtt.qos": "1", "mqtt.client.id": topic_name(), "mqtt.reconnect.interval.ms": "100", **server.props}
        given |= {key.replace("_", "."): value for key, value in props.items()}
        self.task = MqttSinkTask(MqttSinkConfig.parse(given), self.context)
        self.task.start()

    def put(self, *values: object, start: int = 0, **attributes: Any) -> None:
        """Put records whose offsets begin with ``start``, again for as long as that is asked for."""
        made = [
            record.replace(offset=start + place, original_offset=start + place, **attributes)
            for place, record in enumerate(sink_records(list(values)))
        ]
        for batch in SinkBatch.from_records(made):
            wait_until("the batch is taken", lambda batch=batch: self.taken(batch), PATIENCE)

    def taken(self, batch: SinkBatch) -> bool:
        """Put a batch; whether the task has taken it."""
        try:
            self.task.put(batch)
        except RetriableError:
            return False
        return True

    def committed(self, offset: int) -> None:
        """Wait until an offset may be committed."""
        wait_until(
            f"{offset} may be committed",
            lambda: self.task.pre_commit({PARTITION: offset})[PARTITION] == offset,
            PATIENCE,
        )


@pytest.fixture
def publishing() -> Iterator[Callable[..., Publishing]]:
    with ExitStack() as started:

        def start(server: MosquittoServer, **props: str) -> Publishing:
            made = Publishing(server, **props)
            started.callback(made.task.stop)
            return made

        yield start


def test_messages_are_records(mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]) -> None:
    """Of MQTT 5 with its properties, of 3.1.1 without; by the filter to their topics of Kafka."""
    base = topic_name()
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("unit", "°C"), ("unit", "K")]
    properties.ContentType = "text/plain"
    mapped = json.dumps({f"{base}/+/temperature": "temperatures"})
    new = consuming(
        mosquitto,
        f"{base}/#",
        mqtt_version="5",
        mqtt_topic_map=mapped,
        kafka_topic="all.${topic}",
        mqtt_client_id="new",
    )
    old = consuming(mosquitto, f"{base}/a/temperature", mqtt_client_id="old")
    mosquitto.publish(f"{base}/a/temperature", [b"\x0021"], properties=properties)
    mosquitto.publish(f"{base}/ä b", [b"other"])
    first, second = records(new, 2)
    assert (first.topic, first.key, first.value) == ("temperatures", f"{base}/a/temperature", b"\x0021")
    found = [(header.key, header.value) for header in first.headers]
    assert found[1:] == [
        ("mqtt.qos", 1),
        ("mqtt.retained", False),
        ("mqtt.duplicate", False),
        ("mqtt.content.type", "text/plain"),
        ("mqtt.user.unit", "°C"),
        ("mqtt.user.unit", "K"),
    ]
    assert found[0][0] == "mqtt.message.id"
    assert second.topic == f"all.{base.replace('/', '.')}.__b"
    plain = records(old, 1)[0]
    assert (plain.topic, [header.key for header in plain.headers]) == (
        "mqtt",
        ["mqtt.message.id", "mqtt.qos", "mqtt.retained", "mqtt.duplicate"],
    )


def test_nothing_is_acknowledged_before_kafka_has_it(
    mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]
) -> None:
    """And what is published while no task runs is in the session."""
    topic = topic_name()
    first = consuming(mosquitto, topic)
    mosquitto.publish(topic, [b"0", b"1", b"2"])
    polled: list[SourceRecord] = []

    def all_came() -> bool:
        polled.extend(record for record in first.task.poll() or () if record.value != b"probe")
        return len(polled) == 3

    wait_until("they came", all_came, PATIENCE)
    first.task.commit_record(polled[0])
    first.task.stop()
    mosquitto.publish(topic, [b"3"])
    again = records(consuming(mosquitto, topic, connects=False), 3)
    assert [record.value for record in again] == [b"1", b"2", b"3"]
    assert [record.headers.last_with_key("mqtt.duplicate").value for record in again] == [True, True, False]  # type: ignore[union-attr]


def test_a_lost_connection_doubles_nothing(mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]) -> None:
    """What the server sends again, the task knows, whether Kafka has it by then or not."""
    topic = topic_name()
    run = consuming(mosquitto, topic)
    mosquitto.publish(topic, [b"%d" % number for number in range(10)])
    polled: list[SourceRecord] = []

    def came(count: int) -> bool:
        try:
            polled.extend(record for record in run.task.poll() or () if record.value != b"probe")
        except RetriableError:
            return False
        return len(polled) >= count

    wait_until("they came", lambda: came(10), PATIENCE)
    session = run.task._session
    session.drop()
    wait_until("it is noticed", lambda: not session.is_open, PATIENCE)
    for record in polled[:5]:
        run.task.commit_record(record)
    mosquitto.publish(topic, [b"10"])
    wait_until("the next came", lambda: came(11), PATIENCE)
    for record in polled[5:]:
        run.task.commit_record(record)
    assert [record.value for record in polled] == [b"%d" % number for number in range(11)]
    run.task.stop()
    mosquitto.publish(topic, [b"11"])
    assert [record.value for record in records(consuming(mosquitto, topic, connects=False), 1)] == [b"11"]


def test_a_stopped_task_has_acknowledged_what_kafka_has(
    mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]
) -> None:
    """Though more has come than it has read, so that its end resets the connection, and what is on its way is gone."""
    topic = topic_name()
    run = consuming(mosquitto, topic, mqtt_receive_max="10", mqtt_batch_size="10")
    mosquitto.publish(topic, [b"%d" % number for number in range(2000)])
    polled: list[SourceRecord] = []

    def some_came() -> bool:
        polled.extend(run.task.poll() or ())
        return len(polled) >= 50

    wait_until("some came", some_came, PATIENCE)
    for record in polled:
        run.task.commit_record(record)
    run.task.stop()
    had = sum(record.value != b"probe" for record in polled)
    again = records(consuming(mosquitto, topic, connects=False), 1)
    assert again[0].value == b"%d" % had


def test_lost_acknowledgements_double_nothing(
    mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]
) -> None:
    """They go through a proxy that swallows them: the server sends the messages again."""
    topic, port = topic_name(), own_port()
    proxy = Proxy({port: mosquitto.port})
    try:
        run = consuming(mosquitto, topic, mqtt_server_uri=f"tcp://127.0.0.1:{port}")
        polled: list[SourceRecord] = []

        def came(count: int) -> bool:
            try:
                taken = list(run.task.poll() or ())
            except RetriableError:
                return False
            for record in taken:
                if record.value == b"probe":
                    # It comes late, and would hold up the others.
                    run.task.commit_record(record)
                else:
                    polled.append(record)
            return len(polled) >= count

        session = run.task._session

        def has_learnt() -> bool:
            """From what comes after an acknowledgement, that mosquitto counts the ids of messages."""
            mosquitto.publish(topic, [b"probe"])
            return came(0) and run.task._receipts._counts_up

        wait_until("it has learnt", has_learnt, PATIENCE)
        mosquitto.publish(topic, [b"0", b"1"])
        wait_until("they came", lambda: came(2), PATIENCE)
        for record in polled:
            run.task.commit_record(record)
        mosquitto.publish(topic, [b"%d" % number for number in range(2, 10)])
        wait_until("they came", lambda: came(10), PATIENCE)
        proxy.stall(port)
        for record in polled[2:]:
            run.task.commit_record(record)
        run.task.commit()
        assert len(run.task._receipts) == 0
        wait_until("they are sent", lambda: not session.client.want_write(), PATIENCE)
        proxy.cut(port)
        wait_until("it is noticed", lambda: not session.is_open, PATIENCE)
        proxy.heal(port)
        mosquitto.publish(topic, [b"10"])
        wait_until("the next came", lambda: came(11), PATIENCE)
        assert [record.value for record in polled] == [b"%d" % number for number in range(11)]
        run.task.commit_record(polled[10])
        run.task.stop()
        mosquitto.publish(topic, [b"11"])
        again = records(consuming(mosquitto, topic, connects=False), 1)
        assert [record.value for record in again] == [b"11"]
    finally:
        proxy.close()


def test_tasks_share_a_subscription(mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]) -> None:
    topic = topic_name()
    props = {"name": "many", "mqtt.topics": f"{topic},b", "mqtt.consumer.mode": "shared", **mosquitto.props}
    made = MqttSourceConnector(MqttSourceConfig.parse(props), None).task_configs(2)  # type: ignore[arg-type]
    assert [(each["mqtt.topics"], each["mqtt.client.id"]) for each in made] == [
        (f"$share/many/{topic},$share/many/b", f"sluice-many-{number}") for number in range(2)
    ]
    tasks = [
        consuming(mosquitto, f"$share/group/{topic}", connects=False, mqtt_client_id=f"{topic}-{number}")
        for number in range(2)
    ]

    def both_subscribed() -> bool:
        mosquitto.publish(topic, [b"probe"] * 4)
        for each in tasks:
            each.poll()
        return all(each.records for each in tasks)

    wait_until("both are subscribed", both_subscribed, PATIENCE)
    mosquitto.publish(topic, [b"%d" % number for number in range(100)])

    def together() -> list[bytes]:
        for each in tasks:
            each.poll()
        found = [bytes(record.value) for each in tasks for record in each.records if record.value != b"probe"]
        return found if len(found) >= 100 else []

    found = wait_until("all came", together, PATIENCE)
    assert sorted(map(int, found)) == list(range(100))
    divided = {**props, "mqtt.consumer.mode": "dedicated"}
    made = MqttSourceConnector(MqttSourceConfig.parse(divided), None).task_configs(5)  # type: ignore[arg-type]
    assert [each["mqtt.topics"] for each in made] == [topic, "b"]


PROBLEMS = [
    ({"mqtt.server.uri": "tcp://127.0.0.1:1"}, r"127\.0\.0\.1:1 cannot be connected to: Connection refused"),
    ({"mqtt.username": USER, "mqtt.password": "falsch"}, f"refuses the user {USER}: .*Correct mqtt.username"),
]


@pytest.mark.parametrize(("props", "told"), PROBLEMS)
def test_a_validation_connects(mosquitto: MosquittoServer, props: dict[str, str], told: str) -> None:
    given = {"mqtt.topics": topic_name(), **mosquitto.props, **props}
    for config in (MqttSourceConfig, MqttSinkConfig):
        errors = {each.name: each.errors for each in config.validate(given) if each.errors}
        assert list(errors) == ["mqtt.server.uri"]
        assert re.search(told, errors["mqtt.server.uri"][0])
        assert "falsch" not in str(errors)


def test_what_is_right_is_valid(mosquitto: MosquittoServer) -> None:
    for version in ("3.1.1", "5"):
        user = {"mqtt.username": USER, "mqtt.password": SECRET, "mqtt.version": version}
        given = {"mqtt.topics": "open/#", **mosquitto.props, **user}
        for config in (MqttSourceConfig, MqttSinkConfig):
            assert not [each for each in config.validate(given) if each.errors]


def test_wrong_credentials_fail_the_task(mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]) -> None:
    run = consuming(mosquitto, topic_name(), connects=False, mqtt_username=USER, mqtt_password="falsch")
    with pytest.raises(ConnectError, match=f"refuses the user {USER}"):
        wait_until("it is noticed", run.task.poll, PATIENCE)


@pytest.mark.parametrize("qos", ["1", *thorough("0", "2")])
def test_records_are_messages_in_their_order(
    mosquitto: MosquittoServer, publishing: Callable[..., Publishing], qos: str
) -> None:
    topic = topic_name()
    subscriber = Subscriber(mosquitto, f"{topic}/#")
    sink = publishing(mosquitto, mqtt_qos=qos, mqtt_topic_template="${key}/x", mqtt_publish_max_messages="10")
    sink.put(*(f"{number}" for number in range(100)), key=topic)
    sink.committed(100)
    wait_until("all came", lambda: len(subscriber.found) >= 100, PATIENCE)
    assert [message.payload for message in subscriber.found] == [b"%d" % number for number in range(100)]
    assert {(message.topic, message.qos) for message in subscriber.found} == {(f"{topic}/x", int(qos))}
    subscriber.close()
    late = Subscriber(mosquitto, f"{topic}/#")
    wait_until("the last is retained", lambda: late.payloads == [b"99"], PATIENCE)
    late.close()


def test_what_a_forgetful_server_has_not_released_is_sent_again(publishing: Callable[..., Publishing]) -> None:
    """It confirms that a message is released, too, which it has forgotten."""
    server = ForgetfulServer(forgets=True)
    sink = publishing(server, mqtt_topic_template="t", mqtt_qos="2")
    sink.put("0", "1", "2")
    sink.committed(3)
    assert server.delivered == [b"0", b"1", b"2"]
    sink.task.stop()
    server.close()


def test_no_more_is_under_way_than_the_server_takes(publishing: Callable[..., Publishing]) -> None:
    server = ForgetfulServer(window=2)
    sink = publishing(server, mqtt_topic_template="t", mqtt_qos="2", mqtt_version="5")
    sink.put(*"01234")
    sink.committed(5)
    assert [value[-1:] for value in server.delivered] == [b"0", b"1", b"2", b"3", b"4"]
    assert server.most_under_way == 2
    sink.task.stop()
    server.close()


def test_headers_are_user_properties(
    mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun], publishing: Callable[..., Publishing]
) -> None:
    topic = topic_name()
    run = consuming(mosquitto, topic, mqtt_version="5")
    sink = publishing(mosquitto, mqtt_topic_template=topic, mqtt_version="5", mqtt_forward_kafka_headers="true")
    sink.put("x", headers=Headers([Header("a", "b"), Header("number", 1)]))
    record = records(run, 1)[0]
    assert [(each.key, each.value) for each in record.headers if each.key.startswith("mqtt.user.")] == [
        ("mqtt.user.a", "b")
    ]


def test_bad_records_are_reported_and_their_neighbours_sent(
    mosquitto: MosquittoServer, publishing: Callable[..., Publishing]
) -> None:
    topic = topic_name()
    subscriber = Subscriber(mosquitto, f"{topic}/#")
    sink = publishing(mosquitto, mqtt_topic_template=f"{topic}/${{key}}")
    sink.put("0", None, "2", key="k")
    sink.put("3", start=3, key="#")
    sink.put({"a": 1}, start=4, key="k")
    sink.committed(5)
    wait_until("the others came", lambda: len(subscriber.found) >= 2, PATIENCE)
    assert subscriber.payloads == [b"0", b"2"]
    assert sorted(record.original_offset for record, _ in sink.errant.reported) == [1, 3, 4]
    told = {record.original_offset: str(error) for record, error in sink.errant.reported}
    assert told[3] == f"'{topic}/#' cannot be the topic of a message: it has a wildcard or a zero byte."
    subscriber.close()


def test_a_message_that_is_too_large_for_the_server_is_a_bad_record(publishing: Callable[..., Publishing]) -> None:
    """With MQTT 5 the server says which size it takes; otherwise it ends the connection over it, each time."""
    topic = topic_name()
    with mosquitto_server(largest_bytes=2000) as server:
        subscriber = Subscriber(server, topic)
        sink = publishing(server, mqtt_topic_template=topic, mqtt_version="5", mqtt_forward_kafka_headers="true")
        sink.put("0", "x" * 3000, "2")
        sink.put("3", start=3, headers=Headers([Header("a", "y" * 3000)]))
        sink.committed(4)
        wait_until("the others came", lambda: len(subscriber.found) >= 2, PATIENCE)
        assert subscriber.payloads == [b"0", b"2"]
        assert [record.original_offset for record, _ in sink.errant.reported] == [1, 3]
        assert "the MQTT server takes 2000 at most" in str(sink.errant.reported[0][1])
        subscriber.close()


def test_a_message_that_is_too_large_is_a_bad_record_also_without_mqtt_5(publishing: Callable[..., Publishing]) -> None:
    topic = topic_name()
    with mosquitto_server(largest_bytes=2000) as server:
        subscriber = Subscriber(server, topic)
        sink = publishing(server, mqtt_topic_template=topic, mqtt_reconnect_interval_ms="10")
        sink.put("0", "x" * 3000, "2")
        sink.committed(3)
        wait_until("the others came", lambda: {b"0", b"2"} <= set(subscriber.payloads), PATIENCE)
        assert [record.original_offset for record, _ in sink.errant.reported] == [1]
        assert "the MQTT server takes 2000 at most" in str(sink.errant.reported[0][1])
        subscriber.close()

        strict = publishing(server, mqtt_topic_template=topic, mqtt_reconnect_interval_ms="10")
        strict.context.errant_record_reporter = None
        strict.put("0", "x" * 3000, "2")
        with pytest.raises(ConnectError, match="offset 1 of test-0 cannot be sent") as failure:
            strict.committed(3)
        assert not isinstance(failure.value, RetriableError)


def test_a_server_that_ends_each_connection_over_a_message_fails_the_task(
    publishing: Callable[..., Publishing],
) -> None:
    server = ForgetfulServer(hangs_up=True)
    sink = publishing(server, mqtt_topic_template="t", mqtt_reconnect_interval_ms="10")
    sink.put("0")
    with pytest.raises(ConnectError, match="One of them may be larger than the server takes") as failure:
        sink.committed(1)
    assert not isinstance(failure.value, RetriableError)
    sink.task.stop()
    server.close()


def test_a_will_is_published_when_the_task_is_cut_off(
    mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]
) -> None:
    will = topic_name()
    subscriber = Subscriber(mosquitto, will)
    run = consuming(mosquitto, topic_name(), mqtt_will_topic=will, mqtt_will_message="gone", mqtt_will_qos="1")
    run.task._session.drop()
    wait_until("the will came", lambda: subscriber.payloads == [b"gone"], PATIENCE)
    subscriber.close()


@pytest.mark.parametrize("qos", ["1", *thorough("2")])
def test_a_lost_server_comes_back(
    own_mosquitto: MosquittoServer,
    consuming: Callable[..., SourceTaskRun],
    publishing: Callable[..., Publishing],
    qos: str,
) -> None:
    topic = topic_name()
    run = consuming(own_mosquitto, topic, mqtt_qos=qos)
    sink = publishing(own_mosquitto, mqtt_topic_template=topic, mqtt_qos=qos)
    sink.put("0")
    sink.committed(1)
    assert [record.value for record in records(run, 1)] == [b"0"]
    with own_mosquitto.down(signal.SIGTERM):
        batch = SinkBatch.from_records(sink_records(["1"]))[0]
        with pytest.raises(RetriableError, match=r"The (connection to the )?MQTT server"):
            wait_until("it is noticed", lambda: sink.task.put(batch) or len(sink.task._unconfirmed), PATIENCE)
            while True:
                sink.task.put(batch)
        with pytest.raises(RetriableError, match=r"The (connection to the )?MQTT server"):
            wait_until("it is noticed", run.task.poll, PATIENCE)
    sink.put("1", start=1)
    sink.committed(2)
    found = wait_until("it came", lambda: [each.value for each in polled(run) if each.value == b"1"], PATIENCE)
    assert found


def polled(run: SourceTaskRun) -> list[SourceRecord]:
    """All records so far."""
    run.poll()
    return run.records


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*SSLSocket:pytest.PytestUnraisableExceptionWarning")
def test_tls(tmp_path: Path, consuming: Callable[..., SourceTaskRun]) -> None:
    authority = Authority()
    identity = authority.sign("127.0.0.1")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "chain", "key")}
    for name, text in (("ca", authority.pem), ("chain", identity.certificate_pem), ("key", identity.key_pem())):
        files[name].write_text(text)
    with mosquitto_server(files) as server:
        uri = {"mqtt_server_uri": f"ssl://127.0.0.1:{server.tls_port}"}
        trusting = consuming(server, topic_name(), **uri, mqtt_ssl_trust_store_path=str(files["ca"]))
        assert trusting.records == []
        distrusting = consuming(server, topic_name(), connects=False, **uri)
        with pytest.raises(ConnectError, match=r"is not trusted: .*Check the keys mqtt\.ssl"):
            wait_until("it is noticed", distrusting.task.poll, PATIENCE)
        distrusting.task.stop()
        # The library forgets to close a socket whose handshake has failed.
        gc.collect()


def test_the_worker_s_rules_for_hosts_hold(mosquitto: MosquittoServer, consuming: Callable[..., SourceTaskRun]) -> None:
    run = consuming(
        mosquitto, topic_name(), connects=False, http_denied_hosts="127.0.0.0/8", mqtt_server_uri="tcp://localhost:1883"
    )
    with pytest.raises(ConnectError, match=r"http\.denied\.hosts in the worker's file denies it"):
        wait_until("it is noticed", run.task.poll, PATIENCE)
    assert MqttSinkConnector.task_class is MqttSinkTask

"""The RabbitMQ connectors with a real server: what they carry, what they refuse, and how they come back."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pika
import pytest

from connect.data import Header, Headers, SinkBatch, SourceRecord, TopicPartition
from connect.errors import ConnectError, MissingError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext
from connect.testing.contexts import SourceTaskTestContext
from connect.testing.offsets import StoredOffsets
from connect.testing.samples import sink_records
from connect.testing.source_run import SourceTaskRun
from connectors.rabbitmq import (
    RabbitMQSinkConfig,
    RabbitMQSinkTask,
    RabbitMQSourceConfig,
    RabbitMQSourceConnector,
    RabbitMQSourceTask,
)
from equipment.brokers.certificates import Authority
from equipment.servers.rabbitmq import RabbitServer, queue_name, rabbitmq_server
from equipment.waiting import wait_until

PARTITION = TopicPartition("test", 0)
PATIENCE = 120.0


@pytest.fixture
def queue(rabbitmq: RabbitServer) -> Iterator[str]:
    name = rabbitmq.declare(queue_name())
    yield name
    rabbitmq.delete(name)


@pytest.fixture
def consuming() -> Iterator[Callable[..., SourceTaskRun]]:
    """Starts source tasks, and stops them at the end."""
    with ExitStack() as started:

        def start(server: RabbitServer, queues: str, **props: str) -> SourceTaskRun:
            given = {"kafka.topic": "t", "rabbitmq.queue": queues, "rabbitmq.network.recovery.interval.ms": "100"}
            given |= server.props | {key.replace("_", "."): value for key, value in props.items()}
            offsets = StoredOffsets()
            context = SourceTaskTestContext(offsets)
            task = RabbitMQSourceTask(RabbitMQSourceConfig.parse(given), context)
            started.callback(task.stop)
            task.start()
            return SourceTaskRun(task, context, offsets)

        yield start


class Publishing:
    """A sink task that runs."""

    def __init__(self, props: Mapping[str, str]) -> None:
        self.context = SinkTaskTestContext([PARTITION])
        self.errant: ErrantRecords[Any] = ErrantRecords(tolerate=True)
        self.context.errant_record_reporter = self.errant
        self.task = RabbitMQSinkTask(RabbitMQSinkConfig.parse(dict(props)), self.context)
        self.task.start()

    def put(self, *values: object, start: int = 0, **attributes: Any) -> None:
        """Put records whose offsets begin with ``start``, again for as long as that is asked for."""
        records = [
            record.replace(offset=start + place, original_offset=start + place, **attributes)
            for place, record in enumerate(sink_records(list(values)))
        ]
        for batch in SinkBatch.from_records(records):
            wait_until("the batch is taken", lambda batch=batch: self._taken(batch), PATIENCE)

    def _taken(self, batch: SinkBatch) -> bool:
        try:
            self.task.put(batch)
        except RetriableError:
            return False
        return True

    def committed(self, offset: int) -> None:
        """Wait until an offset may be committed."""
        wait_until(
            f"{offset} may be committed",
            lambda: (
                self._taken(SinkBatch.empty("test")) and self.task.pre_commit({PARTITION: offset})[PARTITION] == offset
            ),
            PATIENCE,
        )


@pytest.fixture
def publishing() -> Iterator[Callable[..., Publishing]]:
    with ExitStack() as started:

        def start(server: RabbitServer, **props: str) -> Publishing:
            given = {"rabbitmq.exchange": "", "rabbitmq.network.recovery.interval.ms": "100", **server.props}
            made = Publishing(given | {key.replace("_", "."): value for key, value in props.items()})
            started.callback(made.task.stop)
            return made

        yield start


def records(run: SourceTaskRun, count: int) -> list[SourceRecord]:
    """The records, once there are so many."""

    def enough() -> list[SourceRecord]:
        run.poll()
        return run.records if len(run.records) >= count else []

    return wait_until(f"{count} records came", enough, PATIENCE)


def test_properties_are_headers(rabbitmq: RabbitServer, queue: str, consuming: Callable[..., SourceTaskRun]) -> None:
    headers = {
        "text": "x",
        "small": 1,
        "large": 1 << 40,
        "yes": True,
        "some": ["a", "b"],
        "table": {"a": 1},
        "no": None,
    }
    rabbitmq.publish(
        queue,
        [b"\x00body"],
        message_id="m",
        content_type="text/plain",
        priority=3,
        timestamp=1_700_000_000,
        headers=headers,
    )
    record = records(consuming(rabbitmq, queue), 1)[0]
    assert (record.topic, record.key, record.value) == ("t", "m", b"\x00body")
    found = {header.key: header.value for header in record.headers}
    assert found.pop("rabbitmq.consumer.tag").startswith("ctag")
    assert found.pop("rabbitmq.timestamp").isoformat() == "2023-11-14T22:13:20+00:00"
    assert found == {
        "rabbitmq.content.type": "text/plain",
        "rabbitmq.content.encoding": None,
        "rabbitmq.headers.text": "x",
        "rabbitmq.headers.small": 1,
        "rabbitmq.headers.large": 1 << 40,
        "rabbitmq.headers.yes": True,
        "rabbitmq.headers.some": ["a", "b"],
        "rabbitmq.headers.table": '{"a":1}',
        "rabbitmq.headers.no": None,
        "rabbitmq.delivery.mode": 2,
        "rabbitmq.priority": 3,
        "rabbitmq.correlation.id": None,
        "rabbitmq.reply.to": None,
        "rabbitmq.expiration": None,
        "rabbitmq.message.id": "m",
        "rabbitmq.type": None,
        "rabbitmq.user.id": None,
        "rabbitmq.app.id": None,
        "rabbitmq.delivery.tag": 1,
        "rabbitmq.redeliver": False,
        "rabbitmq.exchange": "",
        "rabbitmq.routing.key": queue,
    }


def test_nothing_is_acknowledged_before_kafka_has_it(
    rabbitmq: RabbitServer, queue: str, consuming: Callable[..., SourceTaskRun]
) -> None:
    rabbitmq.publish(queue, [b"0", b"1", b"2"])
    first = consuming(rabbitmq, queue)
    polled = wait_until("they came", lambda: list(first.task.poll() or ()), PATIENCE)
    for record in polled[1:]:
        first.task.commit_record(record)
    first.task.poll()
    first.task.stop()
    # The first was not acknowledged, those after it were, at the stop.
    again = records(consuming(rabbitmq, queue), 1)
    assert [record.value for record in again] == [b"0"]
    assert again[0].headers.last_with_key("rabbitmq.redeliver").value is True  # type: ignore[union-attr]
    assert len(polled) == 3


def test_queues_have_their_topics_and_each_its_order(
    rabbitmq: RabbitServer, consuming: Callable[..., SourceTaskRun]
) -> None:
    queues = [rabbitmq.declare(queue_name(), kind) for kind in ("classic", "quorum")]
    for name in queues:
        rabbitmq.publish(name, [b"%d" % number for number in range(50)])
    topics = json.dumps({queues[0]: "own"})
    run = consuming(rabbitmq, ",".join(queues), rabbitmq_queue_topic_map=topics, rabbitmq_batch_size="7")
    found = records(run, 100)
    for topic in ("own", "t"):
        assert [record.value for record in found if record.topic == topic] == [b"%d" % number for number in range(50)]


def test_queues_are_divided_or_shared(rabbitmq: RabbitServer) -> None:
    props = {"kafka.topic": "t", "rabbitmq.queue": "a,b,c", **rabbitmq.props}
    connector = RabbitMQSourceConnector(RabbitMQSourceConfig.parse(props), None)  # type: ignore[arg-type]
    assert [each["rabbitmq.queue"] for each in connector.task_configs(2)] == ["a,c", "b"]
    shared = {**props, "rabbitmq.queue.consumer.mode": "shared"}
    connector = RabbitMQSourceConnector(RabbitMQSourceConfig.parse(shared), None)  # type: ignore[arg-type]
    assert [each["rabbitmq.queue"] for each in connector.task_configs(4)] == ["a,b,c"] * 4


def test_a_queue_that_is_missing_is_waited_for(
    rabbitmq: RabbitServer, queue: str, consuming: Callable[..., SourceTaskRun]
) -> None:
    """And one that is deleted; the others are consumed meanwhile."""
    later = queue_name()
    run = consuming(rabbitmq, f"{queue},{later}")
    with pytest.raises(MissingError, match=f"RabbitMQ does not have the queue {later} in the virtual host /"):
        wait_until("it is noticed", run.task.poll, PATIENCE)
    rabbitmq.publish(queue, [b"other"])
    assert [record.value for record in records(run, 1)] == [b"other"]
    for number in range(2):
        rabbitmq.declare(later)
        rabbitmq.publish(later, [b"%d" % number])
        assert records(run, number + 2)[-1].value == b"%d" % number
        rabbitmq.delete(later)


def test_a_stream_is_refused(rabbitmq: RabbitServer, consuming: Callable[..., SourceTaskRun]) -> None:
    stream = rabbitmq.declare(queue_name(), "stream")
    run = consuming(rabbitmq, stream)
    with pytest.raises(ConnectError, match=f"The queue {stream} is a stream, which this connector does not consume"):
        wait_until("it is noticed", run.task.poll, PATIENCE)


def test_a_task_holds_no_more_than_its_inbox(
    rabbitmq: RabbitServer, queue: str, consuming: Callable[..., SourceTaskRun]
) -> None:
    rabbitmq.publish(queue, [bytes(300_000)] * 20)
    run = consuming(rabbitmq, queue, rabbitmq_inbox_max_bytes=str(1 << 20))
    records(run, 1)

    def held() -> float:
        return next(each.value for each in run.task.measurements() if each.name == "rabbitmq_inbox_bytes")

    wait_until("the inbox is full", lambda: held() > 1 << 20, PATIENCE)
    assert held() < (1 << 20) + 2 * 301_000
    assert len(records(run, 20)) == 20


PROBLEMS = [
    ({"rabbitmq.queue": "none"}, "rabbitmq.queue", "RabbitMQ does not have the queue none in the virtual host /"),
    (
        {"rabbitmq.username": "poor", "rabbitmq.password": "poor"},
        "rabbitmq.queue",
        "Grant the right, for example by `rabbitmqctl set_permissions -p / poor",
    ),
    ({"rabbitmq.password": "wrong"}, "rabbitmq.host", "refuses the user guest: correct rabbitmq.username"),
    ({"rabbitmq.virtual.host": "none"}, "rabbitmq.host", "into the virtual host none"),
    ({"rabbitmq.port": "1"}, "rabbitmq.host", "has failed: Connection refused"),
]


@pytest.mark.parametrize(("props", "key", "told"), PROBLEMS)
def test_a_validation_connects(rabbitmq: RabbitServer, queue: str, props: dict[str, str], key: str, told: str) -> None:
    source = {"kafka.topic": "t", "rabbitmq.queue": queue, **rabbitmq.props, **props}
    errors = {each.name: each.errors for each in RabbitMQSourceConfig.validate(source) if each.errors}
    assert list(errors) == [key]
    assert told in errors[key][0]
    assert "wrong" not in str(errors)
    sink = {"rabbitmq.exchange": "none" if key == "rabbitmq.queue" else "", **rabbitmq.props, **props}
    errors = {each.name: each.errors for each in RabbitMQSinkConfig.validate(sink) if each.errors}
    assert list(errors) == [key.replace("queue", "exchange")]


def test_what_is_right_is_valid(rabbitmq: RabbitServer, queue: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    source = {"kafka.topic": "t", "rabbitmq.queue": queue, **rabbitmq.props}
    assert not [each for each in RabbitMQSourceConfig.validate(source) if each.errors]
    sink = {"rabbitmq.exchange": "amq.direct", "rabbitmq.topic.queue.map": json.dumps({"a": queue}), **rabbitmq.props}
    assert not [each for each in RabbitMQSinkConfig.validate(sink) if each.errors]
    assert not caplog.messages, "of the client's"


def test_records_are_messages_in_their_order(
    rabbitmq: RabbitServer, queue: str, publishing: Callable[..., Publishing]
) -> None:
    sink = publishing(
        rabbitmq,
        rabbitmq_routing_key="${key}",
        rabbitmq_forward_kafka_key="true",
        rabbitmq_forward_kafka_metadata="true",
        rabbitmq_publish_max_batch_size="10",
    )
    sink.put(*(f"{number}" for number in range(100)), key=queue)
    sink.committed(100)
    found = rabbitmq.take(queue)
    assert [body.decode() for _, _, body in found] == [f"{number}" for number in range(100)]
    _, properties, _ = found[7]
    assert (properties.delivery_mode, properties.correlation_id) == (2, queue)
    assert properties.headers == {"KAFKA_TOPIC": "test", "KAFKA_PARTITION": 0, "KAFKA_OFFSET": 7}


def test_what_no_queue_takes_is_a_bad_record(
    rabbitmq: RabbitServer, queue: str, publishing: Callable[..., Publishing]
) -> None:
    sink = publishing(rabbitmq, rabbitmq_routing_key="nowhere", rabbitmq_topic_queue_map=json.dumps({"mapped": queue}))
    sink.put("a", "a", None, "b")
    sink.put("c", start=4, topic="mapped")
    sink.committed(5)
    assert sorted(record.original_offset for record, _ in sink.errant.reported) == [0, 1, 2, 3]
    told = {record.original_offset: str(error) for record, error in sink.errant.reported}
    assert told[3] == (
        "No queue takes it (exchange (default), routing key nowhere): NO_ROUTE (code 312). Bind a queue, or set "
        "rabbitmq.mandatory=false."
    )
    assert [body for _, _, body in rabbitmq.take(queue)] == [b"c"]


def test_what_a_full_queue_refuses_is_sent_again(rabbitmq: RabbitServer, publishing: Callable[..., Publishing]) -> None:
    full = rabbitmq.declare(queue_name(), x_max_length=2, x_overflow="reject-publish")
    sink = publishing(rabbitmq, rabbitmq_routing_key=full)
    sink.put("0", "1", "2")
    assert [body for _, _, body in wait_until("two are there", lambda: rabbitmq.take(full), PATIENCE)] == [b"0", b"1"]
    sink.committed(3)
    assert [body for _, _, body in rabbitmq.take(full)] == [b"2"]


def test_a_record_for_which_rabbitmq_closes_the_channel_is_found(
    rabbitmq: RabbitServer, queue: str, publishing: Callable[..., Publishing]
) -> None:
    """Its neighbours arrive. An expiration that is none stands for what RabbitMQ refuses so."""
    sink = publishing(rabbitmq, rabbitmq_routing_key=queue)
    maker = sink.task._maker
    made = maker.message

    def message(record: Any) -> Any:
        found = made(record)
        if record.value == "bad":
            found.properties = pika.BasicProperties(delivery_mode=2, expiration="never")
        return found

    maker.message = message  # type: ignore[method-assign]
    sink.put("0", "1", "bad", "3", "4")
    sink.committed(5)
    assert [record.value for record, _ in sink.errant.reported] == ["bad"]
    assert "invalid expiration" in str(sink.errant.reported[0][1])
    found = [body.decode() for _, _, body in rabbitmq.take(queue)]
    assert sorted(set(found)) == ["0", "1", "3", "4"]


@pytest.fixture(scope="module")
def small_rabbitmq() -> Iterator[RabbitServer]:
    """A server that takes messages of 100,000 bytes, and frames of 8,192."""
    try:
        with rabbitmq_server(settings=["max_message_size = 100000", "frame_max = 8192"]) as server:
            yield server
    except ConnectError as error:
        pytest.skip(f"no RabbitMQ here: {error}")


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"value": "x" * 200_000}, "message size 200000 is larger than configured max size 100000"),
        ({"headers": Headers([Header("h", "y" * 9_000)])}, "RabbitMQ takes 8192 at most (frame_max)"),
        ({"headers": Headers([Header(f"h{n}", "y") for n in range(2_000)])}, "RabbitMQ takes 8192 at most"),
    ],
    ids=["body", "header", "headers"],
)
def test_what_the_server_never_takes_is_a_bad_record(
    attributes: dict[str, Any], told: str, small_rabbitmq: RabbitServer, publishing: Callable[..., Publishing]
) -> None:
    queue = small_rabbitmq.declare(queue_name())
    props = {"rabbitmq_routing_key": queue, "rabbitmq_forward_kafka_headers": "true"}
    large = sink_records(["0", "1", "2"])[1].replace(**attributes)

    sink = publishing(small_rabbitmq, **props)
    sink.put("0", start=0)
    sink.put(large.value, start=1, headers=large.headers)
    sink.put("2", start=2)
    sink.committed(3)
    ((refused, error),) = sink.errant.reported
    assert refused.original_offset == 1
    assert told in str(error)
    assert {body for _, _, body in small_rabbitmq.take(queue)} == {b"0", b"2"}

    strict = publishing(small_rabbitmq, **props)
    strict.context.errant_record_reporter = None
    with pytest.raises(ConnectError, match="offset 1 of test-0 cannot be sent") as failure:
        strict.put(large.value, start=1, headers=large.headers)
        strict.committed(2)
    assert not isinstance(failure.value, RetriableError)


def test_an_exchange_that_is_missing_is_waited_for(
    rabbitmq: RabbitServer, queue: str, publishing: Callable[..., Publishing]
) -> None:
    exchange = queue_name()
    sink = publishing(rabbitmq, rabbitmq_exchange=exchange, rabbitmq_routing_key="r")
    batch = SinkBatch.from_records(sink_records(["0"]))[0]
    with pytest.raises(RetriableError, match=f"RabbitMQ does not have the exchange {exchange} in the virtual host /"):
        wait_until("it is noticed", lambda: sink.task.put(batch), PATIENCE)
    with rabbitmq.connect() as connection:
        channel = connection.channel()
        channel.exchange_declare(exchange, "direct")
        channel.queue_bind(queue, exchange, "r")
    sink.put("0")
    sink.committed(1)
    assert {body for _, _, body in rabbitmq.take(queue)} == {b"0"}


@pytest.mark.thorough
def test_a_lost_server_comes_back(
    own_rabbitmq: RabbitServer, consuming: Callable[..., SourceTaskRun], publishing: Callable[..., Publishing]
) -> None:
    name = own_rabbitmq.declare(queue_name())
    run, sink = consuming(own_rabbitmq, name), publishing(own_rabbitmq, rabbitmq_routing_key=name)
    sink.put("0")
    sink.committed(1)
    assert [record.value for record in records(run, 1)] == [b"0"]
    with own_rabbitmq.down():
        batch = SinkBatch.from_records(sink_records(["1"]))[0]
        for _ in range(2):
            with pytest.raises(RetriableError, match="RabbitMQ"):
                wait_until("it is noticed", lambda: sink.task.put(batch), PATIENCE)
        with pytest.raises(RetriableError, match="RabbitMQ"):
            wait_until("it is noticed", run.task.poll, PATIENCE)
    sink.put("1", start=1)
    sink.committed(2)
    assert {record.value for record in records(run, 2)} == {b"0", b"1"}


@pytest.mark.thorough
def test_tls(tmp_path: Path, consuming: Callable[..., SourceTaskRun]) -> None:
    authority = Authority()
    identity = authority.sign("127.0.0.1")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "chain", "key")}
    for name, text in (("ca", authority.pem), ("chain", identity.certificate_pem), ("key", identity.key_pem())):
        files[name].write_text(text)
    with rabbitmq_server(files) as server:
        name = server.declare(queue_name())
        server.publish(name, [b"secret"])
        tls = {"rabbitmq_security_protocol": "SSL", "rabbitmq_port": str(server.tls_port)}
        trusting = consuming(server, name, **tls, **{"rabbitmq.https.ssl.truststore.location": str(files["ca"])})
        assert [record.value for record in records(trusting, 1)] == [b"secret"]
        distrusting = consuming(server, name, **tls)
        with pytest.raises(ConnectError, match=r"is not trusted: .*Check the keys rabbitmq\.https\.ssl"):
            wait_until("it is noticed", distrusting.task.poll, PATIENCE)
        plain = consuming(server, name, rabbitmq_security_protocol="SSL")
        with pytest.raises(ConnectError, match="does not speak TLS"):
            wait_until("it is noticed", plain.task.poll, PATIENCE)

"""A client is made from layers: defaults, role, worker, connector, what is forced."""

from __future__ import annotations

import logging
import threading

import pytest
from confluent_kafka import KafkaError

from connect.errors import ConfigError
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from connect.internals.kafka.settings.properties import librdkafka_properties
from worker.kafka.clients import roles

NOWHERE = "127.0.0.1:1"
WORKER = {
    "bootstrap.servers": NOWHERE,
    "group.id": "cluster",
    "session.timeout.ms": "10000",
    "key.converter": "JsonConverter",
    "metric.reporters": "com.example.Reporter",
    "retry.backoff.ms": "70",
}
CONNECTOR = {"name": "orders", "tasks.max": "1"}


def source(worker: dict[str, str] | None = None, connector: dict[str, str] | None = None) -> ClientProperties:
    return roles.source_producer_properties(WORKER | (worker or {}), CONNECTOR | (connector or {}), 2)


def sink(worker: dict[str, str] | None = None, connector: dict[str, str] | None = None) -> ClientProperties:
    return roles.sink_consumer_properties(WORKER | (worker or {}), CONNECTOR | (connector or {}), 2)


def test_a_source_producer_by_default() -> None:
    properties = source().properties
    assert (
        properties.items()
        >= {
            "metadata.broker.list": NOWHERE,
            "client.id": "connector-producer-orders-2",
            "request.required.acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": 2**31 - 1,
            "queue.buffering.max.kbytes": 32768,
            "message.max.bytes": 1048576,
            "partitioner": "murmur2_random",
        }.items()
    )
    assert "transactional.id" not in properties
    assert source().ignored == {}
    assert source().runtime == {"max.block.ms": str(2**63 - 1)}


def test_a_sink_consumer_by_default() -> None:
    properties = sink().properties
    assert (
        properties.items()
        >= {
            "client.id": "connector-consumer-orders-2",
            "group.id": "connect-orders",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "queued.max.messages.kbytes": "32768",
            "fetch.queue.backoff.ms": "4",
        }.items()
    )
    assert "topic.blacklist" not in properties
    assert sink().ignored == {}


def test_a_sink_consumer_of_a_shared_process_keeps_a_longer_queue_unless_it_is_told_otherwise() -> None:
    def queue(**connector: str) -> object:
        shared = roles.sink_consumer_properties(WORKER, CONNECTOR | connector, 2, shares=True)
        return shared.properties["queued.min.messages"]

    assert sink().properties["queued.min.messages"] == "5000"
    assert queue() == "100000"
    assert queue(**{"consumer.override.queued.min.messages": "70"}) == "70"


def test_internal_topics_do_not_match_a_sink_s_pattern() -> None:
    assert "__consumer_offsets" in str(sink(connector={"topics.regex": ".*"}).properties["topic.blacklist"])


def test_the_connector_covers_the_worker_and_the_worker_the_defaults() -> None:
    assert source({"producer.linger.ms": "20"}).properties["queue.buffering.max.ms"] == 20
    both = source({"producer.linger.ms": "20"}, {"producer.override.linger.ms": "30"})
    assert both.properties["queue.buffering.max.ms"] == 30
    native = source({"producer.buffer.memory": "1024"}, {"producer.override.queue.buffering.max.kbytes": "7"})
    assert native.properties["queue.buffering.max.kbytes"] == "7"


def test_a_user_s_group_and_client_id_are_kept() -> None:
    properties = sink({"consumer.client.id": "mine"}, {"consumer.override.group.id": "theirs"}).properties
    assert (properties["client.id"], properties["group.id"]) == ("mine", "theirs")


def test_settings_of_the_worker_itself_are_not_a_task_client_s() -> None:
    assert "retry.backoff.ms" not in source().properties
    assert "session.timeout.ms" not in sink().properties


@pytest.mark.parametrize(
    "override", [{"producer.override.acks": "1"}, {"producer.override.enable.idempotence": "false"}]
)
def test_without_idempotence_one_request_in_flight_keeps_the_order(override: dict[str, str]) -> None:
    properties = source(connector=override).properties
    assert properties["enable.idempotence"] is False
    assert properties["max.in.flight.requests.per.connection"] == 1


def test_the_user_s_word_on_requests_in_flight_stands() -> None:
    override = {"producer.override.max.in.flight.requests.per.connection": "9"}
    properties = source(connector=override).properties
    assert properties["max.in.flight.requests.per.connection"] == 9
    assert properties["enable.idempotence"] is False


def test_an_exactly_once_producer_is_transactional_whatever_the_user_says() -> None:
    connector = CONNECTOR | {"producer.override.enable.idempotence": "false"}
    decided = roles.source_producer_properties(WORKER, connector, 2, exactly_once=True)
    assert decided.properties["transactional.id"] == "cluster-orders-2"
    assert decided.properties["enable.idempotence"] is True
    assert decided.ignored == {"enable.idempotence": "the worker always sets it to true"}
    librdkafka.producer(decided)


def test_a_sink_s_offsets_are_committed_by_the_worker_only() -> None:
    decided = sink(connector={"consumer.override.enable.auto.commit": "true"})
    assert decided.properties["enable.auto.commit"] is False
    assert decided.ignored == {"enable.auto.commit": "the worker always sets it to false"}


def test_a_dead_letter_queue_producer_is_a_source_producer_with_another_name() -> None:
    properties = roles.dlq_producer_properties(WORKER, CONNECTOR, 2).properties
    assert properties == source().properties | {"client.id": "connector-dlq-producer-orders-2"}


def test_an_admin_client_inherits_the_worker_s_own_settings() -> None:
    worker = WORKER | {"admin.retry.backoff.max.ms": "900", "producer.linger.ms": "1"}
    decided = roles.admin_properties(worker, CONNECTOR | {"admin.override.client.rack": "r"}, 2)
    assert (
        decided.properties.items()
        >= {
            "client.id": "connector-adminclient-orders-2",
            "retry.backoff.ms": 70,
            "retry.backoff.max.ms": 900,
            "client.rack": "r",
        }.items()
    )
    assert decided.ignored == {}
    assert roles.admin_properties(worker, CONNECTOR).properties["client.id"] == ("connector-adminclient-orders")
    assert roles.dlq_admin_properties(worker, CONNECTOR, 2).properties["client.id"] == (
        "connector-dlq-adminclient-orders-2"
    )


def test_a_source_task_reads_its_offsets_outside_of_any_group() -> None:
    decided = roles.source_offsets_consumer_properties(WORKER, CONNECTOR, 2, exactly_once=True)
    assert (
        decided.properties.items()
        >= {
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.id": "connector-consumer-orders-2",
        }.items()
    )
    assert decided.ignored == {}


@pytest.mark.parametrize(
    ("worker", "client_id"),
    [
        ({"group.id": "cluster"}, "cluster-offsets"),
        ({"group.id": "cluster", "client.id": "a"}, "cluster-a-offsets"),
        ({}, "connect-offsets"),
    ],
)
def test_the_worker_s_own_clients_are_named_after_its_group(worker: dict[str, str], client_id: str) -> None:
    worker = {"bootstrap.servers": NOWHERE} | worker
    for kind in ClientKind:
        properties = roles.internal_properties(worker, kind, "offsets").properties
        assert properties["client.id"] == client_id


def test_the_worker_s_own_clients_take_its_settings_without_a_prefix() -> None:
    produced = roles.internal_properties(WORKER | {"acks": "1"}, ClientKind.PRODUCER, "configs")
    assert produced.properties["retry.backoff.ms"] == 70
    assert produced.properties["request.required.acks"] == "all"
    assert produced.properties["max.in.flight.requests.per.connection"] == 1
    assert produced.properties["enable.idempotence"] is True
    consumed = roles.internal_properties(WORKER, ClientKind.CONSUMER, "configs", {"isolation.level": "read_committed"})
    assert consumed.properties["isolation.level"] == "read_committed"
    assert consumed.properties["group.id"] == "cluster-configs"
    assert "session.timeout.ms" not in consumed.properties


@pytest.mark.parametrize("kind", list(ClientKind))
def test_every_role_is_accepted_by_librdkafka(kind: ClientKind) -> None:
    worker = roles.internal_properties(WORKER, kind, "configs")
    match kind:
        case ClientKind.PRODUCER:
            for properties in (source(), worker):
                librdkafka.producer(properties)
        case ClientKind.CONSUMER:
            for properties in (
                sink(connector={"topics.regex": ".*"}),
                worker,
                roles.source_offsets_consumer_properties(WORKER, CONNECTOR, None),
            ):
                librdkafka.consumer(properties).close()
        case ClientKind.ADMIN:
            for properties in (roles.admin_properties(WORKER, CONNECTOR), worker):
                librdkafka.admin(properties)


def test_a_client_without_brokers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'"bootstrap.servers"'):
        librdkafka.producer(librdkafka_properties({"bootstrap.servers": " "}, ClientKind.PRODUCER))


def test_what_librdkafka_refuses_is_a_config_error_that_names_the_property() -> None:
    java = {"bootstrap.servers": NOWHERE, "statistics.interval.ms": "-4"}
    with pytest.raises(ConfigError, match=r"statistics.interval.ms") as caught:
        librdkafka.producer(librdkafka_properties(java, ClientKind.PRODUCER))
    assert caught.value.key == "statistics.interval.ms"


def test_a_client_s_log_goes_to_logging_and_nowhere_else(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    failed = threading.Event()
    properties = librdkafka_properties({"bootstrap.servers": NOWHERE}, ClientKind.ADMIN)
    admin = librdkafka.admin(properties, on_error=lambda _error: failed.set())
    with caplog.at_level(logging.DEBUG, logger="connect.internals.kafka.clients.librdkafka"):
        while not failed.is_set():
            admin.poll(0.1)
        admin.poll(0.1)
    assert "Connection refused" in caplog.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (KafkaError(KafkaError._TRANSPORT), logging.DEBUG),
        (KafkaError(KafkaError._ALL_BROKERS_DOWN), logging.WARNING),
        (KafkaError(KafkaError._FENCED, fatal=True), logging.ERROR),
    ],
)
def test_an_error_is_logged_by_its_weight(caplog: pytest.LogCaptureFixture, error: KafkaError, level: int) -> None:
    with caplog.at_level(logging.DEBUG, logger="connect.internals.kafka.clients.librdkafka"):
        librdkafka.log_error(error)
    assert [record.levelno for record in caplog.records] == [level]


def test_client_properties_do_not_show_secrets() -> None:
    java = {"bootstrap.servers": NOWHERE, "sasl.username": "u", "sasl.password": "s3cret"}
    assert "s3cret" not in repr(librdkafka_properties(java, ClientKind.ADMIN))

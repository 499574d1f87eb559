"""Java's client settings become librdkafka's, and every one of them is decided."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS, Ignored, Mapped
from connect.internals.kafka.settings.native_keys import ALIASES, is_native_key, native_keys
from connect.internals.kafka.settings.properties import JAVA_DEFAULTS, UNKNOWN_KEY, layered, librdkafka_properties

PRODUCER, CONSUMER, ADMIN = ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN
NOWHERE = "127.0.0.1:1"
INT_MAX = 2**31 - 1


def _java_keys() -> dict[ClientKind, dict[str, str]]:
    """Every key of Kafka's own client config definitions, with its default; ``<null>`` and such for none."""
    keys: dict[ClientKind, dict[str, str]] = defaultdict(dict)
    for line in (Path(__file__).parent / "data" / "java_client_keys.tsv").read_text().splitlines():
        if not line.startswith("#"):
            kind, key, _, default = line.split("\t")
            keys[ClientKind(kind)][key] = default
    return keys


JAVA_KEYS = _java_keys()
WITH_DEFAULT = {
    kind: {key: default for key, default in keys.items() if not default.startswith("<")}
    for kind, keys in JAVA_KEYS.items()
}


def build(kind: ClientKind, java: dict[str, str]) -> None:
    """Have the real librdkafka judge the properties; no broker is needed for that."""
    base = {"bootstrap.servers": NOWHERE} | ({"group.id": "g"} if kind is CONSUMER else {})
    properties = librdkafka_properties(base | java, kind)
    match kind:
        case ClientKind.PRODUCER:
            librdkafka.producer(properties)
        case ClientKind.CONSUMER:
            librdkafka.consumer(properties).close()
        case ClientKind.ADMIN:
            librdkafka.admin(properties)


@pytest.mark.parametrize("kind", list(ClientKind))
def test_every_java_key_is_decided(kind: ClientKind) -> None:
    assert set(JAVA_KEYS[kind]) - set(CLIENT_KEYS[kind]) == set()


@pytest.mark.parametrize("kind", list(ClientKind))
def test_the_table_has_no_key_that_java_does_not_know(kind: ClientKind) -> None:
    assert set(CLIENT_KEYS[kind]) - set(JAVA_KEYS[kind]) == set()


@pytest.mark.parametrize("kind", list(ClientKind))
def test_all_java_defaults_together_are_accepted(kind: ClientKind) -> None:
    build(kind, WITH_DEFAULT[kind] | {"bootstrap.servers": NOWHERE})


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (kind, key)
        for kind in ClientKind
        for key in WITH_DEFAULT[kind]
        if not isinstance(CLIENT_KEYS[kind][key], Ignored) and not key.startswith("bootstrap.")
    ],
)
def test_each_java_default_is_accepted(kind: ClientKind, key: str) -> None:
    build(kind, {key: WITH_DEFAULT[kind][key]})


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (kind, key)
        for kind in ClientKind
        for key, decision in CLIENT_KEYS[kind].items()
        if isinstance(decision, Mapped) and WITH_DEFAULT[kind].get(key, "").isdigit()
    ],
)
@pytest.mark.parametrize("value", [1, INT_MAX])
def test_a_number_java_allows_is_brought_into_librdkafka_s_bounds(kind: ClientKind, key: str, value: int) -> None:
    no_linger = {"linger.ms": "0"} if key == "delivery.timeout.ms" else {}
    build(kind, no_linger | {key: str(value)})


@pytest.mark.parametrize(
    ("kind", "java", "expected"),
    [
        (PRODUCER, {"linger.ms": "20"}, {"queue.buffering.max.ms": 20}),
        (PRODUCER, {"batch.size": "16384"}, {"batch.size": 16384}),
        (PRODUCER, {"batch.size": "0"}, {"batch.size": 1}),
        (PRODUCER, {"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": 32768}),
        (PRODUCER, {"buffer.memory": "1025"}, {"queue.buffering.max.kbytes": 2}),
        (PRODUCER, {"buffer.memory": str(2**63 - 1)}, {"queue.buffering.max.kbytes": INT_MAX}),
        (PRODUCER, {"max.request.size": "5242880"}, {"message.max.bytes": 5242880}),
        (PRODUCER, {"delivery.timeout.ms": str(INT_MAX)}, {"message.timeout.ms": INT_MAX}),
        (PRODUCER, {"acks": "-1"}, {"request.required.acks": "all"}),
        (PRODUCER, {"acks": " ALL "}, {"request.required.acks": "all"}),
        (PRODUCER, {"retries": "3"}, {"message.send.max.retries": 3}),
        (PRODUCER, {"request.timeout.ms": "7000"}, {"socket.timeout.ms": 7000, "request.timeout.ms": 7000}),
        (CONSUMER, {"request.timeout.ms": "999999"}, {"socket.timeout.ms": 300000}),
        (PRODUCER, {"metadata.max.age.ms": "1000"}, {"topic.metadata.refresh.interval.ms": 1000}),
        (PRODUCER, {"connections.max.idle.ms": "-1"}, {"connections.max.idle.ms": 0}),
        (PRODUCER, {"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": 0}),
        (PRODUCER, {"reconnect.backoff.ms": "0"}, {"reconnect.backoff.ms": 0}),
        (
            PRODUCER,
            {"reconnect.backoff.ms": "5000", "reconnect.backoff.max.ms": "1000"},
            {"reconnect.backoff.max.ms": 5000},
        ),
        (PRODUCER, {}, {"partitioner": "murmur2_random", "enable.idempotence": True}),
        (PRODUCER, {"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
        (
            PRODUCER,
            {"compression.type": "gzip", "compression.gzip.level": "7", "compression.lz4.level": "3"},
            {"compression.codec": "gzip", "compression.level": 7},
        ),
        (PRODUCER, {"compression.type": "gzip", "compression.gzip.level": "-1"}, {"compression.level": -1}),
        (PRODUCER, {"compression.type": "lz4", "compression.lz4.level": "17"}, {"compression.level": 12}),
        (PRODUCER, {"compression.type": "zstd", "compression.zstd.level": "-9"}, {"compression.level": 1}),
        (PRODUCER, {"acks": "1"}, {"enable.idempotence": False}),
        (PRODUCER, {"retries": "0"}, {"enable.idempotence": False}),
        (PRODUCER, {"max.in.flight.requests.per.connection": "6"}, {"enable.idempotence": False}),
        (PRODUCER, {"max.in.flight": "6"}, {"enable.idempotence": False}),
        (
            PRODUCER,
            {"transactional.id": "t", "delivery.timeout.ms": str(INT_MAX), "transaction.timeout.ms": "5000"},
            {"transactional.id": "t", "message.timeout.ms": 5000},
        ),
        (
            PRODUCER,
            {"transactional.id": "t", "request.timeout.ms": "90000"},
            {"socket.timeout.ms": 60000, "request.timeout.ms": 90000},
        ),
        (CONSUMER, {"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
        (CONSUMER, {"fetch.max.wait.ms": "50"}, {"fetch.wait.max.ms": 50}),
        (CONSUMER, {"fetch.min.bytes": "0"}, {"fetch.min.bytes": 1}),
        (CONSUMER, {"max.partition.fetch.bytes": "10"}, {"fetch.message.max.bytes": 10}),
        (CONSUMER, {"fetch.max.bytes": "5000"}, {"fetch.max.bytes": 5000, "message.max.bytes": 5000}),
        (CONSUMER, {"isolation.level": "read_committed"}, {"isolation.level": "read_committed"}),
        (CONSUMER, {"group.protocol": "CONSUMER"}, {"group.protocol": "consumer"}),
        (
            CONSUMER,
            {"group.protocol": "consumer", "group.remote.assignor": "uniform"},
            {"group.remote.assignor": "uniform"},
        ),
        (
            CONSUMER,
            {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
            {"partition.assignment.strategy": "cooperative-sticky"},
        ),
        (
            CONSUMER,
            {
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor,"
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            },
            {"partition.assignment.strategy": "range"},
        ),
        (CONSUMER, {"max.poll.interval.ms": "9000"}, {"session.timeout.ms": 9000}),
        (ADMIN, {"client.id": "me"}, {"client.id": "me"}),
    ],
)
def test_java_settings_become_librdkafka_s(kind: ClientKind, java: dict[str, str], expected: dict[str, object]) -> None:
    properties = librdkafka_properties(java, kind).properties
    assert {name: properties[name] for name in expected} == expected
    build(kind, java)


@pytest.mark.parametrize(
    ("kind", "java", "key", "told"),
    [
        (PRODUCER, {"linger.ms": "soon"}, "linger.ms", "whole number"),
        (PRODUCER, {"linger.ms": "-1"}, "linger.ms", "at least 0"),
        (PRODUCER, {"acks": "2"}, "acks", "one of: all"),
        (PRODUCER, {"compression.type": "brotli"}, "compression.type", "zstd"),
        (
            PRODUCER,
            {"compression.type": "lz4", "compression.lz4.level": "18"},
            "compression.lz4.level",
            "between 1 and 17",
        ),
        (PRODUCER, {"enable.idempotence": "true", "acks": "1"}, "acks", "Must set acks to all"),
        (PRODUCER, {"enable.idempotence": "true", "retries": "0"}, "retries", "non-zero"),
        (
            PRODUCER,
            {"enable.idempotence": "true", "max.in.flight.requests.per.connection": "6"},
            "max.in.flight.requests.per.connection",
            "at most 5",
        ),
        (
            PRODUCER,
            {"transactional.id": "t", "enable.idempotence": "false"},
            "enable.idempotence",
            "without also enabling idempotence",
        ),
        (PRODUCER, {"transactional.id": " "}, "transactional.id", "non-empty"),
        (PRODUCER, {"enable.idempotence": "yes"}, "enable.idempotence", "true or false"),
        (PRODUCER, {"linger.ms": "100", "delivery.timeout.ms": "100"}, "delivery.timeout.ms", "linger.ms"),
        (PRODUCER, {"partitioner.class": "com.example.Mine"}, "partitioner.class", "partitioner=random"),
        (
            PRODUCER,
            {"transaction.two.phase.commit.enable": "true"},
            "transaction.two.phase.commit.enable",
            "remove",
        ),
        (CONSUMER, {"auto.offset.reset": "by_duration:PT1H"}, "auto.offset.reset", "REST API"),
        (CONSUMER, {"group.id": ""}, "group.id", "non-empty"),
        (
            CONSUMER,
            {"partition.assignment.strategy": "com.example.Mine"},
            "partition.assignment.strategy",
            "RangeAssignor",
        ),
        (
            CONSUMER,
            {"group.protocol": "consumer", "session.timeout.ms": "10000"},
            "session.timeout.ms",
            "cannot be set when group.protocol=CONSUMER",
        ),
        (CONSUMER, {"group.remote.assignor": "uniform"}, "group.remote.assignor", "CLASSIC"),
        (
            CONSUMER,
            {"session.timeout.ms": "9000", "max.poll.interval.ms": "8000"},
            "session.timeout.ms",
            "max.poll.interval.ms",
        ),
        (ADMIN, {"bootstrap.controllers": "c:9093"}, "bootstrap.controllers", "bootstrap.servers"),
        (ADMIN, {"security.protocol": "TLS"}, "security.protocol", "sasl_ssl"),
        (ADMIN, {"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class", "ssl.truststore"),
        (ADMIN, {"plugin.library.paths": "/tmp/evil.so"}, "plugin.library.paths", "remove the key"),
    ],
)
def test_what_cannot_be_kept_is_an_error_that_tells_what_to_do(
    kind: ClientKind, java: dict[str, str], key: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        librdkafka_properties(java, kind)
    assert caught.value.key == key
    assert key in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (PRODUCER, "key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer"),
        (PRODUCER, "interceptor.classes", "com.example.Audit"),
        (CONSUMER, "metric.reporters", "com.example.Reporter"),
        (CONSUMER, "metrics.context.cluster", "c"),
        (ADMIN, "ssl.protocol", "TLSv1.2"),
    ],
)
def test_a_key_without_effect_is_reported_with_the_reason(kind: ClientKind, key: str, value: str) -> None:
    decided = librdkafka_properties({key: value}, kind)
    assert list(decided.ignored) == [key]
    assert decided.ignored[key] != UNKNOWN_KEY
    assert key not in decided.properties


def test_an_empty_list_of_classes_is_not_worth_a_warning() -> None:
    assert librdkafka_properties({"metric.reporters": "", "interceptor.classes": " "}, PRODUCER).ignored == {}


@pytest.mark.parametrize(
    ("kind", "key"), [(PRODUCER, "no.such.key"), (PRODUCER, "queued.min.messages"), (ADMIN, "linger.ms")]
)
def test_a_key_nobody_knows_is_ignored_as_in_java(kind: ClientKind, key: str) -> None:
    assert librdkafka_properties({key: "1"}, kind).ignored == {key: UNKNOWN_KEY}


def test_what_the_worker_acts_on_itself_is_handed_on() -> None:
    decided = librdkafka_properties({"max.poll.records": "7"}, CONSUMER)
    assert (decided.runtime, decided.ignored) == ({"max.poll.records": "7"}, {})
    assert "max.poll.records" not in decided.properties


@pytest.mark.parametrize(
    ("kind", "key", "value", "reason"),
    [
        (CONSUMER, "max.poll.records", "abc", "Not a number: give a whole number"),
        (CONSUMER, "max.poll.records", "0", "Value must be at least 1"),
        (PRODUCER, "max.block.ms", "-1", "Value must be at least 0"),
        (ADMIN, "default.api.timeout.ms", "1.5", "Not a number: give a whole number"),
    ],
)
def test_what_the_worker_acts_on_itself_is_checked_like_the_rest(
    kind: ClientKind, key: str, value: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=rf"^Invalid value {value} for configuration {key}: {reason}"):
        librdkafka_properties({key: value}, kind)


def test_a_native_name_is_passed_through() -> None:
    build(CONSUMER, {"queued.min.messages": "12"})
    assert librdkafka_properties({"queued.min.messages": "12"}, CONSUMER).properties == {"queued.min.messages": "12"}


def test_a_native_name_wins_over_java_s_name_of_the_same_property() -> None:
    java = {"queue.buffering.max.kbytes": "8", "buffer.memory": "33554432"}
    assert librdkafka_properties(java, PRODUCER).properties["queue.buffering.max.kbytes"] == "8"


@pytest.mark.parametrize("kind", list(ClientKind))
def test_librdkafka_knows_every_native_name(kind: ClientKind) -> None:
    """A name it does not know is refused as such; a value it does not like is another matter."""
    for key in native_keys(kind) | {alias for alias in ALIASES if is_native_key(alias, kind)}:
        try:
            build(kind, {key: "1"})
        except ConfigError as error:
            assert "No such configuration property" not in str(error)


@pytest.mark.parametrize("kind", list(ClientKind))
def test_java_s_defaults_are_java_s(kind: ClientKind) -> None:
    assert JAVA_DEFAULTS[kind].items() <= WITH_DEFAULT[kind].items()


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        ([{"linger.ms": "1"}, {"linger.ms": "2"}], {"linger.ms": "2"}),
        (
            [{"buffer.memory": "1024"}, {"queue.buffering.max.kbytes": "8"}],
            {"queue.buffering.max.kbytes": "8"},
        ),
        ([{"queue.buffering.max.kbytes": "8"}, {"buffer.memory": "1024"}], {"buffer.memory": "1024"}),
        (
            [{"max.in.flight": "9"}, {"max.in.flight.requests.per.connection": "1"}],
            {"max.in.flight.requests.per.connection": "1"},
        ),
        (
            [{"compression.lz4.level": "1"}, {"compression.gzip.level": "2"}],
            {"compression.lz4.level": "1", "compression.gzip.level": "2"},
        ),
        ([{"no.such.key": "1"}, {"other.key": "2"}], {"no.such.key": "1", "other.key": "2"}),
    ],
)
def test_a_later_layer_covers_an_earlier_one_under_either_name(
    layers: list[dict[str, str]], merged: dict[str, str]
) -> None:
    assert layered(PRODUCER, *layers) == merged

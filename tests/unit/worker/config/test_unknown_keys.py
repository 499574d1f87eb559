"""Keys that are written wrong are told of."""

from __future__ import annotations

import pytest

from worker.config.unknown_keys import suggest_known_keys, tell_of_idle_keys
from worker.config.worker import StandaloneConfig
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.connector_keys import known_keys
from worker.security.redaction import Redaction

WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
CONNECTOR = {
    "name": "lines",
    "connector.class": "FileStreamSource",
    "file": "/f",
    "topic": "t",
    "value.converter": "JsonConverter",
    "transforms": "route",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "a",
    "transforms.route.predicate": "all",
    "predicates": "all",
    "predicates.all.type": "TopicNameMatches",
    "topic.creation.default.partitions": "1",
    "producer.override.linger.ms": "5",
    "confluent.topic.bootstrap.servers": "other:9092",
}


def warnings(**props: str) -> list[str]:
    given = CONNECTOR | {key.replace("__", "."): value for key, value in props.items()}
    return list(suggest_known_keys(given, known_keys(Assembly.resolve(WORKER, given, Redaction()))))


@pytest.mark.parametrize("written", ["fil", "fiel", "flie", "fille", "files"])
def test_one_wrong_letter_of_a_short_key_is_asked_about(written: str) -> None:
    del_file = {key: value for key, value in CONNECTOR.items() if key != "file"} | {written: "/f"}
    known = known_keys(Assembly.resolve(WORKER, del_file, Redaction()))
    assert list(suggest_known_keys(del_file, known)) == [f"The key {written} is unknown. Did you mean file?"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("errors.tolerence", "errors.tolerance"),
        ("batch.sise", "batch.size"),
        ("task.max", "tasks.max"),
        ("restart.polici", "restart.policy"),
        ("value.converter.schema.enable", "value.converter.schemas.enable"),
        ("transforms.route.replacment", "transforms.route.replacement"),
        ("predicates.all.patern", "predicates.all.pattern"),
    ],
)
def test_a_key_much_like_another_is_asked_about(written: str, meant: str) -> None:
    assert warnings(**{written: "x"}) == [f"The key {written} is unknown. Did you mean {meant}?"]


def test_keys_that_are_there_and_those_of_others_are_not() -> None:
    assert warnings() == []
    assert warnings(connector__class="SparkSink", topics="t", spark__sql__shuffle__partitions="1") == []


def test_a_converter_that_is_not_there_is_said_of_elsewhere() -> None:
    said = warnings(value__converter="Nothing", batch__sise="1")
    assert said == ["The key batch.sise is unknown. Did you mean batch.size?"]


def test_keys_of_a_worker_are_those_of_its_mode() -> None:
    known = {key.name for key in StandaloneConfig.definitions()}
    assert list(suggest_known_keys(["offset.storage.topic", "ofset.flush.interval.ms"], known)) == [
        "The key ofset.flush.interval.ms is unknown. Did you mean offset.flush.interval.ms?"
    ]


def test_keys_of_java_that_have_no_effect_are_told_with_what_to_use() -> None:
    own = {key.name for key in StandaloneConfig.definitions()}
    listeners = "has no effect: set listeners, such as http://localhost:8083."
    no_jmx = "there is no JMX: metrics are at /metrics, or are pushed to metrics.otlp.endpoint."
    given = ["rest.port", "rest.host.name", "metric.reporters", "auto.include.jmx.reporter", "metrics.context.site"]
    assert list(tell_of_idle_keys(given, own)) == [
        f"The key rest.port {listeners}",
        f"The key rest.host.name {listeners}",
        f"The key metric.reporters has no effect: a Java class cannot run here; {no_jmx}",
        f"The key auto.include.jmx.reporter has no effect: {no_jmx}",
        "The key metrics.context.site has no effect: there are no Java metrics: the worker reports its clients' "
        "metrics itself.",
    ]


def test_keys_that_a_worker_or_one_of_its_clients_heeds_are_not_told() -> None:
    own = {key.name for key in StandaloneConfig.definitions()}
    heeded = [*own, "retries", "default.api.timeout.ms", "request.timeout.ms", "confluent.license", "acme.key"]
    assert list(tell_of_idle_keys(heeded, own)) == []

"""Keys that are written wrong are told of."""

from __future__ import annotations

import pytest

from worker.config.unknown_keys import suggest_known_keys, tell_of_idle_keys
from worker.config.worker import StandaloneConfig
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.connector_keys import key_warnings, known_keys
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


def test_what_nobody_takes_is_told_of_connectors_that_take_nothing_else() -> None:
    """They cover what Java's connectors have, so that another key is a mistake, or one that is no more."""
    given = {
        "name": "documents",
        "connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "topics": "t",
        "connection.url": "http://localhost:9200",
        "type.name": "_doc",
        "fancy.mode": "on",
        "empty.mode": "",
        "confluent.topic.bootstrap.servers": "other:9092",
        "bootstrap.servers": "other:9092",
        "consumer.auto.offset.reset": "earliest",
        "consumer.override.auto.offset.reset": "earliest",
        "transforms": "route",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "a",
        "transforms.route.replacement": "b",
        "errors.tolerance": "all",
    }
    java = given["connector.class"]
    # That of type.name is the connector's own.
    assert list(key_warnings(Assembly.resolve(WORKER, given, Redaction()))) == [
        f"The key fancy.mode has no effect: {java} has no such key. Correct it or remove it.",
        "The key confluent.topic.bootstrap.servers has no effect: no licence is needed.",
        "The key bootstrap.servers has no effect: the brokers are those of the worker's file.",
        "The key consumer.auto.offset.reset has no effect: set consumer.override.auto.offset.reset.",
    ]


def test_files_and_tables_tell_of_unknown_keys_too() -> None:
    folder = {"connector.class": "DirectorySource", "name": "f", "topic": "t", "path": "/f", "fancy.mode": "on"}
    assert list(key_warnings(Assembly.resolve(WORKER, folder, Redaction()))) == [
        "The key fancy.mode has no effect: DirectorySource has no such key. Correct it or remove it."
    ]
    # What is below connection. is the driver's, and of Java's other keys the connector tells itself.
    table = {"connector.class": "JdbcSink", "name": "j", "topics": "t", "connection.url": "sqlite:///f"}
    table |= {"connection.application_name": "a", "date.timezone": "UTC", "max.buffer.size": "5", "fancy.mode": "on"}
    assert list(key_warnings(Assembly.resolve(WORKER, table, Redaction()))) == [
        "The key fancy.mode has no effect: JdbcSink has no such key. Correct it or remove it."
    ]


def test_keys_that_a_connector_passes_on_are_not_told_of() -> None:
    given = {
        "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
        "name": "documents",
        "topics": "t",
        "database": "d",
        "topic.override.t.collection": "c",
        "connection.uri": "mongodb://localhost",
    }
    assert list(key_warnings(Assembly.resolve(WORKER, given, Redaction()))) == []


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


DEBEZIUM = "io.debezium.connector."
AIVEN = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"


@pytest.mark.parametrize(
    ("connector", "known"),
    [
        (
            f"{DEBEZIUM}postgresql.PostgresConnector",
            {
                "column.mask.with.10.chars": "a.b.c",
                "column.truncate.to.20.chars": "a.b.d",
                "snapshot.select.statement.overrides.a.b": "SELECT 1",
                "signal.consumer.sasl.mechanism": "PLAIN",
                "internal.advanced.metrics.enable": "true",
            },
        ),
        (
            f"{DEBEZIUM}mysql.MySqlConnector",
            {
                "schema.history.internal": "io.debezium.storage.kafka.history.KafkaSchemaHistory",
                "schema.history.internal.producer.sasl.mechanism": "PLAIN",
                "guardrail.collections.max": "0",
            },
        ),
        (f"{DEBEZIUM}mongodb.MongoDbConnector", {"snapshot.collection.filter.overrides.a.b": "{}"}),
        (AIVEN, {"aws_s3_bucket": "b", "output_compression": "gzip", "aws.s3.backoff.delay.ms": "100"}),
        ("io.confluent.connect.s3.S3SinkConnector", {"hive.integration": "false", "s3.send.digest": "false"}),
        ("io.confluent.connect.s3.source.S3SourceConnector", {"mode": "GENERIC"}),
    ],
)
def test_java_s_keys_are_known_and_others_told_of(connector: str, known: dict[str, str]) -> None:
    given = {**CONNECTOR, "connector.class": connector, **known}
    for key in ("file", "topic", "transforms"):
        del given[key]
    told = [
        warning for warning in key_warnings(Assembly.resolve(WORKER, given, Redaction())) if "has no such" in warning
    ]
    assert told == []
    told = list(key_warnings(Assembly.resolve(WORKER, {**given, "tabel_list": "a"}, Redaction())))
    assert [each for each in told if "has no such" in each] == [
        f"The key tabel_list has no effect: {connector} has no such key. Correct it or remove it."
    ]


def test_a_limit_of_tables_is_told_to_have_no_effect() -> None:
    given = {**CONNECTOR, "connector.class": f"{DEBEZIUM}mysql.MySqlConnector", "guardrail.collections.max": "9"}
    config = Assembly.resolve(WORKER, given, Redaction()).connector_class.config_class
    needed = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.server.id": "1"}
    warnings = list(config.parse({**needed, "guardrail.collections.max": "9"}).warnings())
    assert "The key guardrail.collections.max has no effect: any number of tables may be captured." in warnings

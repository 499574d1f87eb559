"""What validation says of a configuration."""

from __future__ import annotations

from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest

from worker.config.worker import WORKER_ID
from worker.messages import messages
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Line, Link
from worker.security.redaction import Redaction

WORKER = {
    "bootstrap.servers": "unused:1",
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "config.providers": "env",
    "config.providers.env.class": "EnvVarConfigProvider",
}
SOURCE: dict[str, str | None] = {"name": "n", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}


def ask(inquiry: messages.Inquiry) -> messages.Report:
    """The answer to a question that needs nothing of the worker."""
    ours, theirs = Pipe()
    with ours, theirs:
        return answer(inquiry, Link(Line(theirs)), Redaction())


def validated(**config: str | None) -> dict[str, dict[str, Any]]:
    given = SOURCE | {key.replace("__", "."): value for key, value in config.items()}
    report = ask(messages.ValidateConfig(given, WORKER))
    assert isinstance(report, messages.Validated)
    return {shown["value"]["name"]: shown for shown in report.infos["configs"]}


def errors(shown: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    return {key: item["value"]["errors"] for key, item in shown.items() if item["value"]["errors"]}


def test_a_right_configuration_has_no_errors_and_shows_the_workers_converters() -> None:
    shown = validated()
    assert errors(shown) == {}
    assert shown["value.converter"]["value"]["value"] == "JsonConverter"
    assert shown["value.converter"]["definition"]["default_value"] == "JsonConverter"


def test_what_a_provider_gave_is_shown_as_its_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOPIC", "s3cret")
    shown = validated(topic="${env:SECRET_TOPIC}", batch__size="${env:SECRET_TOPIC}")
    assert shown["topic"]["value"]["value"] == "${env:SECRET_TOPIC}"
    assert "s3cret" not in str(shown)
    assert list(errors(shown)) == ["batch.size"]


def test_what_the_worker_itself_reads_may_not_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMIT", "3")
    monkeypatch.setenv("WHEN", "drained")
    shown = validated(restart__limit="${env:LIMIT}", run__until="${env:WHEN}", restart__window__ms="5000")
    assert {key: [error] for key, (error,) in errors(shown).items() if "may not refer" in error} == errors(shown)
    assert sorted(errors(shown)) == ["restart.limit", "run.until"]


def test_keys_of_transformations_predicates_and_converters_stand_below_their_prefixes() -> None:
    shown = validated(
        transforms="a",
        transforms__a__type="HoistField$Value",
        transforms__a__predicate="p",
        predicates="p",
        predicates__p__type="TopicNameMatches",
        predicates__p__pattern="(",
        value__converter="JsonConverter",
        value__converter__schemas__enable="perhaps",
    )
    assert shown["transforms.a.field"]["definition"]["group"] == "Transforms: a"
    assert shown["predicates.p.pattern"]["definition"]["group"] == "Predicates: p"
    wrong = errors(shown)
    assert wrong["transforms.a.field"] == [
        'Missing required configuration "transforms.a.field" which has no default value.'
    ]
    assert wrong["value.converter.schemas.enable"] == [
        "Invalid value perhaps for configuration value.converter.schemas.enable: "
        "Expected value to be either true or false"
    ]
    assert wrong.keys() >= {"transforms.a.field", "predicates.p.pattern", "value.converter.schemas.enable"}


def test_a_required_key_of_a_converter_is_missed_by_its_whole_name() -> None:
    wrong = errors(validated(value__converter="AvroConverter"))
    assert wrong == {
        "value.converter.schema.registry.url": [
            'Missing required configuration "value.converter.schema.registry.url" which has no default value.'
        ]
    }


def test_a_null_and_a_class_that_is_not_there_are_mistakes() -> None:
    wrong = errors(validated(topic=None, value__converter="no.such.Converter"))
    assert wrong == {
        "topic": ["Null value can not be supplied as the configuration value."],
        "value.converter": [
            "Invalid value no.such.Converter for configuration value.converter: "
            "Class no.such.Converter could not be found."
        ],
    }


def test_a_misspelt_class_brings_the_names_that_resemble_it() -> None:
    wrong = errors(
        validated(
            value__converter="JsonConvertor",
            header__converter="SimpleHeaderConvertr",
            key__converter="org.apache.kafka.connect.storage.StringConvertor",
            transforms="a",
            transforms__a__type="HoistFeild$Value",
            transforms__a__predicate="p",
            predicates="p",
            predicates__p__type="TopicNameMatch",
        )
    )
    assert {key: told.rpartition("could not be found. ")[2] for key, (told,) in wrong.items()} == {
        "value.converter": "Did you mean JsonConverter?",
        "header.converter": "Did you mean SimpleHeaderConverter?",
        "key.converter": "Did you mean org.apache.kafka.connect.storage.StringConverter?",
        "transforms.a.type": "Did you mean HoistField$Value?",
        "predicates.p.type": "Did you mean TopicNameMatches?",
    }
    report = ask(messages.ValidateConfig(SOURCE | {"connector.class": "FileStreamSorce"}, WORKER))
    assert isinstance(report, messages.Refused)
    assert "which name matches FileStreamSorce (did you mean FileStreamSource" in report.message


def test_the_group_of_all_connectors_comes_first() -> None:
    report = ask(messages.ValidateConfig(SOURCE, WORKER))
    assert isinstance(report, messages.Validated)
    assert report.infos["groups"][0] == "Common"
    assert len(set(report.infos["groups"])) == len(report.infos["groups"])


def test_a_worker_of_a_cluster_says_that_it_is_the_one_without_the_plugin() -> None:
    worker = WORKER | {WORKER_ID: "there:8083"}
    report = ask(messages.ValidateConfig(SOURCE | {"connector.class": "acme.Orders"}, worker))
    assert isinstance(report, messages.Refused)
    assert (
        "Worker there:8083 has no such plugin: if others of its cluster have it, install it there too" in report.message
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer.override.ssl.engine.factory.class", "com.mine.Factory"),
        ("producer.override.linger.ms", "soon"),
        ("producer.override.ssl.truststore.location", "/none.jks"),
        ("admin.override.sasl.mechanism", "NONSENSE"),
    ],
)
def test_what_no_client_can_be_made_of_is_a_mistake(key: str, value: str) -> None:
    protocol = f"{key.partition('.')[0]}.override.security.protocol"
    found = errors(validated(**{key: value, protocol: "SASL_SSL"}))
    assert found.keys() == {key}
    assert key in found[key][0]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("${file:/no/such/file:key}", "/no/such/file"),
        ("${file:{folder}:key}", "{folder}"),
        ("${file:/proc/self/environ:key}", "is not allowed to be accessed"),
        ("${dir:/no/such/folder:key}", "Could not list directory /no/such/folder: No such file or directory"),
        ("${env:some/path:KEY}", "Path is not supported for EnvVarConfigProvider"),
    ],
)
def test_a_reference_that_leads_nowhere_is_the_mistake_of_who_asks(tmp_path: Path, reference: str, told: str) -> None:
    worker = WORKER | {
        "config.providers": "env,file,dir",
        "config.providers.file.class": "FileConfigProvider",
        "config.providers.dir.class": "DirectoryConfigProvider",
    }
    given = SOURCE | {"topic": reference.replace("{folder}", str(tmp_path))}
    report = ask(messages.ValidateConfig(given, worker))
    assert isinstance(report, messages.Refused)
    assert report.invalid
    assert told.replace("{folder}", str(tmp_path)) in report.message


def test_a_wrong_reference_of_the_worker_is_not_the_mistake_of_who_asks() -> None:
    worker = WORKER | {
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "ssl.key.password": "${file:/no/such/file:key}",
    }
    report = ask(messages.ValidateConfig(SOURCE, worker))
    assert isinstance(report, messages.Refused)
    assert not report.invalid
    assert "A reference in the worker's own properties cannot be resolved" in report.message


def test_an_unknown_connector_is_the_mistake_of_who_asks() -> None:
    report = ask(messages.ValidateConfig({"connector.class": "NoSuch"}, WORKER))
    assert isinstance(report, messages.Refused)
    assert report.invalid


def test_a_sources_offsets_are_shown_to_its_class() -> None:
    config = {key: value for key, value in SOURCE.items() if value is not None}
    partition = {"filename": "/f"}
    agreed = ask(messages.AlterSourceOffsets(config, WORKER, [(partition, {"position": 1})]))
    assert agreed == messages.SourceOffsetsAllowed(managed=True, own_topic=False, transactional=False)
    refused = ask(messages.AlterSourceOffsets(config, WORKER, [(partition, {"position": -1})]))
    assert isinstance(refused, messages.Refused)
    assert "non-negative" in refused.message


TEXT_OF_TOPICS = "topics and topics.regex are mutually exclusive options, but both are set."


def test_no_mistake_hides_another() -> None:
    wrong = errors(
        validated(
            connector__class="FileStreamSink",
            topics="a",
            topics__regex="(",
            schedule="nightly",
            predicates="p",
            predicates__p__type="NoPredicate",
            transforms="x,y,y",
            transforms__x__type="NoTransformation",
            transforms__y__type="HoistField$Value",
            transforms__y__negate="true",
            value__converter="NoConverter",
        )
    )
    assert wrong.keys() == {
        "topics",
        "topics.regex",
        "schedule",
        "run.until",
        "transforms",
        "predicates.p.type",
        "transforms.x.type",
        "transforms.y.field",
        "transforms.y.negate",
        "value.converter",
    }
    assert wrong["topics"] == [TEXT_OF_TOPICS]
    assert wrong["topics.regex"][1:] == [TEXT_OF_TOPICS]
    assert "Invalid regex" in wrong["topics.regex"][0]
    assert wrong["transforms.x.type"] == [
        "Invalid value NoTransformation for configuration transforms.x.type: Class NoTransformation could not be found."
    ]


@pytest.mark.parametrize("kind", ["way_in.X", "NoSuchPredicate"])
def test_a_predicate_that_no_transformation_uses_is_checked(kind: str) -> None:
    wrong = errors(validated(predicates="p", predicates__p__type=kind))
    assert list(wrong) == ["predicates.p.type"]


def test_rules_over_several_keys_of_a_transformation_stand_beside_its_other_mistakes() -> None:
    wrong = errors(
        validated(
            transforms="a",
            transforms__a__type="DebeziumUnwrap",
            transforms__a__delete__tombstone__handling__mode="no-such-mode",
            transforms__a__predicate="p",
        )
    )
    assert wrong.keys() == {"transforms.a.delete.tombstone.handling.mode", "transforms.a.predicate"}


def test_the_groups_of_new_topics_are_checked_key_by_key() -> None:
    wrong = errors(
        validated(
            topic__creation__groups="logs",
            topic__creation__logs__include="(",
            topic__creation__logs__partitions="0",
            topic__creation__default__partitions="many",
        )
    )
    assert {key.removeprefix("topic.creation."): error for key, (error,) in wrong.items()} == {
        "default.partitions": "Invalid value many for configuration topic.creation.default.partitions: Not a number. "
        "Number of partitions must be positive, or -1 to use the broker's default",
        "default.replication.factor": 'Missing required configuration "topic.creation.default.replication.factor" '
        "which has no default value.",
        "logs.include": "Invalid value ( for configuration topic.creation.logs.include: Syntax error in regular "
        "expression: missing ), unterminated subpattern at position 0",
        "logs.partitions": "Invalid value 0 for configuration topic.creation.logs.partitions: Number of partitions "
        "must be positive, or -1 to use the broker's default",
    }


def test_exactly_once_is_refused_beside_other_mistakes() -> None:
    wrong = errors(validated(exactly__once__support="required", batch__size="x", tasks__max="0"))
    assert wrong.keys() == {"exactly.once.support", "batch.size", "tasks.max"}


def test_an_engine_that_there_is_not() -> None:
    assert list(errors(validated(engine="flink"))) == ["engine"]
    assert errors(validated(engine="worker")) == {}


SPARKLING: dict[str, str | None] = {
    "connector.class": "JdbcSink",
    "topics": "t",
    "connection.url": "jdbc:sqlite:/rows.db",
    "engine": "spark",
}


def test_with_an_engine_the_keys_of_both_are_checked() -> None:
    pytest.importorskip("pyspark")
    shown = validated(**SPARKLING, **{"engine.flush.size": "9", "batch.size": "7"})
    assert errors(shown) == {}
    assert (shown["engine.flush.size"]["value"]["value"], shown["batch.size"]["value"]["value"]) == ("9", "7")
    wrong = errors(validated(**SPARKLING, **{"engine.flush.size": "0", "batch.size": "x", "flush.size": "0"}))
    assert sorted(wrong) == ["batch.size", "engine.flush.size"]
    assert "engine.flush.size" not in validated(**SPARKLING | {"engine": "worker"})


def test_a_connector_that_has_spark_itself_has_no_other_engine() -> None:
    pytest.importorskip("pyspark")
    own = {"connector.class": "SparkSink", "topics": "t", "store.url": "/s", "engine": "spark", "flush.size": "9"}
    shown = validated(**own)
    assert errors(shown) == {}
    assert "flush.size" in shown
    assert "engine.flush.size" not in shown

"""``sluice validate``, without a broker and without a worker."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from worker.cli.main import main


def sluice(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def properties(place: Path, /, **props: str) -> Path:
    place.write_text("".join(f"{key.replace('__', '.')}={value}\n" for key, value in props.items()))
    return place


def test_a_right_configuration_has_no_mistakes(tmp_path: Path) -> None:
    file = properties(tmp_path / "a.properties", name="a", connector__class="FileStreamSource", topic="t", file="/f")
    done = sluice("validate", file)
    assert (done.exit_code, done.output) == (0, f"{file} (a): no mistakes\n")


def unknown(file: Path, *arguments: object) -> str:
    """Return the only mistake in a file, on one line."""
    done = sluice("validate", file, *arguments, "-o", "json")
    assert done.exit_code == 1
    ((mistake,),) = (document["mistakes"] for document in json.loads(done.stdout))
    return str(mistake["error"])


def test_a_class_that_is_unknown_without_a_worker_may_be_on_its_plugin_path(tmp_path: Path) -> None:
    file = properties(tmp_path / "a.properties", name="a", connector__class="mine.Nobody", topic="t")
    hint, known = "name the worker's file with --worker", "available connectors are: "
    error = unknown(file)
    assert 0 < error.index(hint) < error.index(known)
    worker = properties(
        tmp_path / "worker.properties",
        bootstrap__servers="localhost:9092",
        key__converter="JsonConverter",
        value__converter="JsonConverter",
        offset__storage__file__filename=str(tmp_path / "offsets"),
    )
    assert hint not in unknown(file, "--worker", worker)


def test_a_class_that_resembles_another_comes_without_the_list_of_all(tmp_path: Path) -> None:
    error = unknown(properties(tmp_path / "a.properties", name="a", connector__class="FileStreamSourc", topic="t"))
    assert "name matches FileStreamSourc (did you mean FileStreamSource?)" in error
    assert "available connectors" not in error


def test_every_mistake_is_told_at_once_with_its_remedy(tmp_path: Path) -> None:
    file = properties(
        tmp_path / "a.properties",
        connector__class="FileStreamSink",
        topics="a",
        topics__regex="a.*",
        fille="/f",
        transforms="x,y",
        transforms__x__type="HoistFeld$Value",
        transforms__y__type="HoistField$Value",
        transforms__y__negate="true",
    )
    done = sluice("validate", file, "-o", "json")
    assert done.exit_code == 1
    (document,) = json.loads(done.stdout)
    found = {" ".join(item["keys"]): item["remedy"] for item in document["mistakes"]}
    errors = {" ".join(item["keys"]): item["error"] for item in document["mistakes"]}
    assert found.keys() == {
        "name",
        "topics topics.regex",
        "transforms.x.type",
        "transforms.y.field",
        "transforms.y.negate",
    }
    assert "HoistField$Value" in errors["transforms.x.type"]
    assert all(found.values())
    assert document["warnings"] == ["The key fille is unknown. Did you mean file?"]
    told = sluice("validate", file)
    assert told.exit_code == 1
    assert f"{file}: 5 mistakes\n" in told.output
    assert "  topics, topics.regex\n    topics and topics.regex are mutually exclusive" in told.output


def test_the_workers_file_counts(tmp_path: Path) -> None:
    file = properties(
        tmp_path / "a.properties",
        name="a",
        connector__class="FileStreamSource",
        topic="t",
        producer__override__acks="1",
    )
    worker = properties(
        tmp_path / "w.properties",
        bootstrap__servers="unused:1",
        key__converter="StringConverter",
        value__converter="StringConverter",
        offset__storage__file__filename=str(tmp_path / "offsets"),
        connector__client__config__override__policy="None",
    )
    assert sluice("validate", file).exit_code == 0
    done = sluice("validate", file, "--worker", worker)
    assert done.exit_code == 1
    assert "The 'None' policy does not allow 'acks' to be overridden in the connector configuration." in done.output
    assert "-> Remove it, or have connector.client.config.override.policy of the worker allow it." in done.output
    assert not (tmp_path / "offsets").exists()


def test_what_cannot_be_found_out_has_another_status(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{")
    done = sluice("validate", file)
    assert done.exit_code == 2
    assert "a.json starts with a brace but is not valid JSON" in done.stdout
    right = properties(tmp_path / "b.properties", name="b", connector__class="FileStreamSource", topic="t")
    worker = properties(tmp_path / "w.properties", key__converter="StringConverter")
    done = sluice("validate", right, "--worker", worker)
    assert done.exit_code == 2
    assert f"the worker's file {worker} is wrong: " in done.stderr


def test_a_missing_and_an_unknown_class_are_mistakes(tmp_path: Path) -> None:
    missing = properties(tmp_path / "a.properties", name="a")
    unknown = properties(tmp_path / "b.properties", name="b", connector__class="NoSuchSource")
    done = sluice("validate", missing, unknown)
    assert done.exit_code == 1
    assert 'Missing required configuration "connector.class" which has no default value.' in done.output
    assert "Failed to find any class that implements Connector and which name matches NoSuchSource" in done.output


def warned(tmp_path: Path, **props: str) -> list[str]:
    """Return the warnings about a connector without mistakes."""
    own = {"name": "a", "connector__class": "FileStreamSink", "topics": "t", "file": "/f"} | props
    done = sluice("validate", properties(tmp_path / "a.properties", **own), "-o", "json")
    (document,) = json.loads(done.stdout)
    assert document["mistakes"] == []
    warnings: list[str] = document["warnings"]
    return warnings


REPLACE = {"transforms": "r", "transforms__r__type": "org.apache.kafka.connect.transforms.ReplaceField$Value"}


def test_a_key_that_no_transformation_predicate_or_converter_has_is_told(tmp_path: Path) -> None:
    assert warned(
        tmp_path,
        **REPLACE,
        transforms__r__exclude="secret",
        transforms__r__drop="x",
        transforms__r__predicate="p",
        predicates="p",
        predicates__p__type="RecordIsTombstone",
        predicates__p__topic="t",
        key__converter="StringConverter",
        key__converter__schemas__enable="false",
        value__converter="JsonConverter",
        value__converter__registry="http://r",
        value__converter__schemas__enable="false",
        header__converter="SimpleHeaderConverter",
        header__converter__strict="true",
    ) == [
        "The key transforms.r.drop is unknown: org.apache.kafka.connect.transforms.ReplaceField$Value has no such key. "
        "Correct it or remove it.",
        "The key predicates.p.topic is unknown: RecordIsTombstone has no such key. Correct it or remove it.",
        "The key key.converter.schemas.enable is unknown: StringConverter has no such key. Correct it or remove it.",
        "The key value.converter.registry is unknown: JsonConverter has no such key. Correct it or remove it.",
        "The key header.converter.strict is unknown: SimpleHeaderConverter has no such key. Correct it or remove it.",
    ]


def test_a_transformation_or_predicate_that_is_not_listed_is_told_once(tmp_path: Path) -> None:
    assert warned(
        tmp_path,
        transforms="a.b",
        transforms__a__b__type="HoistField$Value",
        transforms__a__b__field="f",
        transforms__c__type="HoistField$Value",
        transforms__c__field="f",
        predicates__p__type="RecordIsTombstone",
    ) == [
        "The keys transforms.c.* have no effect, because transforms does not list c: list it there, or remove them.",
        "The keys predicates.p.* have no effect, because predicates does not list p: list it there, or remove them.",
    ]


def test_old_names_of_keys_are_told_with_the_new_ones(tmp_path: Path) -> None:
    assert warned(tmp_path, **REPLACE, transforms__r__blacklist="secret", transforms__r__whitelist="a") == [
        "The key transforms.r.blacklist is an old name: call it transforms.r.exclude.",
        "The key transforms.r.whitelist is an old name: call it transforms.r.include.",
    ]
    outbox = {"transforms": "o", "transforms__o__type": "EventRouter", "transforms__o__table__field__payload": "p"}
    assert warned(tmp_path, **outbox) == [
        "The key transforms.o.table.field.payload is an old name: call it transforms.o.table.field.event.payload."
    ]
    both = {"transforms__r__blacklist": "secret", "transforms__r__exclude": "other"}
    assert warned(tmp_path, **REPLACE, **both) == [
        "The key transforms.r.blacklist has no effect, because transforms.r.exclude, its new name, is set too: keep "
        "one of them."
    ]


def test_a_transformation_that_changes_nothing_is_told(tmp_path: Path) -> None:
    assert warned(tmp_path, **REPLACE) == [
        "transforms.r: ReplaceField changes nothing: set at least one of exclude, include and renames."
    ]
    assert warned(tmp_path, **REPLACE, transforms__r__renames="a:b") == []


def test_the_workers_keys_of_a_converter_are_told_to_the_connectors_that_use_it(tmp_path: Path) -> None:
    worker = properties(
        tmp_path / "worker.properties",
        bootstrap__servers="localhost:9092",
        key__converter="StringConverter",
        key__converter__schemas__enable="false",
        value__converter="JsonConverter",
        value__converter__schema__enable="false",
        value__converter__registry="http://r",
        offset__storage__file__filename=str(tmp_path / "offsets"),
    )
    own = {"name": "a", "connector__class": "FileStreamSink", "topics": "t", "file": "/f"}
    file = properties(tmp_path / "a.properties", **own)
    (document,) = json.loads(sluice("validate", file, "--worker", worker, "-o", "json").stdout)
    assert document["warnings"] == [
        "In the worker's file: The key key.converter.schemas.enable is unknown: StringConverter has no such key. "
        "Correct it or remove it.",
        "In the worker's file: The key value.converter.schema.enable is unknown. Did you mean "
        "value.converter.schemas.enable?",
        "In the worker's file: The key value.converter.registry is unknown: JsonConverter has no such key. Correct it "
        "or remove it.",
    ]
    other = properties(
        tmp_path / "b.properties", **own, value__converter="StringConverter", key__converter="JsonConverter"
    )
    (document,) = json.loads(sluice("validate", other, "--worker", worker, "-o", "json").stdout)
    assert document["warnings"] == []

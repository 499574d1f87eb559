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
    assert "a.json starts with a brace but is not valid JSON" in done.stderr
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

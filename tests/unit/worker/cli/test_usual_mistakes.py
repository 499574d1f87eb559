"""Usual mistakes, each of which is answered with what to do."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from equipment.ports import own_port
from worker.cli.main import main

JDBC = {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "t"}
FILE = {"connector.class": "FileStreamSource", "topic": "t", "file": "/tmp/in"}
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/out"}

CONFIGS = {
    "a class with a typing error": (FILE | {"connector.class": "FileStreamSourc"}, "did you mean FileStreamSource?"),
    "no class": ({"topic": "t"}, "`sluice plugins list` lists the connectors there are."),
    "a key that is missing": (
        {key: FILE[key] for key in ("connector.class", "file")},
        "-> topic (string): Topic to publish the lines to.",
    ),
    "a key with a typing error": (FILE | {"batch.siez": "5"}, "batch.size"),
    "a number that is none": (FILE | {"tasks.max": "many"}, "tasks.max (int, by default 1)"),
    "no topics": (SINK, "Set topics to the topics to read, or topics.regex to a pattern of their names."),
    "topics twice": (SINK | {"topics": "a", "topics.regex": "b"}, "Remove one of them."),
    "a transformation that is not there": (
        FILE | {"transforms": "a", "transforms.a.type": "NoSuchThing"},
        "`sluice plugins list` lists the plugins there are.",
    ),
    "dead letters without tolerance": (
        SINK | {"topics": "a", "errors.deadletterqueue.topic.name": "dead"},
        "Set errors.tolerance=all to have bad records skipped into that topic.",
    ),
    "the worker's file": ({"bootstrap.servers": "a:1"}, "`sluice doctor --worker FILE` checks one."),
    "the URL of another library": (
        JDBC | {"connection.url": "mongodb://host/db"},
        "connection.url",
    ),
    "a file that is not there, with --connect": (
        JDBC | {"connection.url": "jdbc:sqlite:/nowhere/none.db"},
        "Correct connection.url, or create the file.",
    ),
    "a folder that cannot be made, with --connect": (
        {"connector.class": "FolderSink", "topics": "t", "format.class": "JsonFormat", "flush.size": "1"}
        | {"store.url": "/dev/null/below"},
        "correct its name.",
    ),
}


def test_mistakes_in_configurations_are_told_with_their_remedies(tmp_path: Path) -> None:
    files = {}
    for number, (mistake, (config, _)) in enumerate(CONFIGS.items()):
        files[mistake] = tmp_path / f"{number}.json"
        files[mistake].write_text(json.dumps({"name": "c", "config": config}))
    done = CliRunner().invoke(main, ["validate", "--connect", *map(str, files.values())])
    told = {}
    for part in done.output.split(f"{tmp_path}/")[1:]:
        told.setdefault(int(part.partition(".")[0]), part)
    missed = {
        mistake: told.get(number)
        for number, (mistake, (_, remedy)) in enumerate(CONFIGS.items())
        if remedy not in told.get(number, "")
    }
    assert not missed


def test_a_file_in_the_other_format_is_read_as_what_it_is(tmp_path: Path) -> None:
    props, document = tmp_path / "props.json", tmp_path / "document.properties"
    props.write_text("".join(f"{key}={value}\n" for key, value in {"name": "c", **FILE}.items()))
    document.write_text(json.dumps({"name": "c", "config": FILE}))
    done = CliRunner().invoke(main, ["validate", str(props), str(document)])
    assert done.output == f"{props} (c): no mistakes\n{document} (c): no mistakes\n"


def test_a_worker_that_is_not_there_is_told_with_the_option() -> None:
    done = CliRunner().invoke(main, ["status", "--url", f"127.0.0.1:{own_port()}"])
    assert done.exit_code == 1
    assert "Is one running? Give the address of a worker's REST API with --url or SLUICE_URL" in done.output


def test_a_file_that_cannot_be_read_does_not_hide_the_mistakes_of_others(tmp_path: Path) -> None:
    broken, wrong = tmp_path / "broken.json", tmp_path / "wrong.json"
    broken.write_text('{"name": "c", }')
    wrong.write_text(json.dumps({"name": "c", "config": SINK}))
    done = CliRunner().invoke(main, ["validate", str(broken), str(wrong)])
    assert done.exit_code == 2
    assert f"{broken} starts with a brace but is not valid JSON" in done.output
    assert "Must configure one of topics or topics.regex" in done.output

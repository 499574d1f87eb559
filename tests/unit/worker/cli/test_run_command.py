"""``sluice run --preview`` of sources, for which no broker is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from worker.cli.main import main
from worker.stores.offset.file import read_map, write_map
from worker.stores.offset.store import offset_key, offset_value

pytestmark = pytest.mark.slow

PLUGINS = '''
import time
from connect.config import HIGH, Config, Password, option
from connect.data import SourceRecord
from connect.errors import DataError
from connect.source import SourceConnector, SourceTask
from connect.transformation import Transformation


class Options(Config):
    """Options."""

    fault: str = option(default="", importance=HIGH, doc="What goes wrong.")
    secret: Password = option(default="", importance=HIGH, doc="A secret.")


class OddTask(SourceTask[Options]):
    """Polls numbers, and touches files when it is told of a commit."""

    def start(self):
        self.number = 0

    def poll(self):
        if self.config.fault == "hangs" and self.number == 2:
            time.sleep(600)
        if self.config.fault == "raises" and self.number == 2:
            raise KeyError("id")
        if self.config.fault == "waits":
            self.context.wait(600)
            return []
        self.number += 1
        record = SourceRecord("numbers", {"n": self.number, "s": f"a {self.config.secret.value} b"})
        if self.config.fault == "reports" and self.number == 2:
            self.context.errant_record_reporter.report(record, ValueError("it is odd"))
            return []
        return [record.replace(source_partition={"p": 1}, source_offset={"n": self.number})]

    def commit_record(self, record):
        raise AssertionError("a preview commits nothing")

    commit = commit_record


class Odd(SourceConnector[Options]):
    """Polls numbers."""

    task_class = OddTask


class Fussy(Transformation[Config]):
    """Refuses the second record, drops the third, and changes the others in place."""

    def apply(self, record):
        if record.value["n"] == 2:
            raise DataError("two is odd")
        record.value["n"] *= 10
        return None if record.value["n"] == 30 else record
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "plugins"
    place.mkdir()
    (place / "odd_for_preview.py").write_text(PLUGINS)
    (place / "plugins.toml").write_text(
        '[[connector]]\nclass = "odd_for_preview.Odd"\ntype = "source"\n\n'
        '[[transformation]]\nclass = "odd_for_preview.Fussy"\n'
    )
    return tmp_path


def properties(place: Path, **props: object) -> Path:
    place.write_text("".join(f"{key.replace('__', '.')}={value}\n" for key, value in props.items()))
    return place


def worker(folder: Path) -> Path:
    return properties(
        folder / "worker.properties",
        bootstrap__servers="unused:1",
        key__converter="StringConverter",
        value__converter="JsonConverter",
        value__converter__schemas__enable="false",
        offset__storage__file__filename=folder / "offsets",
        plugin__path=folder / "plugins",
    )


def preview(folder: Path, *arguments: object, **props: object) -> Result:
    file = properties(folder / "connector.properties", **{"name": "c", **props})
    given = ["run", "--preview", "3", "--worker", worker(folder), file, *arguments]
    return CliRunner().invoke(main, list(map(str, given)))


def odd(folder: Path, *arguments: object, **props: object) -> tuple[int, dict[str, Any]]:
    done = preview(folder, "-o", "json", *arguments, connector__class="Odd", **props)
    document: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, document


def lines(folder: Path) -> dict[str, object]:
    (folder / "in.txt").write_text("one\ntwo\nthree\n")
    return {"connector__class": "FileStreamSource", "topic": "lines", "file": folder / "in.txt"}


def values(done: Result) -> list[Any]:
    return [record["steps"][-1]["record"]["value"] for record in json.loads(done.stdout)["records"]]


def test_shows_what_would_be_produced_and_changes_nothing(folder: Path) -> None:
    hoist = {"transforms": "h", "transforms__h__type": "HoistField$Value", "transforms__h__field": "line"}
    done = preview(folder, **lines(folder), **hoist)
    assert done.exit_code == 0, done.output
    assert '  polled    topic         lines\n            value         "one"\n' in done.stdout
    assert "            value schema  string\n" in done.stdout
    assert '"one"   ->  {"line": "one"}' in done.stdout
    assert '  produced  topic  lines\n            value  {"line":"three"}' in done.stdout
    assert done.stdout.endswith("3 records; there may be more. Nothing was produced, written or committed.\n")
    assert not (folder / "offsets").exists()


def test_goes_on_after_the_stored_offsets_or_begins_anew(folder: Path) -> None:
    connector = lines(folder)
    kept = {offset_key("c", {"filename": str(folder / "in.txt")}): offset_value({"position": 4})}
    (folder / "offsets").write_bytes(write_map({key: value for key, value in kept.items() if value is not None}))
    arguments = ("-o", "json", "--timeout", 2)
    assert values(preview(folder, *arguments, **connector)) == ['"two"', '"three"']
    assert values(preview(folder, *arguments, "--from", "beginning", **connector)) == ['"one"', '"two"', '"three"']
    assert read_map((folder / "offsets").read_bytes()) == kept


def test_a_record_is_shown_before_and_after_a_plugin_that_changes_it_in_place(folder: Path) -> None:
    status, document = odd(folder, transforms="f", transforms__f__type="Fussy")
    assert status == 1
    one, two, three = (record["steps"] for record in document["records"])
    assert [step["record"]["value"] if isinstance(step["record"]["value"], str) else step["record"]["value"]["n"]
            for step in one] == [1, 10, '{"n":10,"s":"a  b"}']  # fmt: skip
    assert two[1] == {
        "step": "f",
        "plugin": "odd_for_preview.Fussy",
        "error": "two is odd",
        "outcome": "the task fails (errors.tolerance=none)",
    }
    assert three[1] == {"step": "f", "plugin": "Fussy", "dropped": True}
    assert document["records"][0]["origin"] == {"partition": {"p": 1}, "offset": {"n": 1}}


def test_says_what_becomes_of_a_record_that_fails(folder: Path) -> None:
    queue = {"errors__tolerance": "all", "errors__deadletterqueue__topic__name": "dead"}
    _, document = odd(folder, transforms="f", transforms__f__type="Fussy", **queue)
    outcome = document["records"][1]["steps"][1]["outcome"]
    assert outcome == "left out, and sent to the dead letter queue dead"


def test_shows_what_the_task_itself_gives_up(folder: Path) -> None:
    status, document = odd(folder, fault="reports")
    assert status == 1
    assert [len(record["steps"]) for record in document["records"]] == [2, 1, 2]
    assert document["records"][1]["steps"][0]["error"] == "it is odd"


def test_a_failure_is_told_after_what_came_before_it(folder: Path) -> None:
    status, document = odd(folder, fault="raises")
    assert status == 1
    assert (len(document["records"]), document["failed"], document["end"]) == (2, True, "KeyError: 'id'")
    done = preview(folder, connector__class="Odd", fault="raises")
    assert "odd_for_preview.py" in done.stdout
    assert done.stdout.endswith("2 records, then it fails: KeyError: 'id'\n")


def test_a_task_that_waits_ends_with_the_time(folder: Path) -> None:
    status, document = odd(folder, "--timeout", 0.5, fault="waits")
    assert (status, document["records"], document["end"]) == (0, [], "the time is up")


def test_a_task_that_hangs_is_told_with_the_place(folder: Path) -> None:
    status, document = odd(folder, "--timeout", 0.5, fault="hangs")
    assert (status, len(document["records"]), document["failed"]) == (1, 2, True)
    assert "the plugin has not returned" in document["end"]
    assert "time.sleep(600)" in document["trace"]


def test_secrets_are_hidden_in_records_too(folder: Path) -> None:
    _, document = odd(folder, secret="s3cret-value")
    assert "s3cret-value" not in str(document)
    assert document["records"][0]["steps"][0]["record"]["value"]["s"] == "a [hidden] b"


def test_mistakes_are_told_before_anything_is_started(folder: Path) -> None:
    done = preview(folder, connector__class="Odd", tasks__max="0", transforms="f")
    assert done.exit_code == 1
    assert "has mistakes:" in done.stderr
    assert "tasks.max" in done.stderr
    assert "transforms.f.type" in done.stderr


def test_a_converter_that_would_register_schemas_is_not_asked(folder: Path) -> None:
    registry = {"value__converter": "AvroConverter", "value__converter__schema__registry__url": "http://127.0.0.1:9"}
    done = preview(folder, "-o", "json", **lines(folder), **registry)
    assert done.exit_code == 0, done.output
    last = json.loads(done.stdout)["records"][0]["steps"][-1]
    assert last["step"] == "produced"
    assert last["note"].startswith("not converted: AvroConverter would register schemas, and a preview changes nothing")

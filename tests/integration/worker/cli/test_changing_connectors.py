"""Commands that change connectors, against a real worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    return shared_standalone()


def sluice(worker: StandaloneWorker, *arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments), "--url", worker.url()])


def written(folder: Path, name: str, **props: str) -> Path:
    (folder / "in.txt").write_text("one\ntwo\n")
    file = folder / f"{name}.json"
    config = {"connector.class": "FileStreamSource", "file": str(folder / "in.txt"), "topic": name}
    file.write_text(json.dumps({"name": name, "config": config | props}))
    return file


def test_a_connector_is_created_changed_and_brought_back(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    done = sluice(worker, "connectors", "create", written(tmp_path, topic), "--wait")
    assert (done.exit_code, done.output) == (0, f"Created {topic}.\n{topic} runs.\n")
    done = sluice(worker, "connectors", "set", topic, "batch.size=7", "--wait")
    assert done.exit_code == 0, done.output
    assert "batch.size  -       7\n" in done.output
    wait_until("the topic is known", lambda: topic in sluice(worker, "connectors", "topics", topic).output, seconds=120)
    wait_until("both are kept", lambda: len(versions(worker, topic)) == 2, seconds=120)
    assert versions(worker, topic)[0]["changes"] == [{"key": "batch.size", "before": None, "after": "7"}]
    assert sluice(worker, "connectors", "restore", topic, 1).exit_code == 0
    assert "batch.size" not in worker.get(f"connectors/{topic}/config").json()
    refused = sluice(worker, "connectors", "set", topic, "batch.size=none")
    assert refused.exit_code == 1
    assert "-> batch.size (int, by default 2000):" in refused.output
    assert "/config/validate" not in refused.output, "REST's words"
    refused = sluice(worker, "connectors", "set", topic, "name=other")
    assert refused.exit_code == 1
    assert "doesn't match connector name in the URL" in refused.output
    assert "Leave the key name out: a connector keeps its name." in refused.output


def test_what_one_file_has_wrong_is_told_with_its_remedy_and_the_others_follow(
    worker: StandaloneWorker, tmp_path: Path, topic: str
) -> None:
    wrong, broken = written(tmp_path, "wrong", **{"tasks.max": "none"}), tmp_path / "broken.json"
    broken.write_text("{oops")
    done = sluice(worker, "connectors", "create", wrong, broken, written(tmp_path, topic, **{"batch.sise": "7"}))
    assert done.exit_code == 1
    assert "The configuration of wrong has a mistake:\n  tasks.max\n" in done.output
    assert "-> tasks.max (int, by default 1): Maximum number of tasks." in done.output
    assert f"{broken} starts with a brace but is not valid JSON" in done.output
    assert f"Created {topic}." in done.output
    assert "Warning: The key batch.sise is unknown. Did you mean batch.size?" in done.output
    again = sluice(worker, "connectors", "create", tmp_path / f"{topic}.json")
    assert f"already exists. Change it with `sluice connectors edit {topic}`" in again.output
    changed = sluice(worker, "connectors", "set", topic, "task.max=1")
    assert "Warning: The key task.max is unknown. Did you mean tasks.max?" in changed.output
    assert "batch.sise" not in changed.output, "it warns of what it changed"


def test_a_change_that_changes_nothing_is_not_waited_for(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    done = sluice(worker, "connectors", "create", written(tmp_path, topic, **{"batch.size": "7"}), "--wait")
    assert done.exit_code == 0
    # Nothing restarts, so that a wait for a restart would end with status 4.
    for command in (("set", topic, "batch.size=7"), ("restore", topic, 1)):
        done = sluice(worker, "connectors", *command, "--wait", "--timeout", 10)
        assert (done.exit_code, done.output.splitlines()[-1]) == (0, f"{topic} runs.")


def test_an_address_of_the_wrong_kind_is_told_with_the_right_one(worker: StandaloneWorker) -> None:
    done = CliRunner().invoke(main, ["status", "--url", worker.url().replace("http:", "https:")])
    assert done.exit_code == 1
    assert "it does not speak TLS; use http://" in done.output


def test_a_configuration_without_its_envelope_is_told_where_it_belongs(worker: StandaloneWorker) -> None:
    flat = {"name": "flat", "connector.class": "FileStreamSource", "topic": "t"}
    answer = requests.post(f"{worker.url()}connectors", json=flat, timeout=60)
    assert answer.status_code == 400
    assert 'takes {"name": ..., "config": {...}}: move the configuration into config' in answer.json()["message"]


def test_an_edit_sends_what_was_changed_in_the_editor(
    worker: StandaloneWorker, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sluice(worker, "connectors", "create", written(tmp_path, topic, **{"batch.size": "7"})).exit_code == 0
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i -e s/batch.size=7/batch.size=8/ -e '$ a tasks.max=1' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    done = sluice(worker, "connectors", "edit", topic)
    assert done.exit_code == 0, done.output
    config = worker.get(f"connectors/{topic}/config").json()
    assert (config["batch.size"], config["tasks.max"], config["topic"]) == ("8", "1", topic)
    editor.write_text("#!/bin/sh\ntrue\n")
    assert sluice(worker, "connectors", "edit", topic).output == "Nothing was changed.\n"


def test_names_are_completed_from_the_cluster(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    assert sluice(worker, "connectors", "create", written(tmp_path, topic)).exit_code == 0
    completion = ShellComplete(main, {}, "sluice", "_SLUICE_COMPLETE")
    given = ["connectors", "show", "--url", worker.url()]
    assert [item.value for item in completion.get_completions(given, topic[:-1])] == [topic]


def versions(worker: StandaloneWorker, name: str) -> list[dict[str, object]]:
    return list(json.loads(sluice(worker, "connectors", "history", name, "-o", "json").stdout)["versions"])


def test_what_fails_is_told_by_the_exit_status(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    config = {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": topic, "connection.attempts": "1"}
    file = tmp_path / "db.json"
    place = {"connection.url": f"jdbc:sqlite:{tmp_path}/none.db"}
    file.write_text(json.dumps({"name": topic, "config": config | place}))
    done = sluice(worker, "connectors", "create", file, "--wait")
    assert done.exit_code == 3
    assert f"{topic} has failed: " in done.output
    assert "none.db does not exist" in done.output


def test_one_that_is_missing_does_not_keep_the_others(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    assert sluice(worker, "connectors", "create", written(tmp_path, topic), "--wait").exit_code == 0
    done = sluice(worker, "connectors", "restart", f"{topic}x", topic, "--wait")
    assert done.exit_code == 1
    assert f"There is no connector {topic}x; did you mean {topic}?" in done.output
    assert f"{topic} runs" in done.output
    done = sluice(worker, "connectors", "stop", topic, f"{topic}x")
    assert done.exit_code == 1
    wait_until("it has stopped", lambda: worker.status(topic)["connector"]["state"] == "STOPPED", seconds=120)


def test_offsets_of_a_source_are_set_and_deleted(worker: StandaloneWorker, tmp_path: Path, topic: str) -> None:
    assert sluice(worker, "connectors", "create", written(tmp_path, topic), "--wait").exit_code == 0
    place = json.dumps({"filename": str(tmp_path / "in.txt")})

    def kept() -> list[dict[str, object]]:
        return list(worker.get(f"connectors/{topic}/offsets").json()["offsets"])

    wait_until("the offset is stored", kept, seconds=120)
    refused = sluice(worker, "offsets", "set", topic, "--partition", place, "--offset", '{"position": 4}')
    assert refused.exit_code == 1
    assert "sluice connectors stop" in refused.output
    assert sluice(worker, "connectors", "stop", topic).exit_code == 0
    done = sluice(worker, "offsets", "set", topic, "--partition", place, "--offset", '{"position": 4}')
    assert done.exit_code == 0, done.output
    assert kept() == [{"partition": json.loads(place), "offset": {"position": 4}}]
    assert sluice(worker, "offsets", "delete", topic, "--yes").exit_code == 0
    assert kept() == []
    wrong = sluice(worker, "offsets", "set", topic, "--partition", "4", "--offset", "{}")
    assert (wrong.exit_code, "4 is not a JSON object" in wrong.output) == (2, True)


def test_log_levels_are_shown_and_set(worker: StandaloneWorker) -> None:
    done = sluice(worker, "loggers", "set", "connectors.jdbc", "debug")
    assert done.exit_code == 0, done.output
    rows = sluice(worker, "loggers", "list").output.splitlines()
    assert any(row.split()[:2] == ["connectors.jdbc", "DEBUG"] for row in rows)

"""The commands ``sluice connectors`` and ``sluice status``, asked of a real worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from click.testing import CliRunner, Result

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

SECRET = "correct horse battery staple"


@pytest.fixture
def worker(standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str) -> StandaloneWorker:
    create_topic(bootstrap, topic)
    return standalone().start()


def sluice(worker: StandaloneWorker, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--url", worker.url()])


def done(worker: StandaloneWorker, *arguments: str) -> str:
    result = sluice(worker, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def state(worker: StandaloneWorker, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(done(worker, "connectors", "show", name, "-o", "json"))["status"]
    return shown


def is_in(worker: StandaloneWorker, name: str, connector: str, *tasks: str) -> bool:
    found = state(worker, name)
    return (found["connector"]["state"], [task["state"] for task in found["tasks"]]) == (connector, list(tasks))


def properties(folder: Path, **props: str) -> str:
    file = folder / f"{props['name']}.properties"
    file.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in props.items()))
    return str(file)


def test_the_life_of_a_connector(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    assert "There are no connectors. Create one" in done(worker, "connectors", "list")
    (tmp_path / "in.txt").write_text("hello\n")
    lines = {"connector_class": "FileStreamSource", "file": str(tmp_path / "in.txt"), "topic": topic}
    created = done(worker, "connectors", "create", properties(tmp_path, name="lines", **lines))
    assert created.startswith("Created lines.")
    wait_until("it runs", lambda: is_in(worker, "lines", "RUNNING", "RUNNING"), 60)
    header, row = done(worker, "connectors", "list").splitlines()
    assert header.split() == ["NAME", "TYPE", "STATE", "TASKS", "WORKER", "CAUSE"]
    assert row.split()[:5] == ["lines", "source", "RUNNING", "1", "RUNNING"]
    assert [each["name"] for each in yaml.safe_load(done(worker, "connectors", "list", "-o", "yaml"))] == ["lines"]
    shown = done(worker, "connectors", "show", "lines")
    assert f"topic            {topic}" in shown.splitlines()
    done(worker, "connectors", "pause", "lines")
    wait_until("it is paused", lambda: is_in(worker, "lines", "PAUSED", "PAUSED"), 60)
    done(worker, "connectors", "resume", "lines")
    wait_until("it runs again", lambda: is_in(worker, "lines", "RUNNING", "RUNNING"), 60)
    assert done(worker, "connectors", "restart", "lines", "--task", "0") == "Restarted task 0 of lines.\n"
    assert done(worker, "connectors", "restart", "lines") == "Restarted lines.\n"
    done(worker, "connectors", "stop", "lines")
    wait_until("it is stopped", lambda: is_in(worker, "lines", "STOPPED"), 60)
    assert (
        CliRunner().invoke(main, ["connectors", "delete", "lines", "--url", worker.url()], input="n\n").exit_code == 1
    )
    assert done(worker, "connectors", "delete", "lines", "--yes") == "Deleted lines.\n"
    gone = sluice(worker, "connectors", "show", "lines")
    assert (gone.exit_code, gone.output) == (
        1,
        "Error: There is no connector lines; `sluice connectors list` lists those there are.\n",
    )


def test_what_has_failed_is_told_with_its_cause(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    assert done(worker, "status").splitlines()[1:] == ["Connectors  none", "Tasks       none"]
    out = {"connector_class": "FileStreamSink", "file": str(tmp_path / "no" / "out.txt"), "topics": topic}
    done(worker, "connectors", "create", properties(tmp_path, name="out", **out))
    wait_until("it has failed", lambda: is_in(worker, "out", "RUNNING", "FAILED"), 60)
    told = sluice(worker, "status")
    assert told.exit_code == 3
    lines = told.output.splitlines()
    assert lines[1:3] == ["Connectors  1 RUNNING", "Tasks       1 FAILED"]
    (failed,) = [line for line in lines if line.startswith("out ")]
    assert "no/out.txt" in failed
    document = json.loads(sluice(worker, "status", "-o", "json").output)
    assert [(each["connector"], each["task"]) for each in document["failed"]] == [("out", 0)]
    assert document["tasks"] == {"FAILED": 1}
    assert "no/out.txt" in done(worker, "connectors", "list")
    assert "Traceback" in done(worker, "connectors", "show", "out")
    (tmp_path / "no").mkdir()
    done(worker, "connectors", "restart", "out", "--failed")
    wait_until("it runs", lambda: is_in(worker, "out", "RUNNING", "RUNNING"), 60)
    wait_until("all is well", lambda: sluice(worker, "status").exit_code == 0, 60)


def test_the_log_of_a_connector_hides_its_secrets(
    standalone: Callable[..., StandaloneWorker], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "folder").write_text(SECRET)
    providers = {
        "config_providers": "dir",
        "config_providers_dir_class": "DirectoryConfigProvider",
        "config_providers_dir_param_allowed_paths": str(tmp_path / "secrets"),
    }
    worker = standalone(**providers).start()
    create_topic(bootstrap, topic)
    file = f"{tmp_path}/${{dir:{tmp_path}/secrets:folder}}/out.txt"
    config = {"connector_class": "FileStreamSink", "file": file, "topics": topic}
    done(worker, "connectors", "create", properties(tmp_path, name="out", **config))
    wait_until("it has failed", lambda: is_in(worker, "out", "RUNNING", "FAILED"), 60)
    told = done(worker, "connectors", "logs", "out")
    assert "[out|task-0] The task failed" in told
    assert "[hidden]" in told
    assert SECRET not in told + worker.log() + sluice(worker, "status").output


def test_what_a_worker_logs_of_a_connector_can_be_read(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        config = {"connector_class": "FileStreamSink", "file": str(tmp_path / "no" / name), "topics": topic}
        done(worker, "connectors", "create", properties(tmp_path, name=name, **config))
        wait_until("it has failed", lambda name=name: is_in(worker, name, "RUNNING", "FAILED"), 60)
    shown = done(worker, "connectors", "logs", "one")
    assert "[one|task-0] The task failed" in shown
    assert "two" not in shown.replace("two_topic", "")
    answer = requests.get(f"{worker.url()}connectors/one/logs", timeout=60).json()
    again = requests.get(f"{worker.url()}connectors/one/logs", params={"after": answer["next"]}, timeout=60).json()
    assert again["lines"] == []
    assert requests.get(f"{worker.url()}connectors/one/logs?after=x", timeout=60).status_code == 400
    assert (
        sluice(worker, "connectors", "logs", "nobody").output
        == "Error: There is no connector nobody; `sluice connectors list` lists those there are.\n"
    )


def test_a_worker_that_is_not_there_is_told_in_plain_words() -> None:
    told = CliRunner().invoke(main, ["status", "--url", "http://127.0.0.1:1"])
    assert told.exit_code == 1
    assert told.output.startswith("Error: No worker answers at http://127.0.0.1:1: Connection refused. Is one running?")

"""``sluice apply`` against a real worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shared_worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    return shared_standalone()


@pytest.fixture
def worker(shared_worker: StandaloneWorker) -> Iterator[StandaloneWorker]:
    """A worker without connectors. Those of the test are deleted after it."""
    yield shared_worker
    for name in shared_worker.get("connectors").json():
        requests.delete(f"{shared_worker.url()}connectors/{name}", timeout=60).raise_for_status()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "connectors"
    place.mkdir()
    return place


def apply(worker: StandaloneWorker, folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["apply", str(folder), "--url", worker.url(), *arguments])


def actions(done: Result) -> dict[str, str]:
    return {item["name"]: item["action"] for item in json.loads(done.stdout)}


def config(worker: StandaloneWorker, name: str) -> dict[str, str]:
    return dict(worker.get(f"connectors/{name}/config").json())


def source(folder: Path, name: str, **props: str) -> dict[str, str]:
    file = folder.parent / "in.txt"
    file.touch()
    return {"name": name, "connector.class": "FileStreamSource", "file": str(file), "topic": name, **props}


def test_makes_the_cluster_what_the_folder_says(worker: StandaloneWorker, folder: Path, topic: str) -> None:
    one, two = f"{topic}-1", f"{topic}-2"
    properties = "".join(f"{key}={value}\n" for key, value in source(folder, one).items())
    (folder / "one.properties").write_text(properties)
    wrapped = {"name": two, "config": source(folder, two), "state": "stopped"}
    (folder / "two.json").write_text(json.dumps(wrapped))

    planned = apply(worker, folder, "--dry-run", "-o", "json")
    assert (planned.exit_code, actions(planned)) == (3, {one: "create", two: "create"})
    assert worker.get("connectors").json() == []

    done = apply(worker, folder)
    assert done.exit_code == 0, done.output
    assert f"create     {two} (STOPPED)\n" in done.output
    assert done.output.endswith("2 connectors changed.\n")
    worker.wait_for_states(one, "RUNNING", "RUNNING")
    worker.wait_for_states(two, "STOPPED")
    assert config(worker, one) == source(folder, one)

    again = apply(worker, folder, "--dry-run")
    assert (again.exit_code, again.output) == (0, f"unchanged  {one}, {two}\n")
    assert apply(worker, folder).exit_code == 0

    (folder / "one.properties").write_text(f"{properties}batch.size=7\n".replace(f"topic={one}\n", f"topic={two}\n"))
    (folder / "two.json").write_text(json.dumps(wrapped | {"state": "running"}))
    changed = apply(worker, folder)
    assert changed.exit_code == 0, changed.output
    assert f"update     {one}\n  + batch.size = 7\n  ~ topic = {one} -> {two}\n" in changed.output
    assert f"state      {two}: STOPPED -> RUNNING\n" in changed.output
    assert config(worker, one) == source(folder, one, **{"batch.size": "7", "topic": two})
    worker.wait_for_states(two, "RUNNING", "RUNNING")

    (folder / "two.json").unlink()
    assert actions(apply(worker, folder, "-o", "json")) == {one: "none"}
    pruned = apply(worker, folder, "--prune")
    assert pruned.exit_code == 0, pruned.output
    assert f"delete     {two}\n" in pruned.output
    wait_until("it is gone", lambda: worker.get("connectors").json() == [one])


def test_nothing_is_changed_if_any_file_is_wrong(worker: StandaloneWorker, folder: Path, topic: str) -> None:
    (folder / "right.json").write_text(json.dumps(source(folder, f"{topic}-1")))
    wrong = source(folder, f"{topic}-2", **{"tasks.max": "x", "transforms": "a", "transforms.a.type": "Nothing"})
    (folder / "wrong.json").write_text(json.dumps(wrong))
    (folder / "unknown.json").write_text(json.dumps({"name": f"{topic}-3", "connector.class": "NoSuchSource"}))
    done = apply(worker, folder)
    assert done.exit_code == 1
    assert f"wrong.json ({topic}-2):\n  tasks.max\n" in done.stderr
    assert "  transforms.a.type\n" in done.stderr
    assert "which name matches NoSuchSource" in done.stderr
    assert done.stderr.endswith("Error: 2 files have mistakes; nothing was changed.\n")
    assert worker.get("connectors").json() == []


def test_secrets_are_hidden_in_the_difference(worker: StandaloneWorker, folder: Path, topic: str) -> None:
    given = source(folder, topic, **{"producer.override.sasl.jaas.config": _LOGIN.format("s3cret-1")})
    (folder / "a.json").write_text(json.dumps(given))
    first = apply(worker, folder)
    assert first.exit_code == 0, first.output
    given["producer.override.sasl.jaas.config"] = _LOGIN.format("s3cret-2")
    (folder / "a.json").write_text(json.dumps(given))
    second = apply(worker, folder)
    assert "  ~ producer.override.sasl.jaas.config = [hidden] -> [hidden]\n" in second.output
    assert "s3cret" not in first.output + second.output
    assert config(worker, topic) == given


_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'


def test_an_empty_folder_deletes_nothing(worker: StandaloneWorker, folder: Path, topic: str) -> None:
    (folder / "a.json").write_text(json.dumps(source(folder, topic)))
    assert apply(worker, folder).exit_code == 0
    (folder / "a.json").unlink()
    done = apply(worker, folder, "--prune")
    assert done.exit_code == 1
    assert "describes no connector, so --prune would delete all of them" in done.output
    assert worker.get("connectors").json() == [topic]


def test_a_worker_that_does_not_answer_is_told(folder: Path) -> None:
    (folder / "a.json").write_text(json.dumps(source(folder, "a")))
    done = CliRunner().invoke(main, ["apply", str(folder), "--url", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "No worker answers at http://127.0.0.1:9" in done.output

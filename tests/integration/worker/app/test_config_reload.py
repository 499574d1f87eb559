"""Values of config providers that hold for a time only: what has them is restarted and goes on with the new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.integration

TTL = "4000"
REFERENCES = {"file": "${file:FOLDER/topics.properties:topic}", "directory": "${directory:FOLDER:topic}"}


@pytest.fixture(params=[StandaloneWorker, DistributedWorker], ids=["standalone", "distributed"])
def worker(request: pytest.FixtureRequest, topic: str, tmp_path: Path, bootstrap: str) -> Iterator[StandaloneWorker]:
    """A worker whose providers give values that soon expire."""
    made: StandaloneWorker = request.param(
        tmp_path / topic,
        bootstrap,
        config_providers="file,directory",
        config_providers_file_class="FileConfigProvider",
        config_providers_file_param_ttl_ms=TTL,
        config_providers_directory_class="DirectoryConfigProvider",
        config_providers_directory_param_ttl_ms=TTL,
    )
    try:
        yield made.start()
    finally:
        made.close()


@pytest.mark.parametrize("provider", REFERENCES)
def test_a_task_goes_on_with_the_new_value(
    worker: StandaloneWorker, provider: str, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    give(tmp_path, f"{topic}-old")
    reference = REFERENCES[provider].replace("FOLDER", str(tmp_path))
    source = tmp_path / "in.txt"
    source.write_text("before\n")
    create(worker, "moves", file=str(source), topic=reference)
    create(worker, "stays", file=str(source), topic=reference, config_action_reload="none")
    wait_until("the old topic has it from both", lambda: lines(bootstrap, f"{topic}-old") == ["before"] * 2)
    staying = worker.task_pid("stays")

    give(tmp_path, f"{topic}-new")
    restarts = restarts_of(worker, "moves|task-0")
    # The first restart may have been decided with the old value.
    wait_until("the task was restarted twice since", lambda: restarts_of(worker, "moves|task-0") > restarts + 1, 60)
    with source.open("a") as stream:
        stream.write("after\n")
    wait_until("the new topic has it", lambda: lines(bootstrap, f"{topic}-new") == ["after"], 60)
    wait_until("the other has it in the old one", lambda: lines(bootstrap, f"{topic}-old")[2:] == ["after"])

    assert worker.task_pid("stays") == staying
    assert restarts_of(worker, "moves|worker") > 0, "the connector is restarted, too"
    assert restarts_of(worker, "stays|worker") == restarts_of(worker, "stays|task-0") == 0
    assert worker.get("connectors/moves/config").json()["topic"] == reference
    worker.wait_for_states("stays", "RUNNING", "RUNNING")


def test_a_connector_cannot_have_the_files_of_the_worker(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    file = worker.folder / "worker.properties"
    (tmp_path / "link").symlink_to(file)
    for path in (file, tmp_path / "link", "/proc/self/environ"):
        config = {
            "connector.class": "FileStreamSource",
            "file": "/dev/null",
            "topic": f"${{file:{path}:bootstrap.servers}}",
        }
        answer = requests.post(f"{worker.url()}connectors", json={"name": f"spy-{topic}", "config": config}, timeout=30)
        assert answer.status_code >= 400
        assert "is not allowed to be accessed" in answer.text
    assert worker.log().count("Set config.providers.file.param.allowed.paths") == 1


def test_a_connector_without_references_any_more_is_left_alone(
    worker: StandaloneWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    give(tmp_path, topic)
    source = tmp_path / "in.txt"
    source.write_text("before\n")
    reference = REFERENCES["file"].replace("FOLDER", str(tmp_path))
    create(worker, "settled", file=str(source), topic=reference)
    create(worker, "restless", file=str(source), topic=reference)
    wait_until("it is restarted", lambda: restarts_of(worker, "settled|task-0") > 0)
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": f"{topic}-fixed"}
    requests.put(f"{worker.url()}connectors/settled/config", json=config, timeout=30).raise_for_status()

    def arrives() -> bool:
        with source.open("a") as stream:
            stream.write("after\n")
        return "after" in lines(bootstrap, f"{topic}-fixed")

    wait_until("it has its new configuration", arrives)
    settled, restless = (restarts_of(worker, name) for name in ("settled|task-0", "restless|task-0"))
    wait_until("others are restarted", lambda: restarts_of(worker, "restless|task-0") > restless + 1)
    assert restarts_of(worker, "settled|task-0") == settled


def test_a_killed_worker_looks_everything_up_again(
    standalone: Callable[..., StandaloneWorker], topic: str, tmp_path: Path, bootstrap: str
) -> None:
    providers = {"config_providers": "file", "config_providers_file_class": "FileConfigProvider"}
    worker = standalone(**providers, config_providers_file_param_ttl_ms="3600000")
    source = tmp_path / "in.txt"
    source.write_text("before\n")
    give(tmp_path, f"{topic}-old")
    reference = REFERENCES["file"].replace("FOLDER", str(tmp_path))
    worker.connector("killed", connector_class="FileStreamSource", file=str(source), topic=reference)
    worker.start()
    wait_until("the old topic has it", lambda: lines(bootstrap, f"{topic}-old") == ["before"])
    wait_until("its offset is kept", lambda: worker.get("connectors/killed/offsets").json()["offsets"])
    worker.kill()
    give(tmp_path, f"{topic}-new")
    with source.open("a") as stream:
        stream.write("after\n")
    worker.start()
    wait_until("the new topic has it", lambda: lines(bootstrap, f"{topic}-new") == ["after"], 60)


def lines(bootstrap: str, topic: str) -> list[str]:
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def give(folder: Path, topic: str) -> None:
    """Change what both providers have."""
    (folder / "topics.properties").write_text(f"topic={topic}\n")
    (folder / "topic").write_text(topic)


def create(worker: StandaloneWorker, name: str, **config: str) -> None:
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    body = {"name": name, "config": {"connector.class": "FileStreamSource", **dotted}}
    post: Callable[[], requests.Response] = lambda: requests.post(  # noqa: E731
        f"{worker.url()}connectors", json=body, timeout=30
    )
    wait_until(f"{name} is created", lambda: post().status_code == 201)


def restarts_of(worker: StandaloneWorker, unit: str) -> int:
    return len(re.findall(rf"{re.escape(unit)} is restarted: its config has expired", worker.log()))

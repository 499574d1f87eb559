"""Values of config providers that hold for a time only: what has them is restarted and goes on with the new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker

pytestmark = pytest.mark.integration

TTL = "2000"
REFERENCES = {"file": "${file:FOLDER/topics.properties:topic}", "directory": "${directory:FOLDER:topic}"}


@pytest.fixture(scope="module", params=[StandaloneWorker, DistributedWorker], ids=["standalone", "distributed"])
def shared_worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, bootstrap: str
) -> Iterator[StandaloneWorker]:
    made: StandaloneWorker = request.param(
        tmp_path_factory.mktemp("reload") / f"reload-{uuid4().hex[:12]}",
        bootstrap,
        **LONG_SESSIONS,
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


@pytest.fixture
def worker(shared_worker: StandaloneWorker) -> Iterator[StandaloneWorker]:
    """A worker whose providers give values that soon expire. The connectors of the test are deleted after it."""
    yield shared_worker
    for name in shared_worker.get("connectors").json():
        wait_until(f"{name} is deleted", lambda name=name: delete(shared_worker, name))  # type: ignore[misc]


def test_a_task_goes_on_with_the_new_value(
    worker: StandaloneWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    """A connector of each provider moves to the topic that it has now; beside it stays one that is not to."""
    give(tmp_path, f"{topic}-old")
    source = tmp_path / "in.txt"
    source.write_text("before\n")
    moving, staying = [f"moves-{provider}" for provider in REFERENCES], [f"stays-{provider}" for provider in REFERENCES]
    references = {name: REFERENCES[name.split("-")[1]].replace("FOLDER", str(tmp_path)) for name in moving + staying}
    for name in moving:
        create(worker, name, file=str(source), topic=references[name])
    for name in staying:
        create(worker, name, file=str(source), topic=references[name], config_action_reload="none")
    wait_until("the old topic has it from all", lambda: lines(bootstrap, f"{topic}-old") == ["before"] * 4)
    processes = {name: worker.task_pid(name) for name in staying}

    give(tmp_path, f"{topic}-new")
    before = {name: restarts_of(worker, f"{name}|task-0") for name in moving}
    # The first restart may have been decided with the old value.
    for name in moving:
        wait_until(f"{name} was restarted twice", lambda n=name: restarts_of(worker, f"{n}|task-0") > before[n] + 1, 60)
    with source.open("a") as stream:
        stream.write("after\n")
    wait_until("the new topic has it", lambda: lines(bootstrap, f"{topic}-new") == ["after"] * 2, 60)
    wait_until("the others have it in the old one", lambda: lines(bootstrap, f"{topic}-old")[4:] == ["after"] * 2)

    for name in moving:
        assert restarts_of(worker, f"{name}|worker") > 0, "the connector is restarted, too"
        assert worker.get(f"connectors/{name}/config").json()["topic"] == references[name]
    for name, process in processes.items():
        assert worker.task_pid(name) == process
        assert restarts_of(worker, f"{name}|worker") == restarts_of(worker, f"{name}|task-0") == 0
        worker.wait_for_states(name, "RUNNING", "RUNNING")


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


def delete(worker: StandaloneWorker, name: str) -> bool:
    return requests.delete(f"{worker.url()}connectors/{name}", timeout=30).status_code in (204, 404)


def restarts_of(worker: StandaloneWorker, unit: str) -> int:
    return len(
        re.findall(rf"{re.escape(unit)} is restarted: the values of its config providers have expired", worker.log())
    )

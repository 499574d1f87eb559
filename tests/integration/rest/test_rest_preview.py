"""Previews that a running worker gives over REST, of what is deployed and of what is not: they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from equipment.brokers.topics import committed, create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    worker = StandaloneWorker(tmp_path_factory.mktemp("preview"), bootstrap).start()
    try:
        yield worker
    finally:
        worker.close()


def deploy(worker: StandaloneWorker, name: str, config: dict[str, str], state: str = "RUNNING") -> None:
    body = {"name": name, "config": config, "initial_state": state}
    made = requests.post(f"{worker.url()}connectors", json=body, timeout=60)
    assert made.status_code == 201, made.text


def asked(worker: StandaloneWorker, path: str, config: dict[str, str] | None = None, **query: str | int) -> Any:
    answer = requests.post(f"{worker.url()}{path}", json=config, params=query, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()


def values(document: Any) -> list[Any]:
    return [record["steps"][-1]["record"]["value"] for record in document["records"]]


def test_a_running_source_goes_on_where_its_stored_offsets_are(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    deploy(worker, topic, config)

    def offset() -> int:
        offsets = worker.get(f"connectors/{topic}/offsets").json()["offsets"]
        return offsets[0]["offset"]["position"] if offsets else 0

    wait_until("both lines are committed", lambda: offset() == 8)
    assert requests.put(f"{worker.url()}connectors/{topic}/stop", timeout=60).status_code == 204
    wait_until("its task has ended", lambda: not worker.get(f"connectors/{topic}/status").json()["tasks"])
    with file.open("a") as lines:
        lines.write("three\n")
    document = asked(worker, f"connectors/{topic}/preview", limit=1, seconds=20)
    assert (document["name"], values(document), document["tables"]) == (topic, ["three"], [])
    assert (document["end"], document["failed"], document["trace"]) == ("there may be more", False, None)
    beginning = asked(worker, f"connectors/{topic}/preview", limit=3, seconds=20, **{"from": "beginning"})
    assert values(beginning) == ["one", "two", "three"]
    assert offset() == 8
    arguments = ["connectors", "preview", topic, "--limit", "1", "--timeout", "20", "--url", worker.url()]
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0, shown.output
    assert "three" in shown.stdout
    assert shown.stdout.endswith("1 record; there may be more. Nothing was produced, written or committed.\n")


def test_a_sink_that_is_not_deployed_is_shown_what_it_would_be_given(
    worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b'{"id": 1, "card": "4111"}', b"no json"])
    config = {
        "name": topic,
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "transforms": "hide",
        "transforms.hide.type": "ReplaceField$Value",
        "transforms.hide.exclude": "card",
    }
    document = asked(worker, "connector-plugins/FileStreamSink/config/preview", config)
    one, two = document["records"]
    assert [step["step"] for step in one["steps"]] == ["consumed", "converted", "hide", "put"]
    assert one["steps"][1]["record"]["value"] == {"id": 1, "card": "4111"}
    assert one["steps"][3]["record"]["value"] == {"id": 1}
    assert two["steps"][1]["outcome"] == "left out (errors.tolerance=all)"
    assert document["end"] == "that is all there is"
    assert not (tmp_path / "out.txt").exists()
    assert committed(bootstrap, f"connect-{topic}", topic) == [-1001]
    assert topic not in worker.get("connectors").json()


def test_a_record_of_many_bytes_is_cut(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("short\n" + "x" * 5000 + "\nnot shown\n")
    config = {"name": topic, "connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    document = asked(
        worker, "connector-plugins/FileStreamSource/config/preview", config, bytes=2048, seconds=20, limit=3
    )
    assert values(document) == ["short", "x" * 100 + "… (5000 characters)"]
    assert document["records"][1]["cut"]
    assert document["end"] == "what is shown has reached its limit of bytes, and there may be more"

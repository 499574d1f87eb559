"""A task whose schema registry answers nobody fails, whatever it tolerates, and loses nothing by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connect.data import Schema
from converters.avro import AvroConverter
from equipment.brokers.topics import committed, create_topic, produce, read_topic
from equipment.fakes.schema_registry import MemoryRegistry, serving
from equipment.scripts.tasks import RunningTask
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[[str], RunningTask]
TOLERANT = {
    "errors.tolerance": "all",
    "errors.retry.timeout": "-1",
    "value.converter": "AvroConverter",
    "value.converter.max.retries": "0",
}


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    with serving(MemoryRegistry()) as memory:
        yield memory


@pytest.fixture
def start(bootstrap: str, topic: str, tmp_path: Path, registry: MemoryRegistry) -> Iterator[Start]:
    """Starts a task that moves lines between the file ``lines`` and the topic."""
    running: list[RunningTask] = []

    def start_task(kind: str) -> RunningTask:
        own = {"topic": topic} if kind == "FileStreamSource" else {"topics": topic}
        url = registry.url.replace("//", "//me:s3cr%2Ft@")
        connector = {"name": topic, "connector.class": kind, "file": str(tmp_path / "lines"), **own, **TOLERANT}
        running.append(RunningTask(bootstrap, connector | {"value.converter.schema.registry.url": url}))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


def written(registry: MemoryRegistry, topic: str) -> list[bytes]:
    converter = AvroConverter.configured({"schema.registry.url": registry.url})
    made = [converter.from_connect(topic, Schema.string(), text) for text in ("one", "two")]
    converter.close()
    return [message for message in made if message is not None]


def text_of(folder: Path) -> str:
    lines = folder / "lines"
    return lines.read_text() if lines.exists() else ""


@pytest.mark.parametrize("status", [401, 403])
def test_a_sink_reads_all_once_it_is_let_in(
    start: Start, registry: MemoryRegistry, bootstrap: str, topic: str, tmp_path: Path, status: int
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, written(registry, topic))
    registry.authorization, registry.refusal = "Basic of another", status
    refused = start("FileStreamSink")
    trace = refused.trace()
    assert f"refuses the client (HTTP status {status})" in trace
    assert "s3cr" not in trace
    assert committed(bootstrap, f"connect-{topic}", topic) == [-1001]
    registry.authorization = None
    start("FileStreamSink")
    wait_until("all is written", lambda: text_of(tmp_path) == "one\ntwo\n")


def test_a_sink_leaves_out_what_the_registry_does_not_know(
    start: Start, registry: MemoryRegistry, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    one, two = written(registry, topic)
    produce(bootstrap, topic, [one, b"\0\0\0\0\x63\x02", two])
    start("FileStreamSink")
    wait_until("the others are written", lambda: text_of(tmp_path) == "one\ntwo\n")


def test_a_source_writes_all_once_it_is_let_in(
    start: Start, registry: MemoryRegistry, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    (tmp_path / "lines").write_text("one\ntwo\n")
    registry.authorization = "Basic of another"
    refused = start("FileStreamSource")
    assert "refuses the client (HTTP status 401)" in refused.trace()
    assert refused.seen(messages.CommitOffsets) == []
    registry.authorization = None
    start("FileStreamSource")
    wait_until("all is produced", lambda: len(read_topic(bootstrap, topic)) == 2)

"""A worker to view its web page: a real herder and a real server, whose connectors only report that they run.

Configurations are validated by the real plugins. ``python -m equipment.workers.page_worker`` serves one.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from connect.internals.plugins import PluginRegistry
from equipment.stores.versions import MemoryVersionStore
from equipment.waiting import wait_until
from rest.access.guards import NO_GUARDS, Guards
from rest.app import create_app
from rest.client import RestClient
from rest.server.server import RestServer
from rest.ui.web_page import PageSettings
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.messages.messages import OffsetPairs, Report, decode, encode
from worker.recent_log import RecentLog
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Link
from worker.security.redaction import Redaction
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore
from worker.stores.versions.service import VersionService
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

__all__ = ["BEYOND_DOUBLES", "SECRET", "PageWorker", "demo_connectors"]

SECRET = "hunter2-and-more"
BEYOND_DOUBLES = 9_007_199_254_740_993
"""An offset that a JavaScript number cannot hold."""

_FAILURE = """Traceback (most recent call last):
  File "plugin.py", line 3, in put
    raise ValueError("<img src=x onerror=alert(1)> is no number")
ValueError: <img src=x onerror=alert(1)> is no number
"""
_LETTER: dict[str, Any] = {
    "partition": 0,
    "timestamp": 1_790_000_000_000,
    "key": {"text": "k"},
    "value": {"text": "<b>not JSON</b>"},
    "headers": [{"key": "trace", "value": {"text": "abc"}}],
    "error": {
        "topic": "orders",
        "partition": 3,
        "offset": BEYOND_DOUBLES,
        "source_partition": None,
        "source_offset": None,
        "connector": "orders-sink",
        "task": 0,
        "stage": "VALUE_CONVERTER",
        "class": "JsonConverter",
        "exception": "DataError",
        "message": "the value is not JSON",
        "stacktrace": _FAILURE,
    },
}


_FORMS: dict[str, Any] = {
    "key": {"text": "k", "base64": "aw==", "json": None, "no_json": "it has no schema"},
    "value": {"text": "<b>not JSON</b>", "base64": "PGI+bm90IEpTT048L2I+", "json": None, "no_json": "it has no schema"},
    "headers": [{"key": "trace", "value": {"text": "abc"}}],
}
_PREVIEWED: dict[str, Any] = {
    "task": None,
    "origin": {"topic": "orders", "partition": 0, "offset": BEYOND_DOUBLES},
    "steps": [
        {"step": "consumed", "record": {"value": '{"id": 1, "card": "4111"}', "headers": []}},
        {"step": "converted", "record": {"value": {"id": 1, "card": "4111"}, "headers": []}},
        {"step": "hide", "plugin": "ReplaceField$Value", "record": {"value": {"id": 1}, "headers": []}},
        {"step": "put", "error": "<b>no table</b>", "outcome": "the task fails (errors.tolerance=none)"},
    ],
}
_TABLE: dict[str, Any] = {
    "table": "lake.orders",
    "place": "s3://lake/orders",
    "folders": ["day=1"],
    "columns": [{"name": "id", "type": "int64"}, {"name": "note", "type": "string?"}],
    "rows": [{"id": 1, "note": None}],
}


class PageWorker:
    """A worker on its own port. ``stopped`` has the configurations of sinks that exist at the start, stopped;
    ``guards`` decide who may do what, ``configs`` stores configurations, and ``plugins`` are folders of its own.
    """

    def __init__(
        self,
        port: int = 0,
        page: PageSettings = PageSettings(),  # noqa: B008 - it cannot be changed
        stopped: Mapping[str, Mapping[str, str]] | None = None,
        guards: Callable[[Herder], Guards] = lambda _: NO_GUARDS,
        configs: MemoryConfigStore | None = None,
        plugins: Sequence[Path] = (),
    ) -> None:
        configs = configs or MemoryConfigStore()
        for name, config in (stopped or {}).items():
            configs.put_connector(name, {"name": name, **config}, TargetState.STOPPED, plugin_type="sink")
        self.statuses = MemoryStatusStore()
        self.recent = RecentLog()
        self._server = RestServer([f"http://127.0.0.1:{port}"])
        self.herder = Herder(
            WorkerSettings(_WORKER | {"plugin.path": ",".join(map(str, plugins))}, f"127.0.0.1:{self._server.port}"),
            Stores(configs, self.statuses, _Offsets(), VersionService(MemoryVersionStore())),
            Inbox(),
            SoloMembership(),
            lambda notify: Supervisor(ThreadLauncher(_child), notify, lambda *_: None, 5.0),
            PluginRegistry.discover(plugins),
        )
        self.herder.start()
        self._server.answer_with(
            create_app(
                self.herder,
                "cluster-of-a-test",
                recent=self.recent,
                worker_id=f"127.0.0.1:{self._server.port}",
                page=page,
                guards=guards(self.herder),
            )
        )
        self.url = f"http://127.0.0.1:{self._server.port}"
        self.client = RestClient(self.url)

    def close(self) -> None:
        """Stop it like a worker that dies: it refuses connections."""
        self._server.close()
        self.herder.close()


def demo_connectors(client: RestClient, folder: Path) -> None:
    """Create connectors in every state."""
    for name, config, state in (
        ("orders-sink", _SINK, "RUNNING"),
        ("lines", {"connector.class": "FileStreamSource", "file": str(folder / "i"), "topic": "lines"}, "RUNNING"),
        ("<script>alert(1)</script>", {**_SOURCE, "test.fails": "true"}, "RUNNING"),
        ("a/b", {**_SOURCE}, "PAUSED"),
        ("resting", {"connector.class": "FileStreamSink", "file": str(folder / "r"), "topics": "r"}, "STOPPED"),
        (
            "customers",
            {
                "connector.class": "JdbcSource",
                "connection.url": f"postgresql://ann:{SECRET}@db/customers",
                "connection.password": SECRET,
                "mode": "bulk",
                "topic.prefix": "customers-",
                "producer.override.sasl.jaas.config": _JAAS,
            },
            "STOPPED",
        ),
    ):
        client.post("/connectors", {"name": name, "config": config, "initial_state": state})
        reached = "FAILED" if "test.fails" in config else state
        wait_until(f"{name} is {reached}", lambda name=name, reached=reached: reached in _states(client, name))


def _states(client: RestClient, name: str) -> set[str]:
    """The states of a connector and its tasks."""
    status = client.get("/connectors?expand=status").get(name, {}).get("status")
    return {unit["state"] for unit in (status["connector"], *status["tasks"])} if status else set()


_WORKER = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
}
_SINK = {
    "connector.class": "FileStreamSink",
    "file": "/tmp/out",
    "topics": "orders",
    "tasks.max": "2",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "orders-dlq",
    "errors.deadletterqueue.context.headers.enable": "true",
}
_JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{SECRET}";'
_SOURCE = {"connector.class": "FileStreamSource", "file": "/tmp/in", "topic": "t"}


class _Offsets:
    """The source offsets of every connector: one partition with a large offset."""

    def of_connector(self, _connector: str) -> Future[OffsetPairs]:
        return _done([({"filename": "/tmp/in"}, {"position": BEYOND_DOUBLES})])

    def alter(self, _connector: str, _offsets: OffsetPairs) -> Future[None]:
        return _done(None)


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _child(connection: Connection) -> None:
    first = decode(connection.recv_bytes())
    with suppress(EOFError, OSError):
        match first:
            case messages.RunConnector():
                _run(connection, first.config, [messages.TaskConfigs(_tasks(first.config))], paused=False)
            case messages.RunTask():
                own = _OF_MIRRORS if "Mirror" in first.connector_config["connector.class"] else []
                metrics = messages.Metrics(_metrics_of(first.connector_config), own=own)
                _run(connection, first.connector_config, [metrics], paused=first.paused)
            case messages.PreviewConnector():
                _send(connection, messages.Previewed(_PREVIEWED))
                _send(connection, messages.Previewed(_TABLE))
                _send(connection, messages.PreviewEnded("that is all there is"))
            case _:
                _send(connection, _answer(cast(messages.Inquiry, first)))


_LAG = "sink-record-lag"
_FLOW = ["source", "A", "target", "B"]
_PLACE = [*_FLOW, "topic", "A.orders", "partition", "0"]
_OF_MIRRORS: list[tuple[str, list[str], str, float | None]] = [
    ("mirror_lag_records", _PLACE, "", 4321.0),
    ("mirror_lag_seconds", _PLACE, "", 2.5),
    ("mirror_replication_latency_avg_seconds", _PLACE, "", 0.012),
    ("mirror_failover_read_again", [*_FLOW, "group", "billing"], "", 7.0),
    ("mirror_failover_unknown_partitions", [*_FLOW, "group", "billing"], "", 1.0),
    ("mirror_verified_timestamp_seconds", _PLACE, "", 1_790_000_000.0),
    ("mirror_verified_records", _PLACE, "", 100.0),
    ("mirror_verified_differs", _PLACE, "", 1.0),
]
_METRICS = {"sink-record-send-total": 120_345.0, "sink-record-send-rate": 1234.5, _LAG: 90.0, "partition-count": 1.0}


def _run(connection: Connection, config: Mapping[str, str], reports: list[Report], *, paused: bool) -> None:
    is_task = isinstance(reports[0], messages.Metrics)
    if (why := config.get("test.fails")) and is_task:
        _send(connection, messages.Failed(_FAILURE if why == "true" else why))
        return
    _send(connection, messages.Started("1.0"))
    if paused:
        _send(connection, messages.Paused())
    for report in (*reports, *(_troubles(config) if is_task else ())):
        _send(connection, report)
    for second in itertools.count():
        if not connection.poll(1.0):
            if is_task:
                _send(connection, messages.Metrics(_metrics_of(config) | {_LAG: 90.0 + 40 * (second % 7)}))
            continue
        match decode(connection.recv_bytes()):
            case messages.Pause():
                _send(connection, messages.Paused())
            case messages.Resume():
                _send(connection, messages.Resumed())
            case messages.Stop():
                return


def _metrics_of(config: Mapping[str, str]) -> dict[str, float]:
    """What a task measures; of a snapshot, what is left of its rows and how many there are."""
    left, _, total = config.get("test.rows", "").partition(" of ")
    return _METRICS | ({"source-remaining-rows": float(left), "source-total-rows": float(total)} if total else {})


def _troubles(config: Mapping[str, str]) -> list[Report]:
    """What a task reports that has left out records, or waits for something."""
    troubles: list[Report] = []
    if count := int(config.get("test.skips", "0")):
        now = time.time()
        troubles.append(messages.Skipped(count, count, now - 600, now, "the data is not valid <b>JSON</b>"))
    if reason := config.get("test.waits"):
        troubles.append(messages.Waiting(reason))
    if line := config.get("test.hangs"):
        troubles.append(messages.Hanging("put", 120.0, time.time() - 120, line, f"  File {line}, in put\n"))
    return troubles


def _tasks(config: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"task": str(task)} for task in range(int(config.get("tasks.max", "1")))]


def _answer(inquiry: messages.Inquiry) -> Report:
    match inquiry:
        case messages.ListDeadLetters():
            if "errors.deadletterqueue.topic.name" not in inquiry.config:
                return messages.Refused("This connector has no dead letter queue.", invalid=True)
            return _letters(inquiry, int(inquiry.config.get("test.letters", "3")))
        case messages.ReplayDeadLetters():
            delivered = [{"topic": "orders", "partition": 0, "offset": 0}]
            failed = [{"partition": 0, "offset": 1, "error": "still not JSON"}]
            return messages.DeadLettersReplayed("orders-dlq", delivered, failed, more=False, rest=[], until={})
        case messages.ReadDeadLetter():
            found = (
                None
                if inquiry.offset >= int(inquiry.config.get("test.letters", "3"))
                else {**_LETTER, "offset": inquiry.offset, "forms": _FORMS}
            )
            return messages.DeadLetterRead("orders-dlq", found)
        case messages.RepairDeadLetter():
            value = inquiry.edit.get("value", {"text": ""})["text"]
            changed = [{"key": "value", "before": "<b>not JSON</b>", "after": value}]
            error = None if value.startswith("{") else "VALUE_CONVERTER: still not JSON"
            trace = {**_PREVIEWED, "steps": _PREVIEWED["steps"][:3]}
            return messages.DeadLetterRepaired("orders-dlq", True, "orders", changed, trace, error)
        case messages.ReadSinkOffsets():
            return messages.SinkOffsets([("orders", 0, BEYOND_DOUBLES)])
        case messages.ReadSinkLag():
            return messages.SinkLag([("orders", 0, BEYOND_DOUBLES, BEYOND_DOUBLES + 90, 90)])
        case messages.ResetSinkOffsets():
            return messages.SinkOffsetsReset([("orders", 0, BEYOND_DOUBLES, 0)])
        case messages.AlterSinkOffsets():
            return messages.OffsetsAltered(managed=True)
        case messages.AlterSourceOffsets():
            return messages.SourceOffsetsAllowed(managed=True, own_topic=False, transactional=False)
        case messages.ReadDedicatedOffsets():
            return messages.DedicatedOffsets([])
    return answer(inquiry, cast(Link, None), Redaction())


def _letters(inquiry: messages.ListDeadLetters, total: int) -> messages.DeadLettersListed:
    """A queue of one partition: every tenth has another error than the rest, and the first was replayed."""
    first = 0 if inquiry.after is None else inquiry.after[1] + 1
    end = min(total, first + inquiry.limit)
    letters = [{**_LETTER, "offset": offset} for offset in range(first, end)]
    for letter in letters:
        if letter["offset"] % 10 == 9:
            message = f"field 'id{letter['offset']}' is missing"
            letter["error"] = {**_LETTER["error"], "message": message}
            letter["value"] = {"text": f'{{"order": {letter["offset"]}}}'}
    following = (0, end - 1) if end < total else None
    return messages.DeadLettersListed("orders-dlq", letters, following, {"0": 1}, total, total - 1)


def _send(connection: Connection, report: Report) -> None:
    connection.send_bytes(encode(report))


if __name__ == "__main__":
    worker = PageWorker(int(sys.argv[1]))
    demo_connectors(worker.client, Path("/tmp"))
    print(worker.url, flush=True)
    threading.Event().wait()

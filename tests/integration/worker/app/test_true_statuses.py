"""What a real worker says of connectors that wait, that lose records, that hang and that have failed."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from equipment.brokers.topics import create_topic, produce
from equipment.proofs import thorough
from equipment.scrapes import Scrape
from equipment.waiting import wait_until
from equipment.workers.standalone import PATIENT, StandaloneWorker
from worker.cli.main import main

pytestmark = pytest.mark.integration

MakeWorker = Callable[..., StandaloneWorker]
SOON = {"run.until": "drained", "run.until.missing.timeout.ms": "1500"}


@pytest.fixture(scope="module")
def worker(shared_standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    """A worker whose sinks never commit while a test lasts."""
    keys = {"offset_flush_interval_ms": "600000", "consumer_allow_auto_create_topics": "false"}
    return shared_standalone(**PATIENT, **keys)


def sluice(worker: StandaloneWorker, *arguments: str) -> str:
    """What a command prints."""
    return CliRunner().invoke(main, [*arguments, "--url", worker.url()]).output


def put(worker: StandaloneWorker, name: str, config: dict[str, str]) -> None:
    """Create or change a connector."""
    answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=60)
    assert answer.ok, answer.text


def task(worker: StandaloneWorker, name: str) -> dict[str, Any]:
    """The state of its only task; empty until it has one."""
    tasks = worker.status(name).get("tasks", [])
    return dict(tasks[0]) if tasks else {}


# -- what does not exist ------------------------------------------------------------------------------------------

MISSING: dict[str, tuple[dict[str, str], str]] = {
    "folder": (
        {"connector.class": "DirectorySource", "path": "{tmp}/orders", "topic": "{topic}"},
        "Folder {tmp}/orders does not exist; the source waits until it does. Create it, or correct the key path.",
    ),
    "file": (
        {"connector.class": "FileStreamSource", "file": "{tmp}/in.txt", "topic": "{topic}"},
        "File {tmp}/in.txt does not exist; the source waits until it does. Create it, or correct the key file.",
    ),
    "topic": (
        {"connector.class": "FileStreamSink", "file": "{tmp}/out.txt", "topics": "{topic}-no"},
        "Topic {topic}-no does not exist; the sink waits until it does. Create it, start what writes to it, or correct "
        "the key topics.",
    ),
    "one of two topics": (
        {"connector.class": "FileStreamSink", "file": "{tmp}/out.txt", "topics": "{topic},{topic}-no"},
        "Topic {topic}-no does not exist; the sink waits until it does. Create it, start what writes to it, or correct "
        "the key topics.",
    ),
    "pattern": (
        {"connector.class": "FileStreamSink", "file": "{tmp}/out.txt", "topics.regex": "{topic}-x.*"},
        "No topic matches topics.regex={topic}-x.*; the sink waits until one does. Create one, start what writes to "
        "it, or correct the key topics.regex.",
    ),
}


@pytest.mark.parametrize("kind", ["folder", "topic", *thorough("file", "one of two topics", "pattern")])
def test_a_run_that_should_end_fails_if_its_input_does_not_exist(
    kind: str, standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    config, reason = MISSING[kind]
    create_topic(bootstrap, topic)
    worker = standalone(**PATIENT)
    props = {key: value.format(tmp=tmp_path, topic=topic) for key, value in (config | SOON).items()}
    worker.connector(f"c-{topic}", **props)
    assert worker.run() == 3
    assert f"{reason.format(tmp=tmp_path, topic=topic)} It still does not exist after 1.5 s" in worker.log()


@pytest.mark.parametrize("kind", [*thorough("pattern"), *(kind for kind in MISSING if kind != "pattern")])
def test_what_a_connector_waits_for_is_shown_everywhere_until_it_exists(
    kind: str, worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    config, told = MISSING[kind]
    create_topic(bootstrap, topic)
    name, reason = f"c-{topic}", told.format(tmp=tmp_path, topic=topic)
    put(worker, name, {key: value.format(tmp=tmp_path, topic=topic) for key, value in config.items()})
    wait_until("it is shown", lambda: task(worker, name).get("waiting"))
    shown = task(worker, name)
    assert (shown["state"], shown["waiting"]["reason"]) == ("RUNNING", reason)
    listed = next(line for line in sluice(worker, "connectors", "list").splitlines() if line.startswith(name))
    assert listed.endswith(f"task 0: {reason}")
    assert f"Task 0: {reason}" in sluice(worker, "status", name)
    assert re.search(rf"^{name} +task 0: {re.escape(reason)}$", sluice(worker, "status"), re.MULTILINE)
    page = requests.get(f"{worker.url()}ui?q={name}", headers={"Accept": "text/html"}, timeout=60).text
    assert "state-waiting" in page
    assert reason[:150] in page
    for made in ("in.txt", "orders"):
        (tmp_path / made).mkdir() if made == "orders" else (tmp_path / made).touch()
    for made in (f"{topic}-no", f"{topic}-x1"):
        create_topic(bootstrap, made)
    wait_until("it is over", lambda: "waiting" not in task(worker, name))
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


JDBC = {
    "connector.class": "JdbcSource",
    "connection.url": "sqlite:///{tmp}/db",
    "mode": "bulk",
    "topic.prefix": "{topic}-",
}
MIRROR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "{bootstrap}",
    "target.cluster.bootstrap.servers": "{bootstrap}",
    "topics": "{topic}-x.*",
    "replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
}
AWAITED: dict[str, tuple[dict[str, str], str]] = {
    "table": (
        JDBC | {"table.whitelist": "orders,ordres", "table.poll.interval.ms": "500"},
        "Table ordres in table.whitelist does not exist; the source waits until it does. Create it, or correct the "
        "key table.whitelist.",
    ),
    "tables": (
        JDBC | {"table.whitelist": "ordres,odres", "table.poll.interval.ms": "500"},
        "The tables ordres, odres in table.whitelist do not exist; the source waits until they do. Create them, or "
        "correct the key table.whitelist.",
    ),
    "any table": (
        JDBC | {"table.blacklist": "orders", "table.poll.interval.ms": "500"},
        "The configuration matches no table; the source waits until it does. Create one, or correct the keys that "
        "choose tables, such as table.blacklist, table.types and schema.pattern.",
    ),
    "mirrored topic": (
        MIRROR,
        "No selected topic exists at both clusters; the source waits until one does. Create one at the source cluster, "
        "correct the keys topics and topics.exclude, or see the log if one cannot be created at the target.",
    ),
}


def is_waiting_on_page(worker: StandaloneWorker, name: str, reason: str) -> bool:
    """Whether the overview shows a connector as waiting: once its tasks run, if it has any."""
    page = requests.get(f"{worker.url()}ui?q={name}", headers={"Accept": "text/html"}, timeout=60).text
    return "state-waiting" in page and reason[:150] in page


@pytest.mark.parametrize("kind", AWAITED)
def test_what_the_connector_itself_waits_for_is_shown_everywhere_until_it_exists(
    kind: str, worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    config, reason = AWAITED[kind]
    name = f"c-{topic}"
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("create table orders (id integer primary key)")
        put(
            worker,
            name,
            {key: text.format(tmp=tmp_path, topic=topic, bootstrap=bootstrap) for key, text in config.items()},
        )
        wait_until("it is shown", lambda: worker.status(name).get("connector", {}).get("waiting"))
        shown = worker.status(name)["connector"]
        assert (shown["state"], shown["waiting"]["reason"]) == ("RUNNING", reason)
        listed = next(line for line in sluice(worker, "connectors", "list").splitlines() if line.startswith(name))
        assert listed.endswith(reason)
        assert reason in sluice(worker, "status", name)
        wait_until("the page shows it", lambda: is_waiting_on_page(worker, name, reason))
        for table in ("ordres", "odres"):
            database.execute(f"create table {table} (id integer primary key)")
        create_topic(bootstrap, f"{topic}-x1")
        wait_until("it is over", lambda: "waiting" not in worker.status(name)["connector"])
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


def test_a_sink_that_drains_delivers_a_topic_that_is_created_while_it_waits(
    standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    worker = standalone(**PATIENT)
    keys = {"run_until": "drained", "run_until_missing_timeout_ms": "60000"}
    out = tmp_path / "out.txt"
    worker.connector(f"c-{topic}", connector_class="FileStreamSink", file=str(out), topics=topic, **keys)
    worker.start()
    wait_until("it waits", lambda: "does not exist; the sink waits" in worker.log())
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1", b"2", b"3"])
    assert worker.wait() == 0
    assert out.read_text() == "1\n2\n3\n"


def test_a_run_that_should_end_fails_if_a_table_does_not_exist(
    standalone: MakeWorker, topic: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("create table orders (id integer primary key)")
    worker = standalone(**PATIENT)
    keys = {"connection.url": f"sqlite:///{tmp_path / 'db'}", "mode": "bulk", "topic.prefix": f"{topic}-"}
    worker.connector(
        f"c-{topic}", connector_class="JdbcSource", table_whitelist="orders,ordres", run_until="drained", **keys
    )
    assert worker.run() == 3
    assert "Table ordres in table.whitelist does not exist, and the connector has run.until=drained." in worker.log()


# -- lost records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [True, False], ids=["dead letters", "skipped"])
def test_lost_records_are_shown_everywhere(
    queue: bool, worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    name = f"c-{topic}"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1", b"oops", b"2", b"oops", b"oops"])
    config = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
    }
    if queue:
        config["errors.deadletterqueue.topic.name"] = f"{topic}-dlq"
        config["errors.deadletterqueue.topic.replication.factor"] = "1"
    put(worker, name, config)
    wait_until("three are counted", lambda: worker.status(name).get("skipped", {}).get("records") == 3)
    status = worker.status(name)
    told = status["skipped"]
    assert told == status["tasks"][0]["skipped"]
    assert told["dead_letters"] == (3 if queue else 0)
    assert told["since"] <= told["last"]
    assert f"value.converter, record {topic}:0:4" in told["reason"]
    count = "3 records skipped since " + told["since"] + (" (3 dead letters)" if queue else "")
    line = f"{count}, the last one at {told['last']}: {told['reason']}"
    listed = next(text for text in sluice(worker, "connectors", "list").splitlines() if text.startswith(name))
    assert listed.endswith(line)
    assert line in sluice(worker, "status", name)
    assert re.search(rf"^{name} +{re.escape(line)}$", sluice(worker, "status"), re.MULTILINE)
    assert {"connector": name, "what": line} in json.loads(sluice(worker, "status", "-o", "json"))["notices"]
    page = requests.get(f"{worker.url()}ui?show=losing", headers={"Accept": "text/html"}, timeout=60).text
    assert "Losing records" in page
    assert f'data-key="{name}"' in page
    state = requests.get(f"{worker.url()}ui/connectors/{name}", headers={"Accept": "text/html"}, timeout=60).text
    assert ("(3)</span>" in state) is queue, "a badge on the tab of the dead letters"
    lines = re.findall(rf"WARNING .*{name}\|task-0.* records? skipped since .*", worker.log())
    assert len(lines) == 1
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


def test_a_source_that_loses_records_says_so(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    name = f"c-{topic}"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"a":1}\noops\n{"a":2}\n')
    config = {"connector.class": "DirectorySource", "path": str(tmp_path / "in"), "topic": topic}
    put(worker, name, config | {"value.converter": "JsonConverter", "errors.tolerance": "all"})
    wait_until("one is counted", lambda: worker.status(name).get("skipped", {}).get("records") == 1)
    assert "line 2" in worker.status(name)["skipped"]["reason"]
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


# -- lag and rates -------------------------------------------------------------------------------------------------


def test_before_the_first_commit_every_view_says_so(
    worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    name = f"c-{topic}"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"x"] * 400)
    put(worker, name, {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": topic})
    delivered = "sink-record-send-total"
    wait_until("all are delivered", lambda: task(worker, name).get("metrics", {}).get(delivered) == 400)
    assert task(worker, name)["metrics"]["sink-uncommitted-partition-count"] == 1
    row = sluice(worker, "status", name).splitlines()[3]
    assert re.split(r"  +", row)[:3] == ["0", "RUNNING", "not committed yet"]
    shown = sluice(worker, "offsets", "show", name).splitlines()
    assert re.split(r"  +", shown[1]) == [topic, "0", "not committed yet", "400", "not committed yet"]
    assert re.split(r"  +", shown[4])[:2] == ["0", "not committed yet"]
    lag = worker.get(f"connectors/{name}/lag").json()
    assert (lag["not_committed_yet"], lag["lag"]) == (True, 400)
    html = {"Accept": "text/html"}
    for path in (f"ui?q={name}", f"ui/connectors/{name}", f"ui/connectors/{name}/offsets"):
        assert "not committed yet" in requests.get(worker.url() + path, headers=html, timeout=60).text, path
    assert requests.put(f"{worker.url()}connectors/{name}/stop", timeout=60).ok
    worker.wait_for_states(name, "STOPPED")
    assert re.split(r"  +", sluice(worker, "offsets", "show", name).splitlines()[1]) == [topic, "0", "400", "400", "0"]
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


def test_a_failed_sink_has_no_lag_of_now(standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path) -> None:
    name = f"c-{topic}"
    worker = standalone(**PATIENT).start()
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1"] * 10)
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": topic}
    put(worker, name, config | {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"})
    wait_until("lag 0", lambda: task(worker, name).get("metrics", {}).get("sink-record-lag") == 0)
    produce(bootstrap, topic, [b"oops"])
    worker.wait_for_states(name, "RUNNING", "FAILED")
    produce(bootstrap, topic, [b"2"] * 20)
    failed = task(worker, name)
    assert not {"sink-record-lag", "sink-record-send-rate"} & failed["metrics"].keys()
    assert failed["metrics"]["sink-record-send-total"] == 10
    last = failed["last_metrics"]
    assert "sink-record-lag" in last["values"]
    assert f"The lag of task 0 is unknown; it was {last['values']['sink-record-lag']:,.0f} at {last['at']}." in sluice(
        worker, "status", name
    )
    assert worker.get(f"connectors/{name}/lag").json()["lag"] == 21, "from the committed offsets"

    def scraped() -> Scrape | None:
        scrape = Scrape(worker.get("metrics").text)
        counted = scrape.named("kafka_connect_sink_task_sink_record_send_total", task="0") == [10]
        return scrape if counted and not scrape.named("sluice_sink_record_lag") else None

    scrape = wait_until("the gauge is gone, and the count is there", scraped)
    assert scrape.named("kafka_connect_sink_task_sink_record_send_rate") == []


HANGING = """
import time
from connect.connector import Connector
from connect.config import Config
from connect.data import SourceRecord
from connect.source import SourceConnector, SourceTask


class HangingTask(SourceTask[Config]):
    polls = 0

    def poll(self):
        self.polls += 1
        if self.polls > 20:
            time.sleep(600)
        self.context.wait(0.2)
        return [SourceRecord("{topic}", "x") for _ in range(10)]


class HangingSource(SourceConnector[Config]):
    task_class = HangingTask
"""


def test_a_hanging_source_has_no_rate_of_now(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins" / "hanging"
    plugins.mkdir(parents=True)
    (plugins / "hanging_source.py").write_text(HANGING.replace("{topic}", topic))
    (plugins / "plugins.toml").write_text('[[connector]]\nclass = "hanging_source.HangingSource"\ntype = "source"\n')
    worker = standalone(**PATIENT, plugin_path=str(tmp_path / "plugins"), task_isolation="process").start()
    name = f"c-{topic}"
    put(worker, name, {"connector.class": "hanging_source.HangingSource"})
    rate = "source-record-write-rate"
    wait_until("it has a rate", lambda: task(worker, name).get("metrics", {}).get(rate))
    wait_until("it has none", lambda: rate in task(worker, name).get("last_metrics", {}).get("values", {}), 60)
    assert rate not in task(worker, name)["metrics"]
    assert re.split(r"  +", sluice(worker, "status", name).splitlines()[3])[:4] == ["0", "RUNNING", "-", "-"]
    worker.kill()


# -- what commands say ---------------------------------------------------------------------------------------------


def test_a_restart_of_what_has_failed_says_that_nothing_has(
    worker: StandaloneWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    name = f"c-{topic}"
    create_topic(bootstrap, topic)
    put(worker, name, {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": topic})
    worker.wait_for_states(name, "RUNNING", "RUNNING")
    before, told = worker.status(name), f"Nothing of {name} has failed; nothing was restarted."
    for tasks in ("true", "false"):
        answer = requests.post(
            f"{worker.url()}connectors/{name}/restart?onlyFailed=true&includeTasks={tasks}", timeout=60
        )
        assert (answer.status_code, answer.json()["message"]) == (202, told)
    assert sluice(worker, "connectors", "restart", name, "--failed") == f"{told}\n"
    assert worker.status(name)["tasks"][0]["started_at"] == before["tasks"][0]["started_at"]
    assert f"Restarting {name}, as requested" not in worker.log()
    assert sluice(worker, "connectors", "restart", name) == f"Restarted {name}.\n"
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


def test_who_creates_a_connector_is_told_of_unknown_keys(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    name, warning = f"c-{topic}", "Warning: The key bach.size is unknown. Did you mean batch.size?"
    file = tmp_path / "connectors" / "c.properties"
    file.parent.mkdir()
    props = {"name": name, "connector.class": "FileStreamSource", "file": "/dev/null", "topic": topic, "bach.size": "5"}
    file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    created = CliRunner().invoke(main, ["connectors", "create", str(file), "--url", worker.url()])
    assert (created.exit_code, created.stderr) == (0, f"{warning}\n")
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok
    for arguments in (["--dry-run"], []):
        applied = CliRunner().invoke(main, ["apply", str(file.parent), *arguments, "--url", worker.url()])
        assert applied.stderr == f"{file} ({name}): {warning}\n"
    body = {key: value for key, value in props.items() if key != "name"}
    validated = requests.put(
        f"{worker.url()}connector-plugins/FileStreamSource/config/validate", json=body | {"name": name}, timeout=60
    ).json()
    assert validated["warnings"] == [{"key": "bach.size", "message": warning.removeprefix("Warning: ")}]
    assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok


class Refusing(BaseHTTPRequestHandler):
    """A web service that is out of order."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_after_the_last_retry_the_log_says_that_records_are_skipped(
    worker: StandaloneWorker, bootstrap: str, topic: str
) -> None:
    name = f"c-{topic}"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"x"] * 5)
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        config = {
            "connector.class": "HttpSink",
            "topics": topic,
            "http.url": f"http://127.0.0.1:{server.server_port}/",
            "max.retries": "1",
            "retry.backoff.ms": "50",
            "errors.tolerance": "all",
        }
        put(worker, name, config)
        wait_until("all are skipped", lambda: worker.status(name).get("skipped", {}).get("records") == 5)
        lines = re.findall(rf"^\[.*{re.escape(name)}\|task-0.*$", worker.log(), re.MULTILINE)
        assert any("retrying in" in line for line in lines)
        skipping = [number for number, line in enumerate(lines) if "skipped" in line]
        assert skipping[-1] > max(number for number, line in enumerate(lines) if "retrying in" in line)
        assert requests.delete(f"{worker.url()}connectors/{name}", timeout=60).ok
        server.shutdown()
        thread.join()

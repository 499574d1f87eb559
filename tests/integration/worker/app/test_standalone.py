"""Standalone mode as its users have it: a process, properties files, a broker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import admin_client, committed, create_topic, produce, read_topic
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.processes import descendants, runs
from equipment.workers.standalone import PATIENT, StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]


def lines(count: int, start: int = 0) -> str:
    return "".join(f"line {number}\n" for number in range(start, start + count))


def file_pipeline(worker: StandaloneWorker, topic: str, tmp_path: Path, **both: str) -> tuple[Path, Path]:
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    worker.connector("source", connector_class="FileStreamSource", file=str(source), topic=topic, **both)
    worker.connector(f"sink-{topic}", connector_class="FileStreamSink", file=str(sink), topics=topic, **both)
    return source, sink


def test_a_file_goes_through_a_topic_into_a_file_and_the_worker_ends(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    worker = standalone(**PATIENT)
    source, sink = file_pipeline(worker, topic, tmp_path, run_until="drained")
    source.write_text(lines(20_000))
    assert worker.run() == 0
    assert sink.read_text() == lines(20_000)
    assert committed(bootstrap, f"connect-sink-{topic}", topic) == [20_000]
    assert "In all: 20,000 records read, 20,000 written in " in worker.log()


def test_a_second_run_goes_on_where_the_first_stopped(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone(**PATIENT)
    source, sink = file_pipeline(worker, topic, tmp_path, run_until="drained")
    source.write_text(lines(100))
    assert worker.run() == 0
    with source.open("a") as stream:
        stream.write(lines(50, start=100) + "half a li")
    assert worker.run() == 0
    assert sink.read_text() == lines(150), "nothing is doubled, and a half-written line waits for its end"


@pytest.mark.parametrize("number", [signal.SIGTERM, *thorough(signal.SIGINT)])
def test_a_signal_ends_the_worker_in_good_order(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str, number: signal.Signals
) -> None:
    worker = standalone(offset_flush_interval_ms="60000", **PATIENT)
    source, sink = file_pipeline(worker, topic, tmp_path)
    source.write_text(lines(1000))
    worker.start()
    wait_until("the lines have arrived", lambda: sink.exists() and sink.read_text() == lines(1000))
    children = descendants(worker.pid)
    worker.signal(number)
    assert worker.wait() == 0
    assert committed(bootstrap, f"connect-sink-{topic}", topic) == [1000], "what was put is committed at the end"
    wait_until("its processes are gone", lambda: not any(map(runs, children)))


IMPATIENT = """
import logging, os, signal, sys
from pathlib import Path
from worker.app.standalone import run_standalone
from worker.recent_log import RecentLog

class Impatient(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(("The worker is up", "Stopping")):
            os.kill(os.getpid(), signal.SIGINT)

logging.basicConfig(level=logging.INFO, handlers=[Impatient(), logging.StreamHandler()])
sys.exit(run_standalone(Path(sys.argv[1]), [], RecentLog()))
"""


def test_a_signal_in_the_midst_of_another_is_no_failure(bootstrap: str, tmp_path: Path) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text(
        f"bootstrap.servers={bootstrap}\nkey.converter=StringConverter\nvalue.converter=StringConverter\n"
        f"offset.storage.file.filename={tmp_path}/offsets\nlisteners=http://127.0.0.1:0\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", IMPATIENT, str(worker)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("Stopping on SIGINT") == 1


def test_a_worker_whose_converter_is_not_there_does_not_start(standalone: MakeWorker) -> None:
    worker = standalone(value_converter="org.apache.kafka.connect.storage.StrinConverter")
    assert worker.run() == 2
    assert "for configuration value.converter: Failed to find any class that implements Converter" in worker.log()


def test_keys_that_are_written_wrong_are_asked_about(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone(ofset_flush_timeout_ms="100")
    source, _ = file_pipeline(
        worker,
        topic,
        tmp_path,
        run_until="drained",
        errors_tolerence="all",
        producer_override_linger_msec="1",
        value_converter_registry="http://r",
    )
    source.write_text(lines(1))
    assert worker.run() == 0
    assert "The key ofset.flush.timeout.ms is unknown. Did you mean offset.flush.timeout.ms?" in worker.log()
    assert "The key errors.tolerence is unknown. Did you mean errors.tolerance?" in worker.log()
    assert "The key value.converter.registry is unknown: StringConverter has no such key." in worker.log()
    assert "Client setting linger.msec has no effect: no such setting is known" in worker.log()


def test_a_file_of_malformed_rows_alone_is_finished_when_they_are_kept(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    """No offset is committed for it."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("n\nx\ny\n")
    worker = standalone()
    worker.connector(
        "rows",
        connector_class="DirectorySource",
        path=str(folder),
        topic=topic,
        types="n:int64",
        settle_ms="0",
        finished_action="delete",
        run_until="drained",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{topic}-dlq",
        errors_deadletterqueue_topic_replication_factor="1",
    )
    assert worker.run() == 0
    assert [message.value() for message in read_topic(bootstrap, f"{topic}-dlq")] == [b"x", b"y"]
    assert list(folder.iterdir()) == []


def test_a_reference_that_nothing_replaces_is_told_of(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone(config_providers="env", **{"config.providers.env.class": "EnvVarConfigProvider"})
    source, sink = tmp_path / "in.txt", tmp_path / "${vault:db:password}"
    worker.connector("unset", connector_class="FileStreamSource", file=str(sink), topic=topic)
    worker.connector("set", connector_class="FileStreamSource", file=str(source), topic="${env:TOPIC_OF_TEST}")
    worker.start({"TOPIC_OF_TEST": topic})
    for name in ("unset", "set"):
        worker.wait_for_states(name, "RUNNING", "RUNNING")
    assert "The reference in topic" not in worker.log()
    said = worker.log().partition("The reference in file")[2].partition("\n")[0]
    assert said.startswith(" is not replaced: config.providers of the worker names no such provider")
    assert "vault:db" not in said


def test_the_rest_api_tells_what_runs(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone()
    source, _ = file_pipeline(worker, topic, tmp_path)
    source.write_text(lines(10))
    worker.start()
    root = worker.get("/").json()
    assert root.keys() == {"version", "commit", "kafka_cluster_id"}
    names = [f"sink-{topic}", "source"]
    wait_until("both are created", lambda: sorted(worker.get("/connectors").json()) == names)
    assert worker.get("/connectors/").json() == worker.get("/connectors").json()
    status = worker.wait_for_states("source", "RUNNING", "RUNNING")
    assert status["type"] == "source"
    assert status["tasks"][0]["worker_id"] == status["connector"]["worker_id"]
    missing = worker.get("/connectors/nobody/status")
    assert missing.status_code == 404
    assert missing.json() == {"error_code": 404, "message": "No status found for connector nobody"}
    assert worker.get("/nothing").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}


def test_a_wrong_connector_stops_the_worker_and_names_the_key(standalone: MakeWorker, tmp_path: Path) -> None:
    worker = standalone()
    worker.connector("bad", connector_class="FileStreamSource", file=str(tmp_path / "x"))
    assert worker.run() == 3
    assert 'Missing required configuration "topic" which has no default value.' in worker.log()
    assert "Stopping after connector error" in worker.log()


def test_an_unknown_class_is_refused_with_what_there_is(standalone: MakeWorker) -> None:
    worker = standalone()
    worker.connector("bad", connector_class="NoSuchConnector")
    assert worker.run() == 3
    assert "Failed to find any class that implements Connector and which name matches NoSuchConnector" in worker.log()
    assert "connectors.file.FileStreamSourceConnector" in worker.log()


def test_a_worker_without_its_broker_or_keys_does_not_start(tmp_path: Path) -> None:
    unreachable = StandaloneWorker(tmp_path / "a", "127.0.0.1:1", default_api_timeout_ms="1000")
    assert unreachable.run() == 2
    assert "Failed to connect to and describe Kafka cluster" in unreachable.log()
    incomplete = StandaloneWorker(tmp_path / "b", "127.0.0.1:1", value_converter="")
    (tmp_path / "b" / "worker.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    assert incomplete.run() == 2
    assert 'Missing required configuration "key.converter"' in incomplete.log()


def test_a_second_worker_with_the_same_offsets_file_does_not_start(
    standalone: MakeWorker, topic: str, tmp_path: Path
) -> None:
    """Not even if the first was killed and its children are still there does a third have to wait."""
    offsets = tmp_path / "shared.offsets"
    first, second = (standalone(offset_storage_file_filename=str(offsets)) for _ in range(2))
    for worker in (first, second):
        file_pipeline(worker, topic, tmp_path)
    (tmp_path / "in.txt").write_text(lines(1))
    first.start()
    first.wait_for_states("source", "RUNNING", "RUNNING")
    assert second.run() == 2
    assert f"offset.storage.file.filename={offsets} is in use" in second.log()
    first.kill()
    second.start()
    second.wait_for_states("source", "RUNNING", "RUNNING")


def test_what_is_in_the_temporary_folder_may_be_removed(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    """Cleaners remove what has not been used for some days; and the path may be too long for a socket."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    worker = standalone()
    file_pipeline(worker, topic, tmp_path)
    worker.start({"TMPDIR": str(folder)})
    worker.wait_for_states("source", "RUNNING", "RUNNING")
    shutil.rmtree(folder)
    # A process is started ahead: the second needs a new one.
    for _ in range(2):
        answer = requests.post(worker.url() + "connectors/source/restart?includeTasks=true", timeout=30)
        assert answer.ok, answer.text
        worker.wait_for_states("source", "RUNNING", "RUNNING")
    assert worker.terminate() == 0
    assert "could not be started" not in worker.log()


def test_the_terminal_stops_the_worker_and_the_worker_its_tasks(
    standalone: MakeWorker, topic: str, tmp_path: Path
) -> None:
    """Ctrl-C is a signal to every process of the group; a service manager's stop one to every process there is."""
    worker = standalone(task_shutdown_graceful_timeout_ms="60000")
    file_pipeline(worker, topic, tmp_path)
    worker.start()
    worker.wait_for_states("source", "RUNNING", "RUNNING")
    groups = set()
    for pid in descendants(worker.pid):
        # Some end by themselves: a connector that rests, and what has checked a configuration.
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGTERM)
    assert groups
    assert os.getpgid(worker.pid) not in groups
    worker.signal(signal.SIGINT)
    assert worker.wait() == 0
    assert "without having said why" not in worker.log()
    assert "is killed" not in worker.log()


def test_a_task_that_fails_shows_its_trace_and_the_others_go_on(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    worker = standalone(**PATIENT)
    source, sink = file_pipeline(worker, topic, tmp_path)
    source.write_text(lines(5))
    worker.connector(
        f"bad-{topic}",
        connector_class="FileStreamSink",
        file=str(tmp_path / "bad.txt"),
        topics=topic,
        value_converter="JsonConverter",
    )
    worker.start()
    status = worker.wait_for_states(f"bad-{topic}", "RUNNING", "FAILED")
    assert "Tolerance exceeded in error handler" in status["tasks"][0]["trace"]
    assert "DataError" in status["tasks"][0]["trace"]
    with source.open("a") as stream:
        stream.write(lines(5, start=5))
    wait_until("the other sink goes on", lambda: sink.exists() and sink.read_text() == lines(10))
    assert committed(bootstrap, f"connect-bad-{topic}", topic) == [-1001]
    assert worker.terminate() == 0


def test_a_drained_run_with_a_failure_says_so(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone(**PATIENT)
    source, _ = file_pipeline(worker, topic, tmp_path, run_until="drained")
    source.write_text(lines(5))
    worker.connector(
        f"bad-{topic}",
        connector_class="FileStreamSink",
        file=str(tmp_path / "bad.txt"),
        topics=topic,
        value_converter="JsonConverter",
        run_until="drained",
    )
    assert worker.run() == 3
    assert f"Finished, but these connectors failed: bad-{topic}" in worker.log()


def test_tolerated_records_are_left_out_and_logged(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str
) -> None:
    worker = standalone(**PATIENT)
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b'{"a":1}', b"{half", b'{"a":2}'])
    worker.connector(
        f"sink-{topic}",
        connector_class="FileStreamSink",
        file=str(tmp_path / "out.txt"),
        topics=topic,
        value_converter="JsonConverter",
        **{"value.converter.schemas.enable": "false"},
        errors_tolerance="all",
        errors_log_enable="true",
        run_until="drained",
    )
    assert worker.run() == 0
    assert (tmp_path / "out.txt").read_text().count("\n") == 2
    assert "Executing stage 'VALUE_CONVERTER' with class 'converters.json" in worker.log()
    assert f"topic='{topic}', partition=0, offset=1" in worker.log()
    assert committed(bootstrap, f"connect-sink-{topic}", topic) == [3]


@pytest.mark.parametrize("victim", ["worker", *thorough("source"), "sink"])
def test_a_kill_loses_nothing(standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str, victim: str) -> None:
    """kill -9 in mid-stream: the lines that were under way come again, none is missing (I1, I2, I3)."""
    total = 80_000 if victim == "source" else 30_000
    worker = standalone(consumer_max_poll_records="50", task_isolation="process")
    source, sink = file_pipeline(
        worker, topic, tmp_path, batch_size="5" if victim == "source" else "20", run_until="drained"
    )
    source.write_text(lines(total))
    worker.start()
    pid = worker.pid if victim == "worker" else worker.task_pid("source" if victim == "source" else f"sink-{topic}")
    # A source is soon through with its file: it is killed once it has committed for the first time.
    seen = worker.folder / "offsets" if victim == "source" else sink
    wait_until("lines are on their way", lambda: seen.exists() and seen.stat().st_size > 0)
    if victim == "worker":
        worker.kill()
    else:
        os.kill(pid, signal.SIGKILL)
        assert worker.wait() == 3, "a task that dies has failed"
    assert worker.run() == 0
    assert sorted(set(sink.read_text().splitlines())) == sorted(lines(total).splitlines())
    values = [message.value().decode() for message in read_topic(bootstrap, topic)]
    assert set(values) == set(lines(total).splitlines())


def test_a_worker_that_dies_takes_its_children_with_it(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone()
    source, _ = file_pipeline(worker, topic, tmp_path)
    source.write_text(lines(10))
    worker.start()
    worker.wait_for_states("source", "RUNNING", "RUNNING")
    assert len(descendants(worker.pid)) >= 3, "a process for each of two tasks, and the fork server"
    worker.kill()
    assert "Traceback" not in worker.log()


KILLED_MEMBER = """
import os, signal, sys
from confluent_kafka import Consumer

bootstrap, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "session.timeout.ms": 300000})
consumer.subscribe([topic])
while not consumer.assignment():
    consumer.poll(0.1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("isolation", ["process", "shared"])
def test_a_sink_that_waits_to_be_let_into_its_group_stops_at_once(
    standalone: MakeWorker, topic: str, tmp_path: Path, bootstrap: str, isolation: str
) -> None:
    """Until a member that was killed is missed, nobody else gets in."""
    create_topic(bootstrap, topic)
    killed = subprocess.run([sys.executable, "-c", KILLED_MEMBER, bootstrap, f"connect-{topic}", topic], check=False)
    assert killed.returncode == -signal.SIGKILL
    worker = standalone(task_shutdown_graceful_timeout_ms="30000", task_isolation=isolation)
    worker.connector(topic, connector_class="FileStreamSink", file=str(tmp_path / "out"), topics=topic)
    worker.start().wait_for_states(topic, "RUNNING", "RUNNING")
    admin = admin_client(bootstrap)
    group = f"connect-{topic}"

    def asks() -> bool:
        return "REBALANCING" in str(admin.describe_consumer_groups([group])[group].result().state)

    wait_until("the task asks to be let in", asks)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert "is killed" not in worker.log()
    assert asks(), "the killed member is still waited for"


def test_a_stuck_task_is_killed_after_the_graceful_timeout(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone(task_shutdown_graceful_timeout_ms="300")
    source, _ = file_pipeline(worker, topic, tmp_path)
    source.write_text(lines(10))
    worker.start()
    worker.wait_for_states("source", "RUNNING", "RUNNING")
    os.kill(worker.task_pid("source"), signal.SIGSTOP)
    assert worker.terminate() == 0
    assert "source|task-0 did not stop within 0.3 s and is killed" in worker.log()


def test_an_authors_plugins_run_from_a_folder(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    """The twenty-line source and sink of the README, from a folder on ``plugin.path``, across a kill."""
    plugins = Path(__file__).parents[3] / "contract" / "plugins"
    database = tmp_path / "numbers.db"
    worker = standalone(plugin_path=str(plugins), value_converter="LongConverter")
    worker.connector("counter", connector_class="Counter", topic=topic, seconds="0.01")
    worker.connector(f"table-{topic}", connector_class="Table", database=str(database), topics=topic)

    def numbers() -> list[int]:
        if not database.exists():
            return []
        with contextlib.closing(sqlite3.connect(database, timeout=5)) as connection:
            try:
                return [row[0] for row in connection.execute("SELECT value FROM records ORDER BY pos")]
            except sqlite3.OperationalError:
                return []  # the table is yet to be made

    worker.start()
    wait_until("numbers have arrived", lambda: len(numbers()) >= 20)
    worker.kill()
    before = len(numbers())
    worker.start()
    wait_until("numbers go on", lambda: len(numbers()) > before + 20)
    assert worker.terminate() == 0
    arrived = numbers()
    assert set(arrived) == set(range(1, max(arrived) + 1)), "none is missing after the kill"


def test_without_a_file_lines_come_from_and_go_to_the_worker_itself(
    standalone: MakeWorker, topic: str, tmp_path: Path
) -> None:
    worker = standalone()
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    worker.connector(f"in-{topic}", connector_class="FileStreamSource", topic=topic)
    worker.connector(f"out-{topic}", connector_class="FileStreamSink", topics=topic)
    with file.open() as stdin:
        worker.start(stdin=stdin)
    wait_until("they are printed as they are", lambda: {"one", "two"} <= set(worker.log().splitlines()), 60)
    assert f"WARNING [in-{topic}|task-0] The configuration has no 'file'" in worker.log()
    assert worker.terminate() == 0


def test_a_failed_task_says_first_what_went_wrong(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone()
    worker.connector(f"lines-{topic}", connector_class="FileStreamSource", file=f"{tmp_path}/in/x", topic=topic)
    (tmp_path / "in").touch()
    worker.start()
    status = worker.wait_for_states(f"lines-{topic}", "RUNNING", "FAILED")
    cause = f"Cannot read file {tmp_path}/in/x: Not a directory. Make it readable for the worker's user."
    assert status["tasks"][0]["trace"].startswith(f"{cause}\n\nTraceback (most recent call last):\n")
    assert f"ERROR [lines-{topic}|task-0] The task failed: {cause}\n\nTraceback" in worker.log()
    assert worker.terminate() == 0


def test_a_standalone_worker_says_that_it_has_no_exactly_once_sources(standalone: MakeWorker) -> None:
    worker = standalone(exactly_once_source_support="enabled").start()
    worker.url()
    assert "WARNING [worker] exactly.once.source.support has no effect in a standalone worker" in worker.log()
    assert worker.terminate() == 0

"""Exactly-once sources on a real broker: transactions, their boundaries, kills and zombies."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.errors import DataError
from connect.source import TransactionContext
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.proofs import thorough
from equipment.scripts.source_script import LastingConnector, Polled, Script, ScriptedConnector, ScriptedTask
from equipment.scripts.task_processes import TaskProcess
from equipment.scripts.tasks import RunningTask, class_name
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]
StartProcess = Callable[..., TaskProcess]
LINES = 6_000


@pytest.fixture
def script() -> Script:
    ScriptedTask.script = Script()
    return ScriptedTask.script


@pytest.fixture
def offsets_topic(bootstrap: str, topic: str) -> str:
    """The worker's offsets topic, of this test alone; the topic of the records is made, too."""
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"{topic}-offsets", 5, **{"cleanup.policy": "compact"})
    return f"{topic}-offsets"


@pytest.fixture
def worker(bootstrap: str, topic: str, offsets_topic: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "group.id": f"cluster-{topic}",
        "offset.storage.topic": offsets_topic,
        "offset.storage.partitions": "3",
        "offset.storage.replication.factor": "1",
        "config.storage.topic": f"{topic}-configs",
        "status.storage.topic": f"{topic}-status",
        "exactly.once.source.support": "enabled",
    }


@pytest.fixture
def start(bootstrap: str, topic: str, worker: dict[str, str], script: Script) -> Iterator[Start]:
    running: list[RunningTask] = []

    def start_task(*, worker_props: Mapping[str, str] | None = None, **props: str) -> RunningTask:
        connector = {
            "name": topic,
            "connector.class": class_name(ScriptedConnector),
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        running.append(RunningTask(bootstrap, connector, worker={**worker, **(worker_props or {})}))
        return running[-1]

    yield start_task
    for task in running:
        task.close()


@pytest.fixture
def record(topic: str) -> Callable[..., SourceRecord]:
    """Makes records whose offset is their number, plus one."""

    def make(number: int, value: Any = None, to: str = topic) -> SourceRecord:
        text = str(number) if value is None else value
        return SourceRecord(to, text, source_partition={"p": "p"}, source_offset={"o": number + 1})

    return make


def texts(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str]:
    return [message.value().decode() for message in read_topic(bootstrap, topic, isolation=isolation)]


def kept(bootstrap: str, topic: str) -> dict[str, Any]:
    """The newest offset of each key of an offsets topic."""
    return {message.key().decode(): json.loads(message.value()) for message in read_topic(bootstrap, topic)}


def polls(*batches: list[SourceRecord]) -> list[Callable[[ScriptedTask], Polled]]:
    return [lambda _, batch=batch: batch for batch in batches]  # type: ignore[misc]


def transactions(task: ScriptedTask) -> TransactionContext:
    context = task.context.transaction_context
    assert context is not None
    return context


Make = Callable[..., SourceRecord]


def test_a_batch_is_a_transaction_with_its_offset(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    script.polls = polls([record(0), record(1)], [record(2)])
    task = start()
    wait_until("the task is told", lambda: script.acknowledged == ["0", "1", "2"] and script.commits == 2)
    assert texts(bootstrap, topic) == ["0", "1", "2"]
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 3}}
    task.stop()
    assert task.seen(messages.CommitOffsets) == [], "the worker's own store has nothing to do"
    assert task.metric("transaction-size-max") == 2
    assert task.metric("source-record-active-count") == 0
    again = start()
    again.wait_for(messages.Started)
    again.stop()
    assert script.found == [None, {"o": 3}]


def test_what_a_task_has_left_when_it_is_told_to_stop_is_committed(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    script.polls = polls([record(0)])
    script.last = lambda task: [record(1), record(2)]
    task = start(connector_class=class_name(LastingConnector))
    wait_until("it has polled", lambda: script.commits)
    task.stop()
    assert texts(bootstrap, topic) == ["0", "1", "2"]
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 3}}


def test_no_transaction_is_made_for_what_is_left_out(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    tombstones = {
        "transforms": "drop",
        "transforms_drop_type": "Filter",
        "transforms_drop_predicate": "empty",
        "predicates": "empty",
        "predicates_empty_type": "RecordIsTombstone",
    }
    script.polls = polls([SourceRecord(topic, None, source_partition={"p": "p"}, source_offset={"o": 1})])
    task = start(**tombstones)
    wait_until("the task is told", lambda: script.acknowledged == [None])
    assert read_topic(bootstrap, offsets_topic) == []
    script.polls = polls([record(1)])
    wait_until("the task is told of the next", lambda: script.acknowledged == [None, "1"])
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 2}}
    task.stop()


def passing(offset: int, *records: SourceRecord) -> Callable[[ScriptedTask], Polled]:
    """A poll that gives records and passes an offset."""

    def poll(task: ScriptedTask) -> Polled:
        task.context.pass_offset({"p": "p"}, {"o": offset})
        return records

    return poll


def test_offsets_without_records_go_with_a_transaction_or_alone_before_long(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    def is_kept(offset: int) -> bool:
        return kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": offset}}

    script.polls = [passing(5, record(0))]
    task = start(worker_props={"offset.flush.interval.ms": "60000"})
    wait_until("the task is told", lambda: script.acknowledged == ["0"])
    assert is_kept(5)
    script.polls = [passing(7)]
    wait_until("it is polled", lambda: not script.polls)
    assert is_kept(5), "it waits for records"
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    assert is_kept(7)
    task.send(messages.Resume())
    script.polls = [passing(9)]
    wait_until("it is polled again", lambda: not script.polls)
    task.stop()
    assert is_kept(9)
    script.polls = [passing(11)]
    task = start(worker_props={"offset.flush.interval.ms": "200"})
    wait_until("it is committed alone", lambda: is_kept(11))
    task.stop()
    assert texts(bootstrap, topic) == ["0"]


def test_an_interval_holds_several_batches_and_ends_with_the_task(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str
) -> None:
    script.polls = polls([record(0)], [record(1)])
    task = start(transaction_boundary="interval", transaction_boundary_interval_ms="60000")
    wait_until("both are there", lambda: texts(bootstrap, topic, "read_uncommitted") == ["0", "1"])
    assert texts(bootstrap, topic) == []
    assert script.acknowledged == []
    task.stop()
    assert texts(bootstrap, topic) == script.acknowledged == ["0", "1"]
    assert script.commits == 1


def test_an_interval_ends_while_the_source_has_nothing(start: Start, script: Script, record: Make) -> None:
    script.polls = polls([record(0)])
    task = start(transaction_boundary="interval", transaction_boundary_interval_ms="200")
    wait_until("it is committed", lambda: script.acknowledged == ["0"])
    task.stop()


def test_a_pause_commits(start: Start, script: Script, record: Make, bootstrap: str, topic: str) -> None:
    script.polls = polls([record(0)])
    task = start(transaction_boundary="interval", transaction_boundary_interval_ms="60000")
    wait_until("it is there", lambda: texts(bootstrap, topic, "read_uncommitted") == ["0"])
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    assert texts(bootstrap, topic) == ["0"]
    task.stop()


def test_a_connector_commits_and_aborts_within_a_batch(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    records = [record(number) for number in range(6)]

    def poll(task: ScriptedTask) -> Polled:
        transactions(task).commit_transaction(records[1])
        transactions(task).abort_transaction(records[3])
        return records

    script.polls = [poll]
    task = start(transaction_boundary="connector")
    wait_until("two are committed and two aborted", lambda: script.commits == 2)
    assert texts(bootstrap, topic) == ["0", "1"]
    assert script.acknowledged == ["0", "1", "2", "3"], "those that were aborted are done with, too"
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 4}}
    task.stop()
    assert texts(bootstrap, topic) == ["0", "1"], "the task has not ended the transaction of the last two"
    again = start(transaction_boundary="connector")
    again.wait_for(messages.Started)
    again.stop()
    assert script.found == [None, {"o": 4}], "so they come again"


def test_a_connector_ends_transactions_after_batches(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str
) -> None:
    def abort(task: ScriptedTask) -> Polled:
        transactions(task).abort_transaction()
        return [record(1)]

    def commit(task: ScriptedTask) -> Polled:
        transactions(task).commit_transaction()
        return [record(3)]

    script.polls = [*polls([record(0)]), abort, *polls([record(2)]), commit]
    task = start(transaction_boundary="connector")
    wait_until("the second is committed", lambda: script.acknowledged == ["0", "1", "2", "3"])
    task.stop()
    assert texts(bootstrap, topic) == ["2", "3"]


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_only_a_connector_that_defines_transactions_is_given_the_means(
    start: Start, script: Script, boundary: str
) -> None:
    def poll(task: ScriptedTask) -> Polled:
        script.acknowledged.append(task.context.transaction_context)
        return None

    script.polls = [poll]
    task = start(transaction_boundary=boundary)
    wait_until("it has polled", lambda: script.acknowledged == [None])
    task.stop()


def test_nothing_of_a_failed_batch_can_be_read(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    script.polls = polls([record(0)], [record(1), record(2, value=["not a string"], to=offsets_topic)])
    task = start()
    assert "Source tasks may not produce to their own offsets topics" in task.trace()
    assert texts(bootstrap, topic) == ["0"]
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 1}}


def test_what_the_producer_refuses_may_be_left_out(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    script.polls = polls([record(0), record(1, value="x" * 5_000), record(2)])
    task = start(errors_tolerance="all", producer_override_max_request_size="1000")
    wait_until("it is committed", lambda: script.commits)
    task.stop()
    assert texts(bootstrap, topic) == ["0", "2"]
    assert kept(bootstrap, offsets_topic) == {f'["{topic}",{{"p":"p"}}]': {"o": 3}}


def test_what_a_broker_refuses_fails_the_task_and_the_transaction(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    create_topic(bootstrap, f"{topic}-small", 1, **{"max.message.bytes": "1000"})
    script.polls = polls([record(0), record(1, value="x" * 5_000, to=f"{topic}-small")])
    trace = start(errors_tolerance="all").trace()
    assert "set producer.override.max.request.size" in trace
    assert texts(bootstrap, topic) == []
    assert read_topic(bootstrap, offsets_topic) == []


def test_a_transaction_that_takes_too_long_says_what_to_raise(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str
) -> None:
    def late(task: ScriptedTask) -> Polled:
        while script.commits == 0 and task.context.wait(0.05):
            pass
        return [record(1)]

    script.polls = [*polls([record(0)]), late]
    task = start(
        transaction_boundary="interval",
        transaction_boundary_interval_ms="60000",
        producer_override_transaction_timeout_ms="1000",
    )
    wait_until("it is there", lambda: texts(bootstrap, topic, "read_uncommitted") == ["0"])
    produce(bootstrap, topic, [b"after"])
    # What comes after a transaction cannot be read before Kafka has ended it.
    wait_until("the transaction is aborted", lambda: texts(bootstrap, topic) == ["after"], 60)
    script.commits = 1
    assert "Raise producer.override.transaction.timeout.ms, now 1000" in task.trace()
    assert texts(bootstrap, topic) == ["after"]


def test_own_offsets_win_over_those_of_the_worker(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str, offsets_topic: str
) -> None:
    own = f"{topic}-own"
    script.polls = polls([record(0)])
    task = start(offsets_storage_topic=own)
    task.offsets["{'p': 'p'}"] = {"o": 77}
    wait_until("it is committed", lambda: script.commits)
    wait_until("the worker has a copy", lambda: task.offsets == {"{'p': 'p'}": {"o": 1}})
    task.stop()
    assert kept(bootstrap, own) == {f'["{topic}",{{"p":"p"}}]': {"o": 1}}
    assert read_topic(bootstrap, offsets_topic) == []
    again = start(offsets_storage_topic=own)
    again.wait_for(messages.Started)
    again.stop()
    assert script.found[-1] == {"o": 1}


def test_own_offsets_are_kept_without_transactions_too(
    start: Start, script: Script, record: Make, bootstrap: str, topic: str
) -> None:
    own, disabled = f"{topic}-own", {"exactly.once.source.support": "disabled"}
    script.polls = polls([record(0)], [record(1)])
    task = start(worker_props=disabled, offsets_storage_topic=own)
    wait_until("the worker has a copy", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}})
    task.stop()
    assert kept(bootstrap, own) == {f'["{topic}",{{"p":"p"}}]': {"o": 2}}
    assert read_topic(bootstrap, own)[0].key() is not None
    again = start(worker_props=disabled, offsets_storage_topic=own)
    again.wait_for(messages.Started)
    again.stop()
    assert script.found[-1] == {"o": 2}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_text("".join(f"{number}\n" for number in range(LINES)))
    return path


@pytest.fixture
def process(topic: str, worker: dict[str, str], lines: Path) -> Iterator[StartProcess]:
    """Starts processes of one file source task."""
    connector = {
        "name": topic,
        "connector.class": "FileStreamSource",
        "file": str(lines),
        "topic": topic,
        "batch.size": "100",
        "run.until": "drained",
    }
    running: list[TaskProcess] = []

    def start_process(crash_point: str = "", **props: str) -> TaskProcess:
        own = {key.replace("_", "."): value for key, value in props.items()}
        running.append(TaskProcess({**connector, **own}, worker, crash_point=crash_point))
        return running[-1]

    yield start_process
    for each in running:
        each.close()


def assert_each_line_once(
    bootstrap: str, topic: str, offsets_topic: str, lines: Path, *more: str, position: int | None = None
) -> None:
    assert texts(bootstrap, topic) == [*(str(number) for number in range(LINES)), *more]
    (offset,) = kept(bootstrap, offsets_topic).values()
    assert offset == {"position": lines.stat().st_size if position is None else position}


def finish(process: StartProcess, **props: str) -> None:
    last = process(**props)
    last.wait_for(messages.Drained)
    last.stop()


@pytest.mark.parametrize("point", [*thorough("before-produce", "after-produce", "after-commit"), "after-offsets"])
def test_each_line_once_after_a_kill_at(
    point: str, process: StartProcess, bootstrap: str, topic: str, offsets_topic: str, lines: Path
) -> None:
    for crash in (f"{point}:1", f"{point}:17"):
        assert process(crash).join() == -signal.SIGKILL
    read = texts(bootstrap, topic)
    assert len(read) < LINES, "it was killed on the way"
    positions = [offset["position"] for offset in kept(bootstrap, offsets_topic).values()]
    assert positions == ([sum(len(text) + 1 for text in read)] if read else []), "offsets are those of the records"
    finish(process)
    assert_each_line_once(bootstrap, topic, offsets_topic, lines)


@pytest.mark.thorough
def test_each_line_once_after_kills_at_any_time(
    process: StartProcess, bootstrap: str, topic: str, offsets_topic: str, lines: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(4):
        task = process(batch_size="20")
        task.wait_for(messages.Started)
        before = len(read_topic(bootstrap, topic, isolation="read_uncommitted"))
        more = before + chance.randrange(1, 800)
        wait_until(
            "there is more",
            lambda more=more: len(read_topic(bootstrap, topic, isolation="read_uncommitted")) >= min(more, LINES),  # type: ignore[misc]
        )
        task.kill()
    finish(process)
    assert_each_line_once(bootstrap, topic, offsets_topic, lines)


def test_a_process_that_comes_back_is_fenced_and_doubles_nothing(
    process: StartProcess, bootstrap: str, topic: str, offsets_topic: str, lines: Path
) -> None:
    elder = process(run_until="stopped", transaction_boundary="interval", transaction_boundary_interval_ms="3000")
    wait_until("it has begun", lambda: texts(bootstrap, topic, "read_uncommitted"))
    elder.signal(signal.SIGSTOP)
    finish(process)
    assert_each_line_once(bootstrap, topic, offsets_topic, lines)
    with lines.open("a") as stream:
        stream.write("one more\n")
    elder.signal(signal.SIGCONT)
    trace = elder.wait_for(messages.Failed).trace
    assert "FencedError" in trace
    assert "another process runs this task now" in trace
    elder.join()
    assert_each_line_once(bootstrap, topic, offsets_topic, lines, position=lines.stat().st_size - len("one more\n"))
    finish(process)
    assert_each_line_once(bootstrap, topic, offsets_topic, lines, "one more")


@pytest.mark.parametrize("boundary", ["poll", *thorough("interval"), "connector"])
def test_records_that_are_left_out_are_in_the_dead_letter_queue_when_a_task_ends_that_sent_nothing(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str, boundary: str
) -> None:
    def poll(task: ScriptedTask) -> list[SourceRecord]:
        task.context.errant_record_reporter.report(record(0), DataError("no end of line"))
        return []

    script.polls = [poll]
    task = start(
        transaction_boundary=boundary,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        # Nothing goes before somebody waits for it.
        producer_override_linger_ms="20000",
    )
    wait_until("it is polled", lambda: not script.polls)
    task.stop()
    assert len(read_topic(bootstrap, f"dlq-{topic}")) == 1

"""Records that a sink task cannot take: reported, tried again, left out as far as is tolerated, or its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import pytest

from connect.config import Config
from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.transformation import Transformation
from equipment.brokers.topics import committed, create_topic, produce, read_topic
from equipment.scripts.sink_script import Script, ScriptedTask
from equipment.scripts.tasks import RunningTask, class_name
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]


class AlwaysLater(Transformation[Config]):
    """Needs something that is away."""

    tried: ClassVar[list[float]] = []
    """When it was called, in seconds."""

    def apply(self, record: SinkRecord) -> SinkRecord:
        self.tried.append(time.monotonic())
        raise RetriableError("the registry is away")


def numbers(first: int, end: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, end)]


@pytest.mark.parametrize("moment", ["put", "flush"])
def test_a_record_that_the_task_reports_goes_to_the_dead_letter_queue(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, moment: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"good", b"bad", b"good"])
    kept: list[Any] = []

    def report(task: ScriptedTask) -> None:
        reporter = task.context.errant_record_reporter
        assert reporter is not None
        for record in kept:
            if record.value == "bad":
                reporter.report(record, DataError("not fit"))
        kept.clear()

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        kept.extend(records)
        if moment == "put":
            report(task)

    script.put = put
    script.flush = lambda task, offsets: report(task)
    task = start(
        worker={"consumer.max.poll.records": "1"},
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    wait_until("all is committed", lambda: committed(bootstrap, group, topic) == [3])
    task.stop()
    [message] = read_topic(bootstrap, f"dlq-{topic}")
    assert (message.key(), message.value()) == (None, b"bad")
    headers = {name.removeprefix("__connect.errors."): value.decode() for name, value in message.headers()}
    assert headers.pop("exception.stacktrace").endswith("not fit\n")
    assert headers == {
        "topic": topic,
        "partition": "0",
        "offset": "1",
        "connector.name": topic,
        "task.id": "0",
        "stage": "TASK_PUT",
        "class.name": class_name(ScriptedTask),
        "exception.class.name": "connect.errors.DataError",
        "exception.message": "not fit",
    }


def test_a_dead_letter_queue_of_more_replicas_than_brokers_says_what_to_set(
    start: Start, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    trace = start(errors_deadletterqueue_topic_name=f"dlq-{topic}").trace()
    cause = trace.splitlines()[0]
    assert cause.startswith(f"Could not initialize dead letter queue with topic=dlq-{topic}: ")
    assert "Set errors.deadletterqueue.topic.replication.factor=1 for a single broker" in cause


def test_the_record_that_a_task_fails_with_is_in_the_dead_letter_queue(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"bad"])

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        assert task.context.errant_record_reporter is not None
        task.context.errant_record_reporter.report(next(iter(records)), DataError("too odd"))

    script.put = put
    task = start(
        errors_tolerance="none",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        # Nothing goes before somebody waits for it.
        producer_override_linger_ms="20000",
    )
    assert "Tolerance exceeded in error handler: too odd" in task.trace()
    assert [message.value() for message in read_topic(bootstrap, f"dlq-{topic}")] == [b"bad"]


def test_offsets_do_not_pass_a_record_that_the_dead_letter_queue_refuses(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"dlq-{topic}", **{"max.message.bytes": "100"})
    produce(bootstrap, topic, [b"{" + b"x" * 1000])
    task = start(
        value_converter="JsonConverter",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
    )
    assert "did not take a record" in task.trace()
    assert committed(bootstrap, group, topic) == [-1001]


@pytest.mark.parametrize(("key", "limit"), [("errors_tolerance_limit", 2), ("errors_tolerance_rate", 2)])
def test_a_task_fails_when_it_leaves_out_more_than_is_tolerated(
    start: Start, script: Script, bootstrap: str, topic: str, key: str, limit: int
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1", b"{", b"{"])
    task = start(
        value_converter="JsonConverter",
        **{"value.converter.schemas.enable": "false", key: str(limit)},
        errors_tolerance="all",
    )
    wait_until("two are tolerated", lambda: script.values() == [1])
    produce(bootstrap, topic, [b"2", b"{"])
    assert f"{key.replace('_', '.')}={limit}" in task.trace()


def test_a_stop_while_a_record_waits_to_be_tried_again_does_not_give_it_up(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    """``errors.retry.timeout=-1`` promises that the record is never given up, ``errors.tolerance=all`` or not."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 3))
    tried = AlwaysLater.tried = []
    task = start(
        errors_tolerance="all",
        errors_retry_timeout="-1",
        errors_retry_delay_max_ms="30",
        transforms="later",
        **{"transforms.later.type": f"{__name__}.AlwaysLater"},
    )
    wait_until("it was tried again", lambda: len(tried) > 2)
    task.send(messages.Pause())
    before = len(tried)
    wait_until("it is tried while a pause waits", lambda: len(tried) > before + 2)
    task.stop()
    assert script.values() == []
    assert committed(bootstrap, group, topic) == [-1001]
    assert task.metric("total-records-skipped") == 0


def test_a_record_is_tried_again_for_as_long_as_is_asked(
    start: Start, script: Script, bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 1))
    tried = AlwaysLater.tried = []
    task = start(
        errors_retry_timeout="200",
        errors_retry_delay_max_ms="20",
        transforms="later",
        **{"transforms.later.type": f"{__name__}.AlwaysLater"},
    )
    assert "Tolerance exceeded in error handler: the registry is away" in task.trace()
    assert len(tried) > 1
    assert tried[-1] - tried[0] > 0.15


def test_an_error_of_open_fails_the_task(start: Start, script: Script, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)

    def fail(task: ScriptedTask, partitions: Collection[TopicPartition]) -> None:
        raise ConnectError("the table is gone")

    script.open = fail
    assert "the table is gone" in start().trace()


@pytest.mark.parametrize(
    "error",
    [OSError("the disk is full"), ConnectError("the value is too long"), DataError("the value is too long")],
    ids=["system", "connect", "data"],
)
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_an_error_of_flush_that_is_not_retriable_fails_the_task(
    start: Start, script: Script, bootstrap: str, topic: str, group: str, error: Exception, tolerance: str
) -> None:
    """It would come again at each commit, while the status says that the task runs."""
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1"])

    def flush(task: ScriptedTask, offsets: Mapping[TopicPartition, int]) -> None:
        raise error

    script.flush = flush
    assert str(error) in start(errors_tolerance=tolerance).trace()
    assert script.values() == ["1"], "it was not put again"
    assert script.names()[-2:] == ["close", "stop"]
    assert committed(bootstrap, group, topic) == [-1001]


def test_an_error_of_the_last_flush_fails_the_task_that_stops(
    start: Start, script: Script, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1"])

    def flush(task: ScriptedTask, offsets: Mapping[TopicPartition, int]) -> None:
        raise ConnectError("the value is too long")

    script.flush = flush
    task = start(worker={"offset.flush.interval.ms": "60000"})
    wait_until("it was put", lambda: script.values() == ["1"])
    task.send(messages.Stop())
    assert "the value is too long" in task.trace()
    assert script.names()[-2:] == ["close", "stop"]
    assert committed(bootstrap, group, topic) == [-1001]


def test_errors_hold_no_secrets(
    start: Start, script: Script, bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, numbers(0, 1))

    def put(task: ScriptedTask, records: SinkBatch) -> None:
        try:
            raise OSError('login with hunter"2 failed')
        except OSError as error:
            raise ConnectError(f"no login: {error!r} {task.config.originals}") from error

    script.put = put
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter\\"2";'
    with caplog.at_level(logging.DEBUG):
        trace = start(**{"consumer.override.sasl.jaas.config": jaas}).trace()
    assert "no login" in trace
    assert "hunter" not in trace

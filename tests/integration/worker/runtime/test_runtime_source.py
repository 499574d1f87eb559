"""The loop of a source task on a real broker, with tasks that do as each test says."""

from __future__ import annotations

import datetime
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from connect.data import Headers, SourceRecord
from connect.errors import DataError, RetriableError
from connect.source import Delivered
from equipment.brokers.topics import admin_client, create_topic, read_topic
from equipment.scripts.source_script import LastingConnector, Polled, Script, ScriptedConnector, ScriptedTask
from equipment.scripts.tasks import RunningTask, class_name
from equipment.waiting import wait_until
from worker.messages import messages

Start = Callable[..., RunningTask]


class TellingTask(ScriptedTask):
    """A task that wants to know where its records lie."""

    def delivered(self, delivered: Delivered) -> None:
        place, found = delivered.source_partition, (delivered.source_offsets, delivered.offsets)
        self.script.acknowledged.append((place, delivered.topic, *map(list, found)))
        raise DataError("nobody minds")


class TellingConnector(ScriptedConnector):
    """Its task wants to know."""

    task_class = TellingTask


def texts(bootstrap: str, topic: str) -> list[str]:
    return [message.value().decode() for message in read_topic(bootstrap, topic)]


def lower_limit(bootstrap: str, topic: str, limit: int) -> None:
    """Have a topic take smaller batches from now on."""
    entry = ConfigEntry("max.message.bytes", str(limit), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(30)


def failing(error: BaseException) -> Callable[[ScriptedTask], Polled]:
    def poll(_: ScriptedTask) -> Polled:
        raise error

    return poll


def test_what_is_acknowledged_is_committed_and_the_task_is_told(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0), record(1)], lambda task: iter([record(0, partition="q")])]
    task = start()
    wait_until("both are committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}, "{'p': 'q'}": {"o": 1}})
    wait_until("the task is told", lambda: script.acknowledged == ["0", "1", "0"] and script.commits)
    task.stop()
    assert script.stopped == 1
    assert texts(bootstrap, topic) == ["0", "1", "0"]


def test_offsets_without_records_are_committed_after_the_records_before_them(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)

    def poll(task: ScriptedTask) -> Polled:
        task.context.pass_offset({"p": "p"}, {"o": 7})
        task.context.pass_offset({"p": "q"}, {"o": 9})
        return [record(0)]

    script.polls = [poll]
    task = start()
    wait_until("both are committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 7}, "{'p': 'q'}": {"o": 9}})
    assert texts(bootstrap, topic) == script.acknowledged == ["0"]

    def unstorable(task: ScriptedTask) -> Polled:
        task.context.pass_offset({"p": "p"}, {"o": float("nan")})
        return None

    script.polls = [unstorable]
    assert "finite numbers" in task.wait_for(messages.Failed).trace


def test_a_task_is_told_where_its_records_lie(
    start: Start, topic: str, script: Script, record: Callable[..., SourceRecord]
) -> None:
    polled = [record(0), record(1, "x" * 5000), record(2), record(3, partition="q")]
    script.polls.append(lambda _: polled)
    task = start(
        connector_class=class_name(TellingConnector),
        errors_tolerance="all",
        producer_override_max_request_size="1000",
    )
    wait_until("both partitions are committed", lambda: len(task.offsets) == 2)
    task.stop()
    told = [each for each in script.acknowledged if isinstance(each, tuple)]
    assert sorted(told, key=lambda each: str(each[0])) == [
        ({"p": "p"}, topic, [{"o": 1}, {"o": 2}, {"o": 3}], [0, None, 1]),
        ({"p": "q"}, topic, [{"o": 4}], [2]),
    ]


def test_records_wait_for_a_full_queue_and_stay_in_order(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(number) for number in range(200)]]
    task = start(producer_override_queue_buffering_max_messages="10")
    wait_until("all are committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 200}})
    task.stop()
    assert texts(bootstrap, topic) == [str(number) for number in range(200)]


def test_what_a_task_has_left_when_it_is_told_to_stop_is_published(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    """More than the producer's queue holds."""
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)]]
    script.last = lambda task: (record(number, "x" * 1000) for number in range(1, 5001))
    props = {"producer.override.buffer.memory": str(2_000_000)}
    task = start(connector_class=class_name(LastingConnector), **props)
    wait_until("it has polled", lambda: not script.polls)
    task.stop()
    assert len(texts(bootstrap, topic)) == 5001
    assert task.offsets == {"{'p': 'p'}": {"o": 5001}}
    assert script.stopped == 1


def test_a_task_that_cannot_be_polled_for_the_last_time_stops_nevertheless(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)

    def last(task: ScriptedTask) -> Iterator[SourceRecord]:
        yield record(1)
        raise RetriableError("not now")

    script.polls, script.last = [lambda task: [record(0)]], last
    task = start(connector_class=class_name(LastingConnector))
    wait_until("it has polled", lambda: not script.polls)
    task.stop()
    assert texts(bootstrap, topic) == ["0", "1"]


def test_a_task_whose_commit_fails_goes_on(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.on_commit = lambda: 1 // 0  # type: ignore[assignment, return-value]
    script.polls = [lambda task: [record(0)]]
    task = start()
    wait_until("it was told", lambda: script.commits)
    script.polls = [lambda task: [record(1)]]
    wait_until("it goes on", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}})
    task.stop()


def test_a_commit_that_fails_is_made_again_and_the_task_not_told_before(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)]]
    task = start(commit_error="the disk is full")
    task.wait_for(messages.CommitOffsets, 1)
    # As long as Kafka has acknowledged nothing, it is told that nothing was to be committed.
    told = script.commits
    task.wait_for(messages.CommitOffsets, 3)
    assert script.commits == told
    task.commit_error = None
    wait_until("it is committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 1}})
    task.stop()


def test_a_store_that_fails_at_the_end_is_asked_once(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)]]
    task = start(worker={"offset.flush.interval.ms": "60000"})
    wait_until("it is acknowledged", lambda: script.acknowledged == ["0"])
    task.commit_error = "the disk is full"
    task.stop()
    assert len(task.seen(messages.CommitOffsets)) == 1


@pytest.mark.parametrize("error", [SystemExit("no more"), KeyboardInterrupt("no more"), OSError("no more")])
def test_what_was_sent_before_a_failure_is_committed(
    start: Start,
    script: Script,
    record: Callable[..., SourceRecord],
    bootstrap: str,
    topic: str,
    error: BaseException,
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)], failing(error)]
    task = start(worker={"offset.flush.interval.ms": "60000"})
    assert f"{type(error).__name__}: no more" in task.trace()
    assert task.offsets == {"{'p': 'p'}": {"o": 1}}
    assert script.stopped == 1


def test_what_a_generator_gave_before_it_failed_is_sent(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)

    def poll(_: ScriptedTask) -> Iterator[SourceRecord]:
        yield record(0)
        raise RetriableError("later", retry_after=0.01)

    script.polls = [poll, lambda task: [record(1)]]
    task = start(run_until="drained")
    task.wait_for(messages.Drained)
    assert texts(bootstrap, topic) == ["0", "1"]


def test_a_poll_that_gives_records_may_say_when_there_will_be_more(
    start: Start, script: Script, record: Callable[..., SourceRecord]
) -> None:
    polled: list[float] = []

    def gather(task: ScriptedTask) -> Polled:
        polled.append(time.monotonic())
        task.context.poll_when_readable([], 0.2)
        return [record(len(polled))]

    script.polls = [gather, gather]
    task = start()
    wait_until("both are committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 3}})
    assert polled[1] - polled[0] >= 0.2


def test_a_poll_that_is_to_be_made_again_is_not_the_end(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [failing(RetriableError("later", retry_after=0.01)), lambda task: [record(0)]]
    task = start(run_until="drained")
    task.wait_for(messages.Drained)
    assert texts(bootstrap, topic) == ["0"]
    assert task.offsets == {"{'p': 'p'}": {"o": 1}}


def test_offsets_go_on_being_committed_while_a_poll_waits_to_be_made_again(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)], failing(RetriableError("much later", retry_after=3600))]
    task = start()
    wait_until("it is committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 1}})
    task.stop()


@pytest.mark.parametrize(
    ("polled", "given"), [([{"a": 1}], "a dict"), (7, "a int"), (SourceRecord("t"), "one SourceRecord")]
)
def test_a_poll_that_gives_no_records_fails_the_task_and_says_what_it_gives(
    start: Start, script: Script, polled: Any, given: str
) -> None:
    script.polls = [lambda task: polled]
    assert f"returned {given}; it has to return records (SourceRecord)" in start().trace()


def test_a_record_without_a_topic_fails_the_task(start: Start, script: Script) -> None:
    script.polls = [lambda task: [SourceRecord("", "value")]]
    assert "A record has the invalid topic name ''" in start().trace()


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_record_that_kafka_refuses_fails_the_task_or_is_left_out(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str, tolerance: str
) -> None:
    """Those that are sent in one batch with it are not at fault, and arrive."""
    create_topic(bootstrap, topic, **{"max.message.bytes": "200"})
    script.polls = [lambda task: [record(0)], lambda task: [record(1, "x" * 1000)] * 3, lambda task: [record(2)]]
    task = start(errors_tolerance=tolerance, **{"producer.override.linger.ms": "100"})
    if tolerance == "none":
        assert "Kafka did not take a record" in task.trace()
        assert "Raise producer.override.max.request.size" in task.trace()
        assert task.offsets == {"{'p': 'p'}": {"o": 1}}, "what came before it is committed"
    else:
        wait_until("it is passed", lambda: task.offsets == {"{'p': 'p'}": {"o": 3}})
        task.stop()
        wait_until("they are counted", lambda: task.metric("total-records-skipped") == 3)
    taken = 1 + (tolerance == "all")
    wait_until("what was taken is counted", lambda: task.metric("source-record-write-total") == taken)
    assert texts(bootstrap, topic)[:1] == ["0"]
    assert len(texts(bootstrap, topic)) == taken


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_record_without_a_key_for_a_compacted_topic_says_so_and_is_alone_at_fault(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str, tolerance: str
) -> None:
    """The broker refuses the whole batch for it, and says only that it failed to validate a record."""
    create_topic(bootstrap, topic, **{"cleanup.policy": "compact"})
    script.polls = [
        lambda task: [record(number).replace(key=None if number == 2 else f"k{number}") for number in range(4)]
    ]
    task = start(errors_tolerance=tolerance, **{"producer.override.linger.ms": "100"})
    if tolerance == "none":
        trace = task.trace()
        assert f"Kafka did not take a record for topic {topic}: Broker: Broker failed to validate record." in trace
        assert f"The key of the record is null, and if topic {topic} is compacted (cleanup.policy=compact)" in trace
        return
    wait_until("it is passed", lambda: task.offsets == {"{'p': 'p'}": {"o": 4}})
    task.stop()
    assert texts(bootstrap, topic) == ["0", "1", "3"]
    wait_until("it alone is counted", lambda: task.metric("total-records-skipped") == 1)


def test_records_are_counted_as_written_when_kafka_has_them(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    """As in Kafka Connect; until then they are active, also those without a source partition."""
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0), record(1)], lambda task: [SourceRecord(topic, "2")]]
    task = start(**{"producer.override.linger.ms": "60000"})
    wait_until("they are polled", lambda: task.metric("source-record-poll-total") == 3)
    assert (task.metric("source-record-write-total"), task.metric("source-record-active-count")) == (0, 3)
    task.stop()
    wait_until("they are written", lambda: task.metric("source-record-write-total") == 3)
    assert task.metric("source-record-active-count") == 0


@pytest.mark.parametrize("worker", [{}, {"topic.creation.enable": "false"}])
def test_records_stay_in_order_on_a_topic_that_takes_smaller_batches_than_the_producer_makes(
    start: Start,
    script: Script,
    record: Callable[..., SourceRecord],
    bootstrap: str,
    topic: str,
    worker: Mapping[str, str],
) -> None:
    """A batch that is refused would be sent again behind those that went after it; Java's producer divides it."""
    create_topic(bootstrap, topic, **{"max.message.bytes": "2000"})
    ends = [100, 3100]
    script.polls = [
        lambda task, run=range(*run): [record(number, f"{number:04}" + "x" * 96) for number in run]  # type: ignore[misc]
        for run in itertools.pairwise([0, *ends])
    ]
    task = start(run_until="drained", worker=worker, **{"producer.override.linger.ms": "0"})
    task.wait_for(messages.Drained)
    seen = [text[:4] for text in texts(bootstrap, topic)]
    assert len(seen) == ends[-1]
    assert seen == sorted(seen)


def test_a_record_that_is_sent_again_alone_is_the_same_record(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    """The broker refuses the batch they are in; the client forgets what their headers and timestamps were."""
    create_topic(bootstrap, topic)
    given = [
        record(number, "x" * 100).replace(
            key=str(number), timestamp=1_700_000_000_000 + number, headers=Headers().add("number", number)
        )
        for number in range(5)
    ]
    began = int(time.time() * 1000)

    def poll(_: ScriptedTask) -> Polled:
        lower_limit(bootstrap, topic, 300)
        return [*given, record(5, "y" * 100), record(6, "z" * 100)]

    script.polls = [lambda task: [record(0)], poll]
    task = start(run_until="drained", **{"producer.override.linger.ms": "100"})
    task.wait_for(messages.Drained)
    _, *dated, undated, last = read_topic(bootstrap, topic)
    seen = [(message.key(), message.timestamp()[1], message.headers()) for message in dated]
    assert seen == [
        (str(number).encode(), 1_700_000_000_000 + number, [("number", str(number).encode())]) for number in range(5)
    ]
    assert [(message.value()[:1], message.timestamp()[1] >= began) for message in (undated, last)] == [
        (b"y", True),
        (b"z", True),
    ]


def test_a_topic_that_is_gone_fails_the_task_although_records_may_be_left_out(
    start: Start, script: Script, record: Callable[..., SourceRecord], topic: str
) -> None:
    """It is not the record that is at fault: leaving out all that comes would be a loss (I4)."""
    script.polls = [lambda task: [record(0, to="no such topic")]]
    task = start(errors_tolerance="all", worker={"topic.creation.enable": "false"})
    assert "Kafka did not take a record" in task.trace()
    assert "max.request.size" not in task.trace()
    assert task.offsets == {}


def test_records_that_are_left_out_go_to_the_dead_letter_queue_before_offsets_pass_them(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)

    def poll(task: ScriptedTask) -> Polled:
        task.context.errant_record_reporter.report(record(0, "half a li"), DataError("no end of line"))
        return [record(1)]

    script.polls = [poll]
    task = start(
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    wait_until("it is committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}})
    [message] = read_topic(bootstrap, f"dlq-{topic}")
    assert message.value() == b"half a li"
    headers = dict(message.headers())
    assert headers["__connect.errors.source.offset"] == b'{"o":1}'
    assert headers["__connect.errors.exception.message"] == b"no end of line"
    task.stop()


def test_records_that_are_left_out_are_in_the_dead_letter_queue_when_a_task_ends_that_sent_nothing(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)

    def poll(task: ScriptedTask) -> Polled:
        for number in range(3):
            task.context.errant_record_reporter.report(record(number), DataError("no end of line"))
        return None

    script.polls = [poll]
    task = start(
        run_until="drained",
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_topic_replication_factor="1",
    )
    task.wait_for(messages.Drained)
    assert len(read_topic(bootstrap, f"dlq-{topic}")) == 3
    task.stop()


def test_a_dead_letter_queue_that_refuses_a_record_fails_a_task_that_sends_nothing(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, f"dlq-{topic}", **{"max.message.bytes": "200"})

    def poll(task: ScriptedTask) -> Polled:
        task.context.errant_record_reporter.report(record(0, "x" * 1000), DataError("no end of line"))
        return None

    script.polls = [poll]
    task = start(errors_tolerance="all", errors_deadletterqueue_topic_name=f"dlq-{topic}")
    assert "did not take a record" in task.trace()


def test_offsets_do_not_pass_a_record_that_the_dead_letter_queue_refuses(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"dlq-{topic}", **{"max.message.bytes": "200"})

    def poll(task: ScriptedTask) -> Polled:
        task.context.errant_record_reporter.report(record(0, "x" * 1000), DataError("no end of line"))
        return [record(1)]

    script.polls = [poll]
    task = start(errors_tolerance="all", errors_deadletterqueue_topic_name=f"dlq-{topic}")
    assert "did not take a record" in task.trace()
    assert task.offsets == {}


def test_a_record_that_kafka_refuses_goes_to_the_dead_letter_queue_as_it_was_to_be_on_its_topic(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic, **{"max.message.bytes": "200"})
    create_topic(bootstrap, f"dlq-{topic}")
    headers = Headers().add("about", "size")
    large = record(0, "x" * 1000).replace(key="k", timestamp=1_700_000_000_000, headers=headers)
    unheard = record(1, "y").replace(partition=7)
    script.polls = [lambda task: [large, unheard, record(2)]]
    task = start(
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"dlq-{topic}",
        errors_deadletterqueue_context_headers_enable="true",
    )
    wait_until("it is committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 3}})
    task.stop()
    assert texts(bootstrap, topic) == ["2"]
    kept = {message.value(): message for message in read_topic(bootstrap, f"dlq-{topic}")}
    assert set(kept) == {b"x" * 1000, b"y"}
    message = kept[b"x" * 1000]
    context = dict(message.headers())
    assert (message.key(), message.timestamp()[1], context["about"]) == (b"k", 1_700_000_000_000, b"size")
    assert context["__connect.errors.stage"] == b"KAFKA_PRODUCE"
    assert context["__connect.errors.topic"] == topic.encode()
    assert context["__connect.errors.source.partition"] == b'{"p":"p"}'
    assert b"Kafka did not take a record" in context["__connect.errors.exception.message"]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_timestamp_of_before_1970_is_refused_as_by_javas_producer(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str, tolerance: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0).replace(timestamp=5), record(1).replace(timestamp=-5)]]
    task = start(errors_tolerance=tolerance)
    if tolerance == "none":
        assert "Invalid record timestamp -5" in task.trace()
    else:
        wait_until("it is passed", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}})
        task.stop()
    assert texts(bootstrap, topic) == ["0"]


def test_a_record_without_a_timestamp_gets_that_of_its_sending(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    """As in Java that is -1, too. The client takes 0 for now: it is the next millisecond on the topic."""
    create_topic(bootstrap, topic)
    began = time.time() * 1000
    script.polls = [lambda task: [record(0).replace(timestamp=stamp) for stamp in (None, -1, 0, 1)]]
    task = start(run_until="drained")
    task.wait_for(messages.Drained)
    unset, minus_one, *given = [message.timestamp()[1] for message in read_topic(bootstrap, topic)]
    assert min(unset, minus_one) >= int(began)
    assert given == [1, 1]


@pytest.mark.parametrize("value", [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), b"x", [1], float("nan")])
def test_an_offset_that_would_come_back_as_another_value_is_refused(
    start: Start, script: Script, bootstrap: str, topic: str, value: object
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [SourceRecord(topic, "v", source_partition={"p": 1}, source_offset={"at": value})]]
    task = start()
    assert "Offsets may only contain" in task.trace()
    assert task.offsets == {}


def test_offsets_are_committed_while_the_task_is_paused(
    start: Start, script: Script, record: Callable[..., SourceRecord], bootstrap: str, topic: str
) -> None:
    create_topic(bootstrap, topic)
    script.polls = [lambda task: [record(0)]]
    task = start()
    task.commit_error = "the disk is full"
    task.wait_for(messages.CommitOffsets)
    task.send(messages.Pause())
    task.wait_for(messages.Paused)
    task.commit_error = None
    wait_until("it is committed", lambda: task.offsets == {"{'p': 'p'}": {"o": 1}})
    script.polls = [lambda task: [record(1)]]
    task.send(messages.Resume())
    wait_until("it goes on", lambda: task.offsets == {"{'p': 'p'}": {"o": 2}})
    task.stop()


def test_a_trace_that_utf8_cannot_say_arrives(start: Start, script: Script) -> None:
    script.polls = [failing(OSError("no file caf\udce9.txt"))]
    assert "no file caf\\udce9.txt" in start().trace()


def test_a_very_long_trace_arrives_shortened(start: Start, script: Script) -> None:
    script.polls = [failing(OSError("x" * 10_000_000))]
    trace = start().trace()
    assert len(trace) < 100_000
    assert "characters are left out here" in trace

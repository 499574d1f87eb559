"""The contexts of the contract kit behave as the runtime's do."""

from __future__ import annotations

import threading
import time

import pytest

from connect.data import SinkRecord, SourceRecord, TopicPartition
from connect.errors import ConnectError, DataError
from connect.testing import (
    ConnectorTestContext,
    ErrantRecords,
    SinkTaskTestContext,
    SourceTaskTestContext,
    StoredOffsets,
    TransactionEnds,
)

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def test_offsets_are_kept_by_source_partition() -> None:
    offsets = StoredOffsets([({"file": "a"}, {"line": 1})])
    offsets.keep(SourceRecord("t", source_partition={"file": "b"}, source_offset={"line": n}) for n in (1, 2))
    assert offsets.offset({"file": "a"}) == {"line": 1}
    assert offsets.offsets([{"file": "b"}, {"file": "c"}]) == [{"line": 2}, None]
    assert offsets.items() == [({"file": "a"}, {"line": 1}), ({"file": "b"}, {"line": 2})]


def test_the_order_of_a_source_partition_counts_as_in_kafka() -> None:
    offsets = StoredOffsets([({"a": 1, "b": 2}, {"n": 1})])
    assert offsets.offset({"b": 2, "a": 1}) is None


def test_a_record_without_a_source_partition_leaves_no_trace() -> None:
    offsets = StoredOffsets()
    offsets.keep([SourceRecord("t", source_offset={"n": 1})])
    assert offsets.items() == []


@pytest.mark.parametrize("offset", [{"n": [1]}, {"n": b"1"}, {1: "n"}])
def test_an_offset_that_cannot_be_kept_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(DataError, match="cannot be stored"):
        StoredOffsets([({"file": "a"}, offset)])


def test_a_wait_is_cut_short_and_noted() -> None:
    context = SourceTaskTestContext()
    started = time.monotonic()
    assert context.wait(60)
    assert time.monotonic() - started < 5
    assert context.waits == [60]


def test_a_wait_ends_when_the_task_is_stopped_from_another_thread() -> None:
    context = SinkTaskTestContext(longest_wait=60)
    stopper = threading.Thread(target=context.stop)
    stopper.start()
    assert not context.wait(60)
    stopper.join()


def test_reporting_an_errant_record_raises_unless_errors_are_tolerated() -> None:
    record, error = SourceRecord("t"), DataError("what")
    tolerant, strict = SourceTaskTestContext(tolerate_errors=True), SourceTaskTestContext()
    tolerant.errant_record_reporter.report(record, error)
    assert tolerant.errant_record_reporter.reported == [(record, error)]
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler: what"):
        strict.errant_record_reporter.report(record, error)


def test_a_sink_task_has_no_reporter_unless_it_is_given_one() -> None:
    reporter: ErrantRecords[SinkRecord] = ErrantRecords(tolerate=True)
    assert SinkTaskTestContext().errant_record_reporter is None
    assert SinkTaskTestContext(errant_record_reporter=reporter).errant_record_reporter is reporter


def test_what_a_sink_task_asks_for_can_be_looked_at() -> None:
    context = SinkTaskTestContext([FIRST, SECOND])
    context.offset({FIRST: 5})
    context.timeout(3)
    context.request_commit()
    context.pause(FIRST, SECOND)
    context.resume(SECOND)
    assert context.rewinds == {FIRST: 5}
    assert context.retry_after == 3
    assert context.commit_requested
    assert context.paused == {FIRST}


def test_only_partitions_of_the_assignment_can_be_paused() -> None:
    with pytest.raises(ConnectError, match="is not assigned to the task"):
        SinkTaskTestContext([FIRST]).pause(SECOND)


def test_what_a_connector_asks_for_can_be_looked_at() -> None:
    context, error = ConnectorTestContext(), ConnectError("lost")
    context.request_task_reconfiguration()
    context.raise_error(error)
    assert context.reconfigurations == 1
    assert context.errors == [error]


def test_transaction_ends_are_noted() -> None:
    ends, record = TransactionEnds(), SourceRecord("t")
    context = SourceTaskTestContext(transactions=ends)
    assert context.transaction_context is not None
    context.transaction_context.commit_transaction(record)
    context.transaction_context.abort_transaction()
    assert (ends.committed, ends.aborted) == ([record], [None])


def test_passed_offsets_are_told_once() -> None:
    context = SourceTaskTestContext()
    context.pass_offset({"file": "a"}, {"line": 5})
    assert context.take_passed() == [({"file": "a"}, {"line": 5})]
    assert context.take_passed() == []

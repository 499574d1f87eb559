"""Where transactions of exactly-once sources end."""

from __future__ import annotations

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError
from worker.runtime.source.transactions import (
    ConnectorBoundary,
    Ending,
    IntervalBoundary,
    PollBoundary,
    TransactionRequests,
    portions,
)


def record(number: int) -> SourceRecord:
    return SourceRecord("t", number, source_partition={"p": 1}, source_offset={"o": number})


RECORDS = [record(number) for number in range(5)]


def cut(boundary: ConnectorBoundary | PollBoundary) -> list[tuple[list[int], Ending | None]]:
    return [([item.value for item in part], ending) for part, ending in portions(RECORDS, boundary)]


def test_poll_ends_with_every_batch_and_nowhere_else() -> None:
    boundary = PollBoundary()
    assert not boundary.cuts_batches
    assert cut(boundary) == [([0, 1, 2, 3, 4], None)]
    assert boundary.after_batch(0.0) is Ending.COMMIT
    assert boundary.while_idle(0.0) is None
    assert boundary.at_end(0.0) is Ending.COMMIT


def test_an_interval_ends_with_the_batch_after_it_or_while_there_is_none() -> None:
    boundary = IntervalBoundary(10.0, 100.0)
    assert boundary.after_batch(109.9) is None
    assert boundary.after_batch(112.0) is Ending.COMMIT
    assert boundary.after_batch(121.9) is None, "it begins again where it ended"
    assert boundary.while_idle(122.0) is Ending.COMMIT
    assert boundary.at_end(122.1) is Ending.COMMIT


def test_a_connector_ends_transactions_after_records() -> None:
    requests = TransactionRequests()
    boundary = ConnectorBoundary(requests)
    requests.commit_transaction(RECORDS[1])
    requests.abort_transaction(RECORDS[3])
    assert boundary.cuts_batches
    assert cut(boundary) == [([0, 1], Ending.COMMIT), ([2, 3], Ending.ABORT), ([4], None)]
    assert not requests.of_records, "what came about is forgotten"
    assert cut(boundary) == [([0, 1, 2, 3, 4], None)]


def test_a_record_is_found_again_by_what_it_holds() -> None:
    requests = TransactionRequests()
    requests.commit_transaction(record(4))
    assert cut(ConnectorBoundary(requests)) == [([0, 1, 2, 3, 4], Ending.COMMIT)]


def test_a_record_at_the_same_place_with_another_value_is_another() -> None:
    requests = TransactionRequests()
    requests.commit_transaction(RECORDS[2].replace(value="other"))
    assert cut(ConnectorBoundary(requests)) == [([0, 1, 2, 3, 4], None)]
    assert requests.of_records, "it is still to come"


def test_a_connector_ends_transactions_after_batches_once() -> None:
    requests = TransactionRequests()
    boundary = ConnectorBoundary(requests)
    assert boundary.after_batch(0.0) is None
    requests.abort_transaction()
    assert boundary.while_idle(0.0) is None, "it is of the batch that is yet to come"
    assert boundary.after_batch(0.0) is Ending.ABORT
    assert boundary.after_batch(0.0) is None
    assert boundary.at_end(0.0) is None
    requests.commit_transaction()
    assert boundary.at_end(0.0) is Ending.COMMIT


@pytest.mark.parametrize("what", [RECORDS[0], None])
def test_to_commit_and_to_abort_is_a_mistake(what: SourceRecord | None) -> None:
    requests = TransactionRequests()
    requests.commit_transaction(what)
    requests.abort_transaction(what)
    boundary = ConnectorBoundary(requests)
    with pytest.raises(ConnectError, match="requested a commit and an abort of the transaction after the same"):
        if what is None:
            boundary.after_batch(0.0)
        else:
            cut(boundary)

"""Distributed transactions in logs as servers sent them: what is passed on, what is kept, and where it is read again.

The logs have: one of a row that is prepared and committed, one that is rolled back, and one that is committed at once.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from connect.errors import ConnectError
from connectors.cdc.mysql.binlog import events
from connectors.cdc.mysql.binlog.log import Began, Committed, Log, LogEvent, Resolved, RowsChanged
from connectors.cdc.mysql.position import Position, PreparedPlace
from connectors.cdc.mysql.prepared import PreparedTransactions

PRODUCTS: Final = ("mysql", "mariadb")
FIRST: Final = "X'7831',X'6231',7"


def logged(product: str) -> list[LogEvent]:
    """Return what a log says, as it is written."""
    data: dict[str, Any] = json.loads(Path(__file__).with_name(f"{product}_distributed_log.json").read_text("utf-8"))
    log = Log(data["file"], data["position"], is_mariadb=product == "mariadb")
    return [event for text in data["events"] for event in log.read(base64.b64decode(text))]


def never(xid: str | None, place: PreparedPlace | None, _: int) -> Iterator[LogEvent | None]:
    """Read nothing again."""
    raise AssertionError((xid, place))


def passed(prepared: PreparedTransactions, given: Sequence[LogEvent], changed: Any = never) -> list[LogEvent | None]:
    """Return what is passed on in place of events."""
    found: list[LogEvent | None] = []
    for event in given:
        found += prepared.passed_on(event, None, changed) if prepared.concern(event) else [event]
    return found


def names(found: Sequence[LogEvent | None]) -> list[str]:
    return [type(event).__name__ for event in found]


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_log_tells_where_a_transaction_is_prepared_and_how_it_ends(product: str) -> None:
    found = logged(product)

    prepared = [event.prepared for event in found if isinstance(event, Committed)]
    assert prepared == [FIRST, None, "X'7832',X'6232',7", None, None]
    ends = [(event.xid, event.is_committed) for event in found if isinstance(event, Resolved)]
    assert ends == [(FIRST, True), ("X'7832',X'6232',7", False)]
    begins = [(event.is_distributed, event.is_statement) for event in found if isinstance(event, Began)]
    # MariaDB logs one that is committed at once like any other.
    assert begins == [(True, False), (False, False), (True, False), (False, True), (product == "mysql", False)]


@pytest.mark.parametrize("product", PRODUCTS)
def test_changes_are_passed_on_where_they_are_committed_at_the_place_of_that(product: str) -> None:
    given = logged(product)
    prepared = PreparedTransactions(())

    found = passed(prepared, given)

    nothing, changed = ["Began", "Committed"], ["Began", "RowsChanged", "Committed"]
    assert names(found) == [*nothing, *changed, *nothing, *nothing, *changed]
    begins = [event for event in found if isinstance(event, Began)]
    rows = [event for event in found if isinstance(event, RowsChanged)]
    ends = [event for event in given if isinstance(event, Resolved)]
    assert rows[0].position == ends[0].position == begins[1].position
    # Only the transactions with changes are told in the topic of transactions.
    assert [event.is_statement for event in begins] == [True, False, True, True, False]
    assert prepared.text == ""


@pytest.mark.parametrize("product", PRODUCTS)
def test_offsets_have_the_places_of_what_is_prepared(product: str) -> None:
    given = logged(product)
    end = next(number for number, event in enumerate(given) if isinstance(event, Resolved))
    first, prepared = PreparedTransactions(()), None
    passed(first, given[:end])
    offset = {"file": "binlog.000009", "pos": 4, "xa_prepared": first.text}

    position = Position.from_offset(offset)
    prepared = PreparedTransactions(position.prepared)
    asked: list[tuple[str | None, PreparedPlace | None]] = []

    def again(xid: str | None, place: PreparedPlace | None, _: int) -> Iterator[LogEvent | None]:
        asked.append((xid, place))
        yield None
        yield from (event for event in logged(product)[:end] if isinstance(event, RowsChanged))

    begun = given[0]
    assert isinstance(begun, Began)
    assert position.prepared == (PreparedPlace(FIRST, begun.file, begun.position, begun.gtid, None),)
    assert position.to_offset()["xa_prepared"] == prepared.text == first.text
    assert names(passed(prepared, given[end : end + 2], again)) == ["NoneType", "RowsChanged", "Committed"]
    assert asked == [(FIRST, position.prepared[0])]
    assert prepared.text == ""


def test_what_is_prepared_is_kept_in_little_memory_and_the_log_is_read_again() -> None:
    given = logged("mysql")
    end = next(number for number, event in enumerate(given) if isinstance(event, Resolved))
    prepared = PreparedTransactions(())
    read: list[str | None] = []

    def again(xid: str | None, *_: object) -> Iterator[LogEvent | None]:
        read.append(xid)
        yield from ()

    for number in range(5):
        passed(prepared, _large(given[: end - 1], f"X'0{number}',X'',1", megabytes=3))
    for number in range(5):
        passed(prepared, [Resolved(f"X'0{number}',X'',1", True, 4, 1)], again)
    assert read == [f"X'0{number}',X'',1" for number in range(3)]

    passed(prepared, _large(given[: end - 1], FIRST, megabytes=9))
    passed(prepared, [Resolved(FIRST, True, 4, 1)], again)
    assert read[3:] == [FIRST]


def _large(given: Sequence[LogEvent], xid: str, megabytes: int) -> list[LogEvent]:
    """Return a transaction with so many rows, up to where it is prepared."""
    made: list[LogEvent] = []
    for event in given:
        if isinstance(event, RowsChanged):
            data = b"x" * 1_000_000
            head = events.RowsHead(1, "c", (b"\x03",), False, True, data, 0)
            made += [RowsChanged(event.table, head, len(data), 4, 1, 0, 1, None)] * megabytes
        elif isinstance(event, Committed):
            made.append(Committed(event.gtid, event.file, event.position, event.timestamp, event.done, xid))
        else:
            made.append(event)
    return made


def test_too_many_that_are_prepared_are_refused_in_words() -> None:
    given = logged("mysql")
    places = [PreparedPlace(f"X'{number:04x}',X'',1", "binlog.000001", 4, None, None) for number in range(1000)]
    prepared = PreparedTransactions(places)

    with pytest.raises(ConnectError, match=r"More than 1000 distributed transactions .* XA RECOVER lists them"):
        passed(prepared, given)


def test_a_rollback_of_what_was_prepared_before_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert passed(PreparedTransactions(()), [Resolved(FIRST, False, 4, 1)]) == []
    assert "execute-snapshot" in caplog.text
    assert FIRST in caplog.text


@pytest.mark.parametrize("text", ["{", "[1]", '[["x"]]', '[["x", 1, 2, null, null]]'])
def test_an_offset_whose_places_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConnectError, match="is no position in a log"):
        Position.from_offset({"file": "binlog.000001", "pos": 4, "xa_prepared": text})


def test_an_end_without_an_id_and_a_damaged_beginning_are_errors() -> None:
    with pytest.raises(ConnectError, match="damaged"):
        events.prepared_xid(b"\0\1\0\0\0\5\0\0\0\0\0\0\0ab")

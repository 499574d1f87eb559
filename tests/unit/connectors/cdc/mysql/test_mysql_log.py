"""Logs of MySQL and MariaDB as their servers sent them: transactions, rows, and what is said of damaged ones."""

from __future__ import annotations

import base64
import json
import struct
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from connect.errors import ConnectError
from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.log import Began, Committed, Log, LogEvent, RowsChanged, Stated
from connectors.cdc.mysql.binlog.row_code import compiled_reader
from connectors.cdc.mysql.column_types import logged_type, plan

DATA: Final = {
    product: json.loads(Path(__file__).with_name(f"{product}_log.json").read_text(encoding="utf-8"))
    for product in ("mysql", "mariadb")
}
FIRST: Final = (1, "é", Decimal("1.50"), 1709168523004000, "y", '{"a": [1, 2.5, null]}', b"\x00\xff")
SECOND: Final = (2, None, Decimal("-1234.56"), None, None, None, None)
LONG: Final = '{"k": "' + "x" * 38 + '"}'


def raw_events(product: str) -> list[bytes]:
    return [base64.b64decode(text) for text in DATA[product]["events"]]


def fresh(product: str) -> Log:
    return Log(DATA[product]["file"], DATA[product]["position"], is_mariadb=product == "mariadb")


def events(product: str) -> list[LogEvent]:
    log = fresh(product)
    return [event for raw in raw_events(product) for event in log.read(raw)]


def rows(event: RowsChanged, product: str) -> list[Any]:
    charsets = {int(number): name for number, name in DATA[product]["charsets"].items()}
    plans = [plan(column, logged_type(column, charsets), charsets) for column in event.table.columns]
    head = event.head
    return compiled_reader(plans, *head.images, is_partial=head.is_partial)(head.data, head.start, event.end)


@pytest.mark.parametrize("product", DATA)
def test_rows_are_read_as_they_were_written(product: str) -> None:
    found = [
        (event.head.operation, rows(event, product)) for event in events(product) if isinstance(event, RowsChanged)
    ]

    assert found[:3] == [
        ("c", [FIRST, SECOND]),
        ("u", [(FIRST, (3, *FIRST[1:]))]),
        ("d", [SECOND]),
    ]
    if product == "mysql":
        empty = (None,) * 5
        assert found[3:] == [
            ("c", [(4, None, None, None, None, LONG, None)]),
            ("u", [((4, *empty[:4], LONG, None), (4, *empty[:4], '{"k": "short"}', None))]),
            ("c", [(5, None, *empty)]),
        ]
    else:
        assert found[3:] == [("c", [(4, None, None, None, None, None, b"z" * 600)])]


@pytest.mark.parametrize("product", DATA)
def test_each_change_lies_in_a_transaction_and_is_counted_in_it(product: str) -> None:
    found = events(product)

    assert [type(event) for event in found[:8]] == [
        Began,
        Stated,
        Committed,
        Began,
        RowsChanged,
        RowsChanged,
        RowsChanged,
        Committed,
    ]
    # BEGIN or, with MariaDB, the GTID and the statement, come before each table map.
    first = 2 if product == "mysql" else 3
    step = 2 if product == "mysql" else 3
    changes = [event.done for event in found[4:7] if isinstance(event, RowsChanged)]
    assert changes == [first, first + step, first + 2 * step]
    ends = [event for event in found if isinstance(event, Committed)]
    begins = [event for event in found if isinstance(event, Began)]
    assert [event.gtid for event in ends] == [event.gtid for event in begins]
    assert all(end.position > begin.position for begin, end in zip(begins, ends, strict=True))


def test_a_tag_is_part_of_the_gtid() -> None:
    last = events("mysql")[-1]

    assert isinstance(last, Committed)
    assert last.gtid is not None
    assert last.gtid.endswith(":tag:1")


def test_the_names_types_and_key_of_a_table_are_in_the_log() -> None:
    event = next(event for event in events("mysql") if isinstance(event, RowsChanged))

    assert [column.name for column in event.table.columns] == ["id", "name", "price", "at", "kind", "doc", "big"]
    assert event.table.primary_key == (0,)
    assert event.table.columns[4].values == (b"x", b"y")
    assert event.table.is_full


def test_mariadb_tells_the_statement_of_rows() -> None:
    event = next(event for event in events("mariadb") if isinstance(event, RowsChanged))

    assert event.query is not None
    assert event.query.startswith("insert into logged.t values (1,")


@pytest.mark.parametrize("product", DATA)
def test_a_damaged_event_is_told_by_its_checksum(product: str) -> None:
    log, damaged = fresh(product), 0
    for raw in raw_events(product):
        if len(raw) > 60 and raw[4] not in (4, 15):
            broken = raw[:40] + bytes([raw[40] ^ 1]) + raw[41:]
            with pytest.raises(ConnectError, match="checksum"):
                list(log.read(broken))
            damaged += 1
        list(log.read(raw))
    assert damaged > 5


@pytest.mark.parametrize("product", DATA)
def test_an_event_that_is_cut_off_is_an_error_that_says_so(product: str) -> None:
    """Without checksums, nothing but the event itself tells."""
    sent = [_without_checksum(raw) for raw in raw_events(product)]
    for number, raw in enumerate(sent):
        if raw[4] in (4, 15):
            continue
        for size in range(19, len(raw) - 4, 7):
            log = fresh(product)
            for before in sent[:number]:
                list(log.read(before))
            try:
                changed = [event for event in log.read(raw[:size]) if isinstance(event, RowsChanged)]
            except ConnectError:
                continue
            for event in changed:
                with suppress(IndexError, ValueError, struct.error, BinlogError):
                    rows(event, product)


def _without_checksum(raw: bytes) -> bytes:
    """The event as a log without checksums has it."""
    if raw[4] == 15:
        return raw[:-5] + b"\0" + raw[-4:]
    return raw[:-4] if raw[4] != 4 else raw

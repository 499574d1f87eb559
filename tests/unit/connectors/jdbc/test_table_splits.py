"""Splits of tables: which have new rows, and ranges of those with many."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.kits.sql.column import TableId
from connect.source import SPLIT_OF
from connect.testing import SourceTaskTestContext, StoredOffsets
from connectors.jdbc.source.config import JdbcSourceConfig, JdbcTaskConfig
from connectors.jdbc.source.source import JdbcSourceTask
from connectors.jdbc.source.splits import TableSplits, ranges

BIG, SMALL = TableId("big"), TableId("small")
SIZES = {BIG: 90, SMALL: 2}


@pytest.fixture
def props(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "rows.db"
    with sqlite3.connect(file) as connection:
        for table, count in (("big", 90), ("small", 2)):
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)")
            connection.executemany(f"INSERT INTO {table} (name) VALUES (?)", [(str(n),) for n in range(count)])
    return {"connection.url": f"jdbc:sqlite:{file}", "mode": "incrementing", "topic.prefix": "t-"}


@pytest.fixture
def offsets() -> StoredOffsets:
    return StoredOffsets()


@pytest.fixture
def splits(props: dict[str, str], offsets: StoredOffsets) -> Iterator[TableSplits]:
    made = TableSplits(JdbcSourceConfig.parse(props), offsets, lambda _: True, a_range=10)
    yield made
    made.close()


def read(props: dict[str, str], split: dict[str, str], offsets: StoredOffsets) -> list[int]:
    """The ids that a task reads of a split, until it is drained."""
    task = JdbcSourceTask(JdbcTaskConfig.parse({**props, **split}), SourceTaskTestContext(offsets))
    task.start()
    found: list[int] = []
    try:
        while not task.drained():
            found += [record.value["id"] for record in task.poll() or ()]
    finally:
        task.stop()
    return found


def test_a_large_table_is_divided_by_ranges_of_its_numbers(
    props: dict[str, str], splits: TableSplits, offsets: StoredOffsets
) -> None:
    found = splits.next(SIZES, 4)
    assert [(split.get("split.after"), split.get("split.last")) for split in found] == [
        ("0", "30"),
        ("30", "60"),
        ("60", "90"),
        (None, None),
    ]
    assert [split.get(SPLIT_OF) for split in found] == ["big", "big", "big", None]
    assert [read(props, split, offsets) for split in found] == [
        list(range(1, 31)),
        list(range(31, 61)),
        list(range(61, 91)),
        [1, 2],
    ]


def test_what_is_read_is_in_no_split_and_the_rest_is_divided_anew(
    props: dict[str, str], splits: TableSplits, offsets: StoredOffsets
) -> None:
    partition = {"protocol": "1", "table": "big"}
    offsets.put({"protocol": "1", "table": "small"}, {"incrementing": 2})
    offsets.put(partition, {"incrementing": 45})
    found = splits.next(SIZES, 2)
    assert [(split["split.after"], split["split.last"]) for split in found] == [("45", "67"), ("67", "90")]
    assert [number for split in found for number in read(props, split, offsets)] == list(range(46, 91))
    offsets.put(partition, {"incrementing": 90})
    assert splits.next(SIZES, 2) == []


def test_a_split_goes_on_from_what_is_stored_within_it(props: dict[str, str], offsets: StoredOffsets) -> None:
    offsets.put({"protocol": "1", "table": "big"}, {"incrementing": 12})
    split = {"tables": json.dumps([["big", "", ""]]), "split.after": "10", "split.last": "14"}
    assert read(props, split, offsets) == [13, 14]


def test_tables_of_other_modes_are_shared_whole(props: dict[str, str], offsets: StoredOffsets) -> None:
    made = TableSplits(JdbcSourceConfig.parse({**props, "mode": "bulk"}), offsets, lambda _: True, a_range=10)
    found = made.next(SIZES, 4)
    made.close()
    assert sorted(json.loads(split["tables"])[0][0] for split in found) == ["big", "small"]
    assert all(SPLIT_OF not in split for split in found)


def test_ranges_cover_every_number_once() -> None:
    assert ranges(-1, 9, 3) == [(-1, 2), (2, 5), (5, 9)]
    assert ranges(5, 6, 1) == [(5, 6)]

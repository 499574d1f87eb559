"""What is sent of a table next, by its history."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError, ConnectError
from connectors.spark.sources.tables.config import SparkTableSourceConfig
from connectors.spark.sources.tables.delta import commit_of
from connectors.spark.sources.tables.iceberg import snapshot_commits
from connectors.spark.sources.tables.lake_table import TableFile, files_within
from connectors.spark.sources.tables.steps import Commit, FilesStep, Kind, RowChanges, Skip, TablePosition, next_step

APPEND, CHANGE, NOTHING = Kind.APPEND, Kind.CHANGE, Kind.NOTHING


def history(*kinds: Kind) -> list[Commit]:
    return [Commit(number, kind, 0) for number, kind in enumerate(kinds, 11)]


@pytest.mark.parametrize(
    ("reached", "kinds", "step"),
    [
        (TablePosition(), [], FilesStep(None, 10)),
        (TablePosition(None, 9, 3), [], FilesStep(None, 9, 3)),
        (TablePosition(4, 9, 3), [APPEND], FilesStep(4, 9, 3)),
        (TablePosition(10), [], None),
        (TablePosition(10), [NOTHING, NOTHING], Skip(12)),
        (TablePosition(10), [APPEND, NOTHING, APPEND, APPEND], FilesStep(10, 13)),
        (TablePosition(10), [APPEND, CHANGE], FilesStep(10, 11)),
        (TablePosition(10), [NOTHING, CHANGE], RowChanges(11, Commit(12, CHANGE, 0))),
        (TablePosition(10), [CHANGE, APPEND], RowChanges(10, Commit(11, CHANGE, 0))),
    ],
)
def test_the_next_step(reached: TablePosition, kinds: list[Kind], step: object) -> None:
    assert next_step(reached, 10, history(*kinds), most=2) == step


def test_a_table_without_a_version_has_no_step() -> None:
    assert next_step(TablePosition(), None, (), 2) is None


@pytest.mark.parametrize(
    "reached", [TablePosition(), TablePosition(5), TablePosition(None, 7, 2), TablePosition(5, 7, 2)]
)
def test_offsets_come_back(reached: TablePosition) -> None:
    assert TablePosition.of(reached.offset()) == reached


@pytest.mark.parametrize("offset", [{}, {"version": "5"}, {"version": True}, {"version": 5, "files": "x"}])
def test_other_offsets_are_refused(offset: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        TablePosition.of(offset)


def snapshot(number: int, parent: int | None, operation: str, files: str = "1") -> dict[str, object]:
    summary = {"operation": operation, "added-data-files": files}
    return {"snapshot-id": number, "parent-snapshot-id": parent, "timestamp-ms": number, "summary": summary}


def test_the_history_of_an_iceberg_table_is_its_parents() -> None:
    other = snapshot(9, 1, "append")
    document = {
        "snapshots": [
            snapshot(1, None, "append"),
            other,
            snapshot(2, 1, "append"),
            snapshot(3, 2, "replace"),
            snapshot(4, 3, "overwrite"),
            snapshot(5, 4, "append", "0"),
        ]
    }
    found = snapshot_commits(document, 5, TablePosition(1), "t")
    assert [(each.version, each.kind) for each in found] == [(2, APPEND), (3, NOTHING), (4, CHANGE), (5, NOTHING)]
    with pytest.raises(ConnectError, match="no longer shows what came after version 9"):
        snapshot_commits(document, 5, TablePosition(9), "t")


def test_the_actions_of_a_delta_commit_tell_what_it_is() -> None:
    add, remove = {"add": {"dataChange": True}}, {"remove": {"dataChange": True}}
    moved = [{"add": {"dataChange": False}}, {"remove": {"dataChange": False}}]
    assert commit_of(3, [{"commitInfo": {"timestamp": 7}}, add]) == Commit(3, APPEND, 7)
    assert commit_of(3, [add, remove]).kind is CHANGE
    assert commit_of(3, [add, {"cdc": {}}]).kind is CHANGE
    assert commit_of(3, moved).kind is NOTHING
    assert commit_of(3, [{"metaData": {}}]).kind is NOTHING


def test_files_are_sent_up_to_a_size_but_one_at_least() -> None:
    files = [TableFile(str(size), size, None) for size in (5, 5, 5)]
    assert files_within(files, 0, 10) == files[:2]
    assert files_within(files, 2, 10) == files[2:]
    assert files_within(files, 1, 1) == files[1:2]
    assert files_within(files, 3, 1) == []


@pytest.mark.parametrize(
    "props",
    [
        {"table.format": "delta", "tables": "t"},
        {"table.format": "delta", "tables": "a,b", "store.url": "/lake"},
        {"table.format": "delta", "tables": "a", "store.url": "/lake", "iceberg.catalog.type": "rest"},
        {"table.format": "parquet", "tables": "a", "store.url": "/lake"},
    ],
)
def test_configurations_that_make_no_sense_are_refused(props: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        SparkTableSourceConfig.parse({"name": "x", "topic": "t", **props})

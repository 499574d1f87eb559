"""What the offsets of several Iceberg tables say together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError
from connectors.spark.iceberg.metadata import TableMetadata
from connectors.spark.iceberg.positions import Positions, next_offsets, next_step, parse_positions

TP = TopicPartition("orders", 0)


def span(first: int, end: int, partition: int = 0) -> OffsetRange:
    return OffsetRange("orders", partition, first, end, "id")


def test_progress_survives_its_text() -> None:
    positions = Positions().advanced([span(0, 5), span(3, 7, 2)], ["a", "b"]).advanced([span(5, 9)], ["a"])
    assert positions.to_text() == '{"orders":{"id":"id","next":[9,null,7],"load":{"2":[3,"a","b"]}}}'
    assert parse_positions(positions.to_text(), "t") == positions


def test_the_state_of_windows_stays_until_there_is_another() -> None:
    positions = Positions().advanced([span(0, 5)], ["a"]).holding("orders", 2**60 - 1)
    assert positions.to_text() == '{"orders":{"id":"id","next":[5],"windows":1152921504606846975}}'
    assert parse_positions(positions.to_text(), "t") == positions
    later = positions.advanced([span(5, 9)], ["a", "b"]).without_pending({TP: 9})
    assert later.topics["orders"].windows == 2**60 - 1
    assert later.holding("orders", 0) == Positions().advanced([span(0, 9)], ["a"])


@pytest.mark.parametrize("text", ["", "[]", '{"orders":1}', '{"orders":{"next":["x"]}}', '{"orders":{}}'])
def test_offsets_that_cannot_be_read_name_the_table(text: str) -> None:
    with pytest.raises(ConnectError, match=r"table lake\.orders"):
        parse_positions(text, "lake.orders")


def test_a_load_counts_once_all_of_its_tables_have_it() -> None:
    before = Positions().advanced([span(0, 50)], ["a"])
    first = before.advanced([span(50, 100)], ["a", "b"])
    assert next_offsets({"a": first}) == {TP: 50}
    half = Positions().advanced([span(50, 80)], ["a", "b"])
    assert next_offsets({"a": first, "b": half}) == {TP: 80}
    whole = half.advanced([span(80, 100)], ["a", "b"])
    assert next_offsets({"a": first, "b": whole}) == {TP: 100}
    assert first.without_pending({TP: 100}).pending(TP) is None
    assert first.without_pending({TP: 80}).pending(TP) is not None


def test_a_table_that_gets_no_rows_holds_nothing_up() -> None:
    tables = {"a": Positions().advanced([span(0, 900)], ["a"]), "b": Positions().advanced([span(0, 5)], ["b"])}
    assert next_offsets(tables) == {TP: 900}


def test_what_some_tables_have_is_written_first_and_not_there() -> None:
    first = Positions().advanced([span(50, 100)], ["a", "b"])
    step = next_step([span(50, 120), span(0, 10, 1)], {"a": first})
    assert step.done == {"a"}
    assert step.ranges == (span(50, 100),)
    assert sorted(step.rest) == [span(100, 120), span(0, 10, 1)]


@given(st.data())
def test_after_any_kills_each_table_has_each_record_once(data: st.DataObject) -> None:
    routes = data.draw(st.lists(st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("a", "b", "c")]), max_size=12))
    tables: dict[str, Positions] = {}
    rows: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    for _ in range(100):
        start = next_offsets(tables).get(TP, 0)
        if start == len(routes):
            break
        end = data.draw(st.integers(start + 1, len(routes)))
        step = next_step([span(start, end)], tables)
        item = step.ranges[0]
        wanted = {table for route in routes[item.first : item.end] for table in route}
        # As a target does it: all tables of a load that was cut off, or any, if there are no rows.
        load = {
            table for known in tables.values() if step.done and (left := known.pending(TP)) for table in left.tables
        }
        names = sorted(wanted | load) or sorted(tables)[:1] or ["a"]
        left = [name for name in names if name not in step.done]
        for name in left[: data.draw(st.integers(0, len(left)))]:
            complete = next_offsets(tables)
            rows[name] += [n for n in range(item.first, item.end) if name in routes[n]]
            known = tables.get(name, Positions()).without_pending(complete)
            tables[name] = known.advanced(step.ranges, names)
    else:
        return  # killed all the time
    for name, found in rows.items():
        assert found == [n for n, route in enumerate(routes) if name in route]


def metadata(snapshots: list[dict[str, object]], head: int | None, properties: dict[str, str]) -> TableMetadata:
    document = {"snapshots": snapshots, "properties": properties, "current-snapshot-id": head or -1}
    return TableMetadata(document | ({"refs": {"main": {"snapshot-id": head}}} if head else {}), "t")


def snapshot(number: int, parent: int | None, offset: int | None = None) -> dict[str, object]:
    text = json.dumps({"orders": {"next": [offset]}})
    summary = {} if offset is None else {"sluice.offsets.lake": text}
    return {"snapshot-id": number, "summary": summary} | ({} if parent is None else {"parent-snapshot-id": parent})


def test_the_newest_snapshot_of_the_branch_that_has_offsets_counts() -> None:
    copy = {"sluice.offsets.lake": '{"orders":{"next":[9]}}'}
    history = [snapshot(1, None, 3), snapshot(2, 1, 6), snapshot(3, 2), snapshot(4, 2, 9)]
    assert metadata(history, 3, copy).positions("lake", "main").offset(TP) == 6
    assert metadata(history, 1, copy).positions("lake", "main").offset(TP) == 3
    assert metadata(history, 4, copy).positions("lake", "audit").offset(TP) == 9
    assert metadata(history, 3, copy).positions("other", "main").offset(TP) is None


def test_the_copy_counts_once_the_snapshots_with_offsets_have_expired() -> None:
    copy = {"sluice.offsets.lake": '{"orders":{"next":[9]}}'}
    assert metadata([snapshot(5, 4)], 5, copy).positions("lake", "main").offset(TP) == 9
    # A table that was replaced has a history without offsets, and none of it has expired.
    assert metadata([snapshot(5, None)], 5, copy).positions("lake", "main").offset(TP) is None
    assert metadata([], None, copy).positions("lake", "main").offset(TP) is None


def test_a_rollback_behind_expired_snapshots_is_told() -> None:
    copy = {"sluice.offsets.lake": '{"orders": {"next": [9]}}'}
    with pytest.raises(ConnectError, match="rolled back to a snapshot whose offsets are no longer known"):
        metadata([snapshot(5, 4), snapshot(6, 5, 9)], 5, copy).positions("lake", "main")

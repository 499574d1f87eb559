"""What windows hold for tables that name it by a number: it is there while it is named, and removed after that."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.sink.sql.windows import Heard, OpenWindows
from connectors.spark.sink.tables.held_rows import NO_STATE, HeldRows, HeldTable
from connectors.spark.stores.local import LocalStore

ROWS = Schema.struct({"id": Schema.int64(optional=True)})


class FencedError(Exception):
    """Another driver has taken over."""


def fence() -> None:
    raise FencedError


def driver(store: Path) -> HeldRows:
    return HeldRows(LocalStore(store), "a/b")


def held(rows: HeldRows, store: Path, count: int = 1, cut: int | None = 5) -> dict[str, HeldTable]:
    """A table with rows in new folders."""
    folders = tuple(rows.new_folder() for _ in range(count))
    for folder in folders:
        (store / folder).mkdir(parents=True)
        (store / folder / "part-0.parquet").write_bytes(b"rows")
    return {"t": HeldTable(OpenWindows(cut, {3: Heard(7, 8)}, folders), ROWS)}


def names(store: Path) -> int:
    return len(list((store / "_sluice" / "a%2Fb" / "windows").iterdir()))


def test_a_state_is_read_by_its_number_by_another_driver(tmp_path: Path) -> None:
    first = driver(tmp_path)
    state = held(first, tmp_path, 2)
    number = first.save({}, state)
    assert 0 < number < 2**63
    assert driver(tmp_path).read(number, "t") == state
    assert driver(tmp_path).read(NO_STATE, "t") == {}
    assert first.save({}, {}) == NO_STATE


def test_what_no_table_names_any_more_is_removed(tmp_path: Path) -> None:
    first = driver(tmp_path)
    old = held(first, tmp_path)
    number = first.save({}, old)
    held(first, tmp_path)
    first.tidy([number])
    assert names(tmp_path) == 2, "the folder of a load that failed is gone"
    second = driver(tmp_path)
    left_by_third = held(driver(tmp_path), tmp_path)
    read = second.read(number, "t")
    new = second.save(read, held(second, tmp_path))
    second.tidy([new])
    assert names(tmp_path) == 3, "what others have made since is theirs"
    assert second.read(new, "t")["t"].windows.folders
    with pytest.raises(FencedError):
        second.clear([new], fence)
    assert all((tmp_path / folder).exists() for folder in left_by_third["t"].windows.folders)
    second.clear([new], lambda: None)
    assert names(tmp_path) == 2
    second.tidy([NO_STATE])
    assert names(tmp_path) == 0


def test_a_state_that_is_gone_or_changed_names_the_table(tmp_path: Path) -> None:
    rows = driver(tmp_path)
    number = rows.save({}, held(rows, tmp_path))
    (path,) = (tmp_path / "_sluice" / "a%2Fb" / "windows").glob("*.json")
    path.write_text("{}}")
    with pytest.raises(ConnectError, match="cannot be read"):
        rows.read(number, "lake.t")
    path.unlink()
    with pytest.raises(ConnectError, match=r"Table lake\.t refers to .* which is missing"):
        rows.read(number, "lake.t")

"""Which pieces of a load are due, how they are divided, and the marks of those that are sent."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connectors.spark.sources.files.bookmark import Bookmark, FoundFile, Limits, files_due
from connectors.spark.sources.marks import (
    Mark,
    NumberedPieces,
    divide_evenly,
    marked_partition,
    numbered_pieces,
    unmarked,
)
from equipment.growth import assert_grows_evenly


def test_a_mark_is_kept_as_an_offset_and_gathers_pieces_of_one_load() -> None:
    mark = Mark("1-2", ("0", "3"))
    assert Mark.of(mark.offset()) == mark
    assert mark.with_pieces("1-2", ["5"]) == Mark("1-2", ("0", "3", "5"))
    assert mark.with_pieces("2-4", ["0"]) == Mark("2-4", ("0",))
    assert marked_partition({"table": "t"}, 3) == {"table": "t", "slot": 3}


def test_marks_are_told_from_offsets_and_checked() -> None:
    assert list(unmarked([{"version": 1}, Mark("1", ()).offset(), None])) == [{"version": 1}, None]
    with pytest.raises(ConfigError, match="remove it with the offset"):
        list(unmarked([{"load": 3, "pieces": "1"}]))


def test_pieces_that_are_sent_are_not_due_and_a_load_goes_on_to_the_last_of_them() -> None:
    assert numbered_pieces(2, 5, {"3"}) == NumberedPieces([2, 4], 5)
    assert numbered_pieces(2, 3, {"3", "5"}) == NumberedPieces([2, 4], 6)
    assert numbered_pieces(0, 0, ()) == NumberedPieces([], 0)


def test_shares_are_of_about_the_same_size_and_keep_the_order() -> None:
    sizes = {"a": 5, "b": 1, "c": 9, "d": 4}
    assert divide_evenly(list(sizes), 2, sizes.__getitem__) == [["b", "c"], ["a", "d"]]
    assert divide_evenly([1, 2, 3], 1) == [[1, 2, 3]]
    assert divide_evenly([1, 2], 5) == [[1], [2]]
    assert divide_evenly([], 1) == divide_evenly([], 4) == []


def test_files_of_marks_are_sent() -> None:
    files = [FoundFile(f"file:/lake/{name}", name, 1, 10) for name in "abc"]
    bookmark = Bookmark().with_pieces([files[0].piece, files[2].piece])
    due = files_due(files, bookmark, Limits(10, 10), 100)
    assert [file.name for file in due.files] == ["b"]


@pytest.mark.growth
def test_dividing_grows_with_the_pieces() -> None:
    assert_grows_evenly(lambda items: divide_evenly(items, 32), range, 20_000)

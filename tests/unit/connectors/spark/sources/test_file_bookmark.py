"""Which files are due, and what is remembered of those that are sent."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from connect.errors import ConfigError
from connectors.spark.sources.files.bookmark import Bookmark, Due, FoundFile, Limits, files_due
from equipment.growth import assert_grows_evenly

NOW = 10_000_000
LATE = 3_600_000


def found(name: str, modified: int, size: int = 10) -> FoundFile:
    return FoundFile(f"file:/lake/{name}", name, size, modified)


def look(
    files: list[FoundFile], bookmark: Bookmark, most: int = 100, size: int = 10**9, age: int = 0, now: int = NOW
) -> Due:
    return files_due(files, bookmark, Limits(most, size, age), now)


def sent(bookmark: Bookmark, due: Due, lateness: int = LATE, most: int = 10_000) -> Bookmark:
    return replace(bookmark, passed=due.passed).after(due.files, due.next, lateness, most)


def test_files_are_due_in_the_order_of_their_times() -> None:
    files = [found("c", 3), found("a", 1), found("b", 2)]
    due = look(files, Bookmark(), most=2)
    assert [file.name for file in due.files] == ["a", "b"]
    assert (due.left, due.next) == (1, files[0].place)
    again = look(files, sent(Bookmark(), due))
    assert [file.name for file in again.files] == ["c"]
    assert look(files, sent(sent(Bookmark(), due), again)).files == []


def test_a_load_ends_before_it_is_too_large_but_has_a_file() -> None:
    files = [found("a", 1, 70), found("b", 2, 70), found("c", 3, 10)]
    assert [file.name for file in look(files, Bookmark(), size=100).files] == ["a"]
    assert [file.name for file in look(files, Bookmark(), size=1).files] == ["a"]


def test_a_file_that_was_changed_is_another_file() -> None:
    bookmark = sent(Bookmark(), look([found("a", 1)], Bookmark()))
    assert [file.size for file in look([found("a", 1, 11)], bookmark).files] == [11]
    assert look([found("a", 1)], bookmark).files == []


def test_a_file_that_is_too_young_waits_and_nothing_passes_it() -> None:
    files = [found("old", 100), found("young", NOW - 5)]
    due = look(files, Bookmark(), age=10)
    assert [file.name for file in due.files] == ["old"]
    assert due.ripe_in == 5
    bookmark = sent(Bookmark(), due, lateness=0, most=0)
    assert [file.name for file in look(files, bookmark, age=10, now=NOW + 5).files] == ["young"]


def test_a_late_file_is_found_within_the_time_for_it_and_told_of_before() -> None:
    bookmark = sent(Bookmark(), look([found("a", 5_000_000)], Bookmark()))
    within, before = found("within", 5_000_000 - LATE + 1), found("before", 5_000_000 - LATE - 1)
    due = look([found("a", 5_000_000), within, before], bookmark)
    assert [file.name for file in due.files] == ["within"]
    assert due.late == 1


def test_the_bookmark_is_short_however_many_files_there_are() -> None:
    files = [found(f"{number}", 1_000_000) for number in range(2_000)]
    random.Random(1).shuffle(files)
    bookmark, seen = Bookmark(), []
    while (due := look(files, bookmark, most=300)).files:
        seen += due.files
        bookmark = Bookmark.of(json.loads(json.dumps(sent(bookmark, due, most=500).offset())))
        assert len(bookmark.sent) <= 500
    assert sorted(seen, key=lambda file: file.name) == sorted(files, key=lambda file: file.name)
    assert look(files, bookmark).late == 0


def test_what_is_sent_out_of_order_does_not_take_the_mark_past_the_rest() -> None:
    files = [found("a", 1), found("b", 9_000_000)]
    bookmark = Bookmark().after([files[1]], files[0].place, LATE)
    assert [file.name for file in look(files, bookmark).files] == ["a"]


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"modified": "1", "digest": "", "passed": 0, "sent": {}},
        {"modified": 1, "digest": "", "passed": 0, "sent": 1},
        {"modified": 1, "digest": "", "passed": 0, "sent": {"a": None}},
    ],
)
def test_an_offset_of_another_kind_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Bookmark.of(offset)


@pytest.mark.growth
def test_a_look_costs_what_there_are_files() -> None:
    def files(count: int) -> list[FoundFile]:
        return [found(str(number), number) for number in range(count)]

    assert_grows_evenly(lambda given: look(given, Bookmark()), files, 5_000)

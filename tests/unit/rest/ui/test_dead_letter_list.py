"""The dead letters that a page shows: those that are looked for, and how many have which error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rest.ui.letters import ErrorGroup, Looked, LookedFor, excerpt, is_replayed, looked_through, short_error


def letter(offset: int, message: str | None = "no JSON", value: str = "v", **error: Any) -> dict[str, Any]:
    told = None if message is None else {"message": message, "stage": "VALUE_CONVERTER", **error}
    return {"partition": 0, "offset": offset, "key": None, "value": {"text": value}, "error": told}


def test_errors_that_differ_in_what_they_quote_are_one() -> None:
    letters = [letter(0, "field 'a' of line 3\nand more"), letter(1, "field 'b' of line 77"), letter(2, stage="PUT")]
    found = looked_through([Looked(letters, None)], LookedFor())
    assert [(group.error, group.count) for group in found.groups] == [("field 'a' of line 3", 2), ("no JSON", 1)]
    assert (found.read, found.matched, found.next) == (3, 3, None)
    chosen = looked_through([Looked(letters, None)], LookedFor(found.groups[1].key))
    assert [each["offset"] for each in chosen.records] == [2]
    assert chosen.groups == found.groups, "the other errors can still be chosen"


@pytest.mark.parametrize(
    ("text", "offsets"), [("", [0, 1]), ("NEEDLE", [1]), ("json needle", [1]), ("null", [0, 1]), ("other", [])]
)
def test_words_are_found_in_a_record_and_its_error(text: str, offsets: list[int]) -> None:
    letters = [letter(0), letter(1, value="a needle")]
    found = looked_through([Looked(letters, None)], LookedFor(text=text))
    assert [each["offset"] for each in found.records] == offsets


def test_reading_stops_when_a_page_is_full_and_goes_on_after_its_last_row() -> None:
    parts_read: list[int] = []

    def parts() -> Iterator[Looked]:
        for number in range(9):
            parts_read.append(number)
            yield Looked([letter(60 * number + offset) for offset in range(60)], f"0:{60 * number + 59}")

    found = looked_through(parts(), LookedFor())
    assert (parts_read, len(found.records), found.next) == ([0, 1], 100, "0:99")
    few = looked_through([Looked([letter(5)], "0:5")], LookedFor(text="nothing"))
    assert (few.records, few.read, few.next) == ([], 1, "0:5"), "what was not read is not forgotten"


def test_a_letter_without_context_says_so() -> None:
    assert short_error(letter(0, None)) == "no error is stored: context headers were not enabled"
    assert short_error(letter(0, "")) == "no message"
    assert looked_through([Looked([letter(0, None)], None)], LookedFor()).groups == [
        ErrorGroup(
            looked_through([Looked([letter(1, None)], None)], LookedFor()).groups[0].key,
            short_error(letter(0, None)),
            1,
        )
    ]


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt({"text": "a\n  b"}) == "a b"
    assert excerpt({"text": "x" * 161}) == f"{'x' * 160} …"
    assert excerpt(None) == "null"


def test_what_a_replay_of_all_has_passed_is_replayed() -> None:
    assert [is_replayed(letter(offset), {"0": 2}) for offset in (1, 2)] == [True, False]
    assert not is_replayed(letter(0), {})

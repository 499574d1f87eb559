"""Counts as they are written in the log and by commands."""

from __future__ import annotations

import pytest

from worker.formatting import counted, written_text


@pytest.mark.parametrize(("count", "text"), [(0, "0 files"), (1, "1 file"), (2000.0, "2,000 files")])
def test_a_noun_is_in_its_number(count: float, text: str) -> None:
    assert counted(count, "file") == text


@pytest.mark.parametrize(
    ("rows", "size", "files", "text"),
    [
        (0, 0, 0, ""),
        (240_000, 0, 0, ", 240,000 rows"),
        (1, 1_500, 1, ", 1 row, 1.5 kB, 1 file"),
    ],
)
def test_what_a_load_does_not_know_yet_is_left_out(rows: int, size: int, files: int, text: str) -> None:
    assert written_text(rows, size, files) == text

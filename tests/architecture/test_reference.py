"""The reference says what the code says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from codebase import ROOT

sys.path.insert(0, str(ROOT / "docs"))

from generate_reference import pages


@pytest.mark.parametrize("file", pages(), ids=lambda file: file.name)
def test_a_page_is_fresh(file: Path) -> None:
    text = pages()[file]
    assert file.is_file(), f"{file.name} is not written yet: run `python docs/generate_reference.py`."
    is_fresh = file.read_text(encoding="utf-8") == text
    assert is_fresh, f"{file.name} is stale: run `python docs/generate_reference.py`."


def test_there_are_no_other_pages() -> None:
    others = set((ROOT / "docs" / "reference").glob("*.md")) - pages().keys()
    assert not others, f"docs/generate_reference.py does not make {', '.join(sorted(map(str, others)))}."

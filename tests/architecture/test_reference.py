"""The reference says what the code says."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest
from codebase import ROOT

sys.path.insert(0, str(ROOT / "docs"))

from generate_reference import pages

WRITTEN = sorted((ROOT / "docs" / "reference").glob("*.md"))
generated = cache(pages)


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_a_page_is_fresh(file: Path) -> None:
    is_fresh = file.read_text(encoding="utf-8") == generated().get(file)
    assert is_fresh, f"{file.name} is stale: run `python docs/generate_reference.py`."


def test_every_page_is_written_and_there_are_no_others() -> None:
    missing = generated().keys() - set(WRITTEN)
    assert not missing, (
        f"{', '.join(sorted(map(str, missing)))} is not written: run `python docs/generate_reference.py`."
    )
    others = set(WRITTEN) - generated().keys()
    assert not others, f"docs/generate_reference.py does not make {', '.join(sorted(map(str, others)))}."

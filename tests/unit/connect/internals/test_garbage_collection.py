"""What is imported is not scanned for garbage."""

from __future__ import annotations

import gc

import pytest

from connect.internals.garbage_collection import importing


def test_nothing_is_collected_while_modules_are_imported_and_they_are_not_scanned_later() -> None:
    before = gc.get_freeze_count()
    with importing():
        assert not gc.isenabled()
        kept = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > before + len(kept)


def test_an_import_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ImportError), importing():
        raise ImportError
    assert gc.isenabled()

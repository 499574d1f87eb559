"""Folders of the tests of the Spark sink."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory if there is such a place: the ledger syncs all it does, thousands of times in a test."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="sluice-test-", dir=memory if memory.is_dir() else None))
    yield folder
    shutil.rmtree(folder)

"""Fixtures for tests of the worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

OURS = ("connect", "connectors", "converters", "rest", "worker")


@pytest.fixture
def import_path() -> Iterator[None]:
    """Leaves nothing behind of what a test puts on the import path and imports."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        # Ours stay: a class that is imported twice is two classes.
        if name.partition(".")[0] not in OURS:
            del sys.modules[name]

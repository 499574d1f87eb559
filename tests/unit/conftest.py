"""Fixtures for tests of the worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def import_path() -> Iterator[None]:
    """Leaves nothing behind of what a test puts on the import path and imports."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]

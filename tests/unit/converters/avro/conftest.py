"""A schema registry in memory for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from equipment.fakes.schema_registry import MemoryRegistry, serving


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry()) as registry:
        yield registry

"""Apicurio Registry in memory for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from equipment.fakes.apicurio import MemoryApicurio, serving_apicurio


@pytest.fixture
def memory() -> Iterator[MemoryApicurio]:
    """A registry that serves on loopback."""
    with serving_apicurio(MemoryApicurio()) as registry:
        yield registry

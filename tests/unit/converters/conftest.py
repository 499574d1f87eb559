"""What the tests of converters share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Some values have no end: what is collected at the depth that they are refused at cannot close what it holds."""
    gc.disable()
    yield
    gc.enable()

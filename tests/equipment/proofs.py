"""How much of the slow proofs by kills a run of the tests makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final, TypeVar

import pytest

__all__ = ["EVERY_KILL", "thorough", "thorough_rows", "thorough_stories"]

T = TypeVar("T")

EVERY_KILL: Final = bool({"SLUICE_EVERY_KILL", "SLUICE_LAKE_KILLS"} & os.environ.keys())
"""Whether to kill at each point in every combination, as `make kills` and `make lake-kills` do, or once for each
mechanism, as `make test` does."""


def thorough(*values: Any) -> list[Any]:
    """Mark values of a parameter that `make test` leaves out, since it has others of their kind."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


def thorough_rows(*rows: Sequence[Any]) -> list[Any]:
    """Mark rows of several parameters in the same way."""
    return [pytest.param(*row, marks=pytest.mark.thorough) for row in rows]


def thorough_stories(*names: str) -> Callable[[type[T]], type[T]]:
    """Mark tests that a class inherits from a contract in the same way; other classes may run them always."""

    def marked(tests: type[T]) -> type[T]:
        for name in names:
            story: Any = getattr(tests, name)
            own: Any = FunctionType(story.__code__, story.__globals__, name, story.__defaults__, story.__closure__)
            own.__kwdefaults__ = story.__kwdefaults__
            own.pytestmark = [*getattr(story, "pytestmark", ()), pytest.mark.thorough.mark]
            setattr(tests, name, own)
        return tests

    return marked

"""How much of the slow proofs by kills a run of the tests makes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import pytest

__all__ = ["EVERY_KILL", "thorough", "thorough_rows"]

EVERY_KILL: Final = bool({"SLUICE_EVERY_KILL", "SLUICE_LAKE_KILLS"} & os.environ.keys())
"""Whether to kill at each point in every combination, as `make kills` and `make lake-kills` do, or once for each
mechanism, as `make test` does."""


def thorough(*values: Any) -> list[Any]:
    """Mark values of a parameter that `make test` leaves out, since it has others of their kind."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


def thorough_rows(*rows: Sequence[Any]) -> list[Any]:
    """Mark rows of several parameters in the same way."""
    return [pytest.param(*row, marks=pytest.mark.thorough) for row in rows]

"""Filter: drops records; with a predicate, those it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from connect.config import Config
from connect.data import Batch, Record
from connect.transformation import Transformation

__all__ = ["Filter"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class Filter(Transformation[Config]):
    """Drops every record it is given. Give it a predicate, or it drops them all."""

    def apply(self, record: R) -> R | None:  # noqa: ARG002
        """Nothing."""
        return None

    def apply_batch(self, batch: B) -> Sequence[B]:  # noqa: ARG002
        """Nothing."""
        return []

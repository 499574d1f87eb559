"""MakeTombstone: makes records tombstones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from connect.config import Config
from connect.data import Batch, Constant, Record, ValueColumn
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import VALUE

__all__ = ["MakeTombstone"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class MakeTombstone(Transformation[Config]):
    """Sets the value of every record to null, without schema; use it with a predicate."""

    def apply(self, record: R) -> R | None:
        """Return the record without its value."""
        return VALUE.put(record, None, None)

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch without its values."""
        return [VALUE.put_column(batch, ValueColumn(Constant(None, len(batch)), None))]

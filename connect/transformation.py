"""Transformations change records one at a time; predicates choose which records a transformation applies to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from connect.config import Config
from connect.data import Batch, Record
from connect.plugin import Plugin

__all__ = ["Predicate", "Transformation"]

C = TypeVar("C", bound=Config)
R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class Transformation(Plugin[C], Generic[C]):
    """Changes records, or drops them.

    :meth:`apply` is the specification. :meth:`apply_batch` does the same for many records; override it where that is
    faster. If it raises, the runtime applies the transformation to the records one by one. A transformation keeps no
    state between records, and is used by one thread only.
    """

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """Return the transformed record, or ``None`` to drop it."""

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the transformed batches in order: several if topics or schemas now differ, none if all are dropped."""
        apply = self.apply
        return type(batch).from_records([new for record in batch if (new := apply(record)) is not None])

    def close(self) -> None:
        """Release the resources of the transformation."""


class Predicate(Plugin[C], Generic[C]):
    """Chooses the records that a transformation applies to."""

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def test(self, record: Record) -> bool:
        """Return whether the record is chosen."""

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        """Return for each record of a batch whether it is chosen, with the same results as :meth:`test`."""
        test = self.test
        return [test(record) for record in batch]

    def close(self) -> None:
        """Release the resources of the predicate."""

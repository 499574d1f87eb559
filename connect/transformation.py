"""Transformations change records one at a time on their way; predicates choose the records."""

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
    faster. If it raises, the runtime goes through the records one by one. A transformation keeps no state from one
    record to the next, and is used by one thread.
    """

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The record to go on with; ``None`` drops it."""

    def apply_batch(self, batch: B) -> Sequence[B]:
        """The batches to go on with, in order: several where topics or schemas now differ, none if all is dropped."""
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
        """Whether the record is chosen."""

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        """Whether each record of a batch is chosen: the answers of :meth:`test`, in order."""
        test = self.test
        return [test(record) for record in batch]

    def close(self) -> None:
        """Release the resources of the predicate."""

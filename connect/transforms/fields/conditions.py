"""The base of filters with a condition: their options, and the handling of records that lack its fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, TypeVar

from connect.config import HIGH, MEDIUM, Config, option
from connect.data import Batch, Record
from connect.errors import DataError
from connect.transformation import Transformation

__all__ = ["ConditionFilter", "ConditionFilterConfig", "MissingFieldError"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class MissingFieldError(DataError):
    """A condition cannot be decided, because a field that it needs is missing or null."""


class ConditionFilterConfig(Config):
    """The condition, and the records to keep."""

    filter_condition: str = option(importance=HIGH, doc="The condition.")
    filter_type: Literal["include", "exclude"] = option(
        importance=HIGH, doc="Whether to keep (include) or to drop (exclude) the records that meet the condition."
    )
    missing_or_null_behavior: Literal["fail", "include", "exclude"] = option(
        default="fail",
        importance=MEDIUM,
        doc="Handling of a record in which a field that the condition needs is missing or null: it fails, is kept "
        "or is dropped.",
    )


C = TypeVar("C", bound=ConditionFilterConfig)


class ConditionFilter(Transformation[C], Generic[C]):
    """Keeps or drops the records that meet a condition."""

    @abstractmethod
    def subject(self, record: Record) -> Any:
        """Return the value that the condition is applied to."""

    @abstractmethod
    def subjects(self, batch: Batch[Any]) -> Iterable[Any]:
        """Return the value that the condition is applied to, for every record of a batch."""

    @abstractmethod
    def meets(self, subject: Any) -> bool:
        """Return whether the condition is met.

        Raises :class:`MissingFieldError` if a field that it needs is missing.
        """

    def apply(self, record: R) -> R | None:
        """Return the record if it is kept, else ``None``."""
        return record if self._keeps(self.subject(record)) else None

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the records that are kept."""
        kept = [index for index, subject in enumerate(self.subjects(batch)) if self._keeps(subject)]
        if len(kept) == len(batch):
            return [batch]
        return [batch.take(kept)] if kept else []

    def _keeps(self, subject: Any) -> bool:
        try:
            return self.meets(subject) is (self.config.filter_type == "include")
        except MissingFieldError:
            if self.config.missing_or_null_behavior == "fail":
                raise
            return self.config.missing_or_null_behavior == "include"

"""The filters, which drop or keep records by a predicate, a JSON path or an expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from connect.config import Config
from connect.data import Batch, Record
from connect.errors import ConfigError
from connect.transformation import Transformation
from connect.transforms.fields.conditions import ConditionFilter, ConditionFilterConfig, MissingFieldError
from connect.transforms.fields.expressions import Expression
from connect.transforms.fields.json_path import JsonPath
from connect.transforms.fields.key_or_value import KeyOrValueTransformation

__all__ = ["ExpressionFilter", "ExpressionFilterConfig", "Filter", "JsonPathFilter", "JsonPathFilterConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class Filter(Transformation[Config]):
    """Drops every record it is given. Configure a predicate, or it drops all records."""

    def apply(self, record: R) -> R | None:  # noqa: ARG002
        """Drop the record."""
        return None

    def apply_batch(self, batch: B) -> Sequence[B]:  # noqa: ARG002
        """Drop the batch."""
        return []


class JsonPathFilterConfig(ConditionFilterConfig):
    """A JSON path as the condition, which is met if the path selects a value."""

    def check(self) -> list[ConfigError]:
        """Refuse a malformed JSON path."""
        JsonPath(self.filter_condition, "filter.condition")
        return []


class JsonPathFilter(ConditionFilter[JsonPathFilterConfig], KeyOrValueTransformation[JsonPathFilterConfig]):
    """Keeps or drops the records in whose key or value a JSON path selects a value."""

    def __init__(self, config: JsonPathFilterConfig) -> None:
        super().__init__(config)
        self._path = JsonPath(config.filter_condition, "filter.condition")

    def subject(self, record: Record) -> Any:
        """Return the key or value."""
        return self.side.read(record)[1]

    def subjects(self, batch: Batch[Any]) -> Iterable[Any]:
        """Return the keys or values."""
        return self.side.column(batch).values()

    def meets(self, subject: Any) -> bool:
        """Return whether the path selects a value.

        Within a filter, a missing field means that the condition is not met.
        """
        if any(found is not None for found in self._path.select(subject)):
            return True
        if self._path.reaches(subject):
            return False
        raise MissingFieldError(f"{self.side.name} has nothing, or null, at {self._path.text}")


class ExpressionFilterConfig(ConditionFilterConfig):
    """An expression of the Common Expression Language as the condition."""

    def check(self) -> list[ConfigError]:
        """Refuse a malformed expression."""
        Expression(self.filter_condition, "filter.condition")
        return []


class ExpressionFilter(ConditionFilter[ExpressionFilterConfig]):
    """Keeps or drops the records for which an expression is true."""

    def __init__(self, config: ExpressionFilterConfig) -> None:
        super().__init__(config)
        self._expression = Expression(config.filter_condition, "filter.condition")

    def subject(self, record: Record) -> Record:
        """Return the record."""
        return record

    def subjects(self, batch: Batch[Any]) -> Iterable[Record]:
        """Return the records."""
        return batch

    def meets(self, subject: Any) -> bool:
        """Return whether the expression is true."""
        return self._expression.decide(subject)

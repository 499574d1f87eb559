"""ExpressionFilter: keeps or drops records by an expression about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connect.data import Batch, Record
from connect.errors import ConfigError
from connect.transforms.condition_filter import ConditionFilter, ConditionFilterConfig
from connect.transforms.expression_language import Expression

__all__ = ["ExpressionFilter", "ExpressionFilterConfig"]


class ExpressionFilterConfig(ConditionFilterConfig):
    """The condition is an expression of the Common Expression Language that is true or false."""

    def check(self) -> list[ConfigError]:
        """Refuse what is not an expression."""
        Expression(self.filter_condition, "filter.condition")
        return []


class ExpressionFilter(ConditionFilter[ExpressionFilterConfig]):
    """Keeps or drops the records for which an expression is true."""

    def __init__(self, config: ExpressionFilterConfig) -> None:
        super().__init__(config)
        self._expression = Expression(config.filter_condition, "filter.condition")

    def subject(self, record: Record) -> Record:
        """The record."""
        return record

    def subjects(self, batch: Batch[Any]) -> Iterable[Record]:
        """The records."""
        return batch

    def meets(self, subject: Any) -> bool:
        """Whether the expression is true."""
        return self._expression.decide(subject)

"""The predicates, which choose the records that a transformation applies to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.config import HIGH, MEDIUM, Config, all_of, non_empty, option
from connect.data import Batch, Constant, Headers, Record
from connect.errors import ConfigError
from connect.internals.java.regex import regex_from_java, valid_java_regex
from connect.transformation import Predicate
from connect.transforms.fields.expressions import Expression

__all__ = [
    "ExpressionMatches",
    "ExpressionMatchesConfig",
    "HasHeaderKey",
    "HasHeaderKeyConfig",
    "RecordIsTombstone",
    "TopicNameMatches",
    "TopicNameMatchesConfig",
]


class HasHeaderKeyConfig(Config):
    """The header to look for."""

    name: str = option(importance=MEDIUM, validator=non_empty, doc="The key of the header.")


class HasHeaderKey(Predicate[HasHeaderKeyConfig]):
    """Chooses the records that have a header with the given key."""

    def test(self, record: Record) -> bool:
        """Return whether the record has the header."""
        return self._has(record.headers)

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        """Whether each record has the header."""
        headers = batch.headers
        if isinstance(headers, Constant):
            return Constant(self._has(headers.value), len(batch))
        return [self._has(present) for present in headers]

    def _has(self, headers: Headers) -> bool:
        name = self.config.name
        return any(header.key == name for header in headers)


class RecordIsTombstone(Predicate[Config]):
    """Chooses the records whose value is null."""

    def test(self, record: Record) -> bool:
        """Return whether the value is null."""
        return record.value is None

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        """Whether each value is null."""
        return [value is None for value in batch.value.values()]


class TopicNameMatchesConfig(Config):
    """The topics to choose."""

    pattern: str = option(
        importance=MEDIUM,
        validator=all_of(non_empty, valid_java_regex),
        doc="The regular expression, as Java writes it, that the whole name of the topic must match.",
    )


class TopicNameMatches(Predicate[TopicNameMatchesConfig]):
    """Chooses the records of topics whose names match a regular expression."""

    def __init__(self, config: TopicNameMatchesConfig) -> None:
        super().__init__(config)
        self._regex = regex_from_java(config.pattern)
        self._last: tuple[str | None, bool] = (None, False)

    def test(self, record: Record) -> bool:
        """Return whether the record's topic matches."""
        return self._matches(record.topic)

    def test_batch(self, batch: Batch[Any]) -> Sequence[bool]:
        """Return the same answer for all records, as they share one topic."""
        return Constant(self._matches(batch.topic), len(batch))

    def _matches(self, topic: str) -> bool:
        # Consecutive records usually share a topic.
        if topic != self._last[0]:
            self._last = (topic, self._regex.fullmatch(topic) is not None)
        return self._last[1]


class ExpressionMatchesConfig(Config):
    """The expression to evaluate."""

    expression: str = option(
        importance=HIGH, doc="The expression, in the Common Expression Language (CEL), whose result is true or false."
    )

    def check(self) -> list[ConfigError]:
        """Refuse a malformed expression."""
        Expression(self.expression, "expression")
        return []


class ExpressionMatches(Predicate[ExpressionMatchesConfig]):
    """Chooses the records for which an expression is true."""

    def __init__(self, config: ExpressionMatchesConfig) -> None:
        super().__init__(config)
        self._expression = Expression(config.expression, "expression")

    def test(self, record: Record) -> bool:
        """Return whether the expression is true."""
        return self._expression.decide(record)

"""ContentBasedRouter and ContentBasedFilter: route or drop records by an expression, with Debezium's options.

Debezium runs scripts of the Java virtual machine. Here the expression is one of the Common Expression Language.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final, Generic, Literal, TypeVar

from connect.config import HIGH, LOW, Config, ConfigRuleError, invalid_value, option, validator
from connect.data import Record
from connect.data.excerpt import excerpt
from connect.errors import ConfigError, DataError
from connect.internals.java.regex import regex_from_java, valid_java_regex
from connect.transformation import Transformation
from connect.transforms.fields.expressions import Expression
from connect.transforms.fields.key_or_value import copy_of

__all__ = ["ContentBasedFilter", "ContentBasedFilterConfig", "ContentBasedRouter", "ContentBasedRouterConfig"]

R = TypeVar("R", bound=Record)

_LANGUAGES: Final = ("cel", "jsr223.cel")


@validator("valid regex, or empty")
def _regex_or_nothing(key: str, value: str) -> None:
    if value.strip():
        valid_java_regex(key, value)


class ContentBasedConfig(Config):
    """The language of the expression, and the records it is for."""

    topic_regex: str | None = option(
        default=None,
        importance=LOW,
        validator=_regex_or_nothing,
        doc="The regular expression that the whole name of a topic must match; other records pass unchanged.",
    )
    language: str = option(
        importance=HIGH,
        doc="The language of the expression: cel. Debezium's jsr223.groovy, jsr223.graal.js and wasm.* are refused, "
        "because they need a Java virtual machine.",
    )
    null_handling_mode: Literal["keep", "drop", "evaluate"] = option(
        default="keep",
        importance=LOW,
        ignore_case=True,
        doc="Whether a record without a value is kept, dropped, or given to the expression.",
    )

    def refusals(self, key: str, expression: str, example: str) -> list[ConfigError]:
        """Return what is wrong with the language and the expression of the option ``key``."""
        if self.language.strip().lower() in _LANGUAGES:
            Expression(expression, key)
            return []
        return [invalid_value("language", self.language, _advice(key, expression, example))]


C = TypeVar("C", bound=ContentBasedConfig)


def _advice(key: str, expression: str, example: str) -> str:
    """Return what to write in place of an expression in another language."""
    try:
        Expression(expression, key)
    except ConfigRuleError:
        return (
            f"Scripts of the Java virtual machine are not run. Set language to cel, and write {key} in the Common "
            f"Expression Language, for example: {example}. value, key and topic are written alike; a header is "
            "headers.name"
        )
    return f"Scripts of the Java virtual machine are not run. Set language to cel: {key} can stay as it is"


class _ContentBased(Transformation[C], Generic[C]):
    """The base of transformations that give the records of some topics to an expression."""

    def __init__(self, config: C) -> None:
        super().__init__(config)
        regex = (config.topic_regex or "").strip()
        self._topics = regex_from_java(regex) if regex else None

    def apply(self, record: R) -> R | None:
        """Return the record as the expression decides, or unchanged if it is not for the expression."""
        if self._topics is not None and self._topics.fullmatch(record.topic) is None:
            return record
        if record.value is None and self.config.null_handling_mode != "evaluate":
            return record if self.config.null_handling_mode == "keep" else None
        return self.decided(record)

    @abstractmethod
    def decided(self, record: R) -> R | None:
        """Return what the expression makes of the record."""


class ContentBasedFilterConfig(ContentBasedConfig):
    """The condition of the records to keep."""

    condition: str = option(importance=HIGH, doc="The expression; records for which it is true are kept.")

    def check(self) -> list[ConfigError]:
        """Refuse other languages and malformed expressions."""
        return self.refusals("condition", self.condition, "value.op == 'u' && value.before.id == 2")


class ContentBasedFilter(_ContentBased[ContentBasedFilterConfig]):
    """Keeps the records for which an expression is true, as Debezium's Filter does."""

    def __init__(self, config: ContentBasedFilterConfig) -> None:
        super().__init__(config)
        self._expression = Expression(config.condition, "condition")

    def decided(self, record: R) -> R | None:
        """Return the record if the expression is true."""
        return record if self._expression.decide(record) else None


class ContentBasedRouterConfig(ContentBasedConfig):
    """The topic of a record, computed from it."""

    topic_expression: str = option(
        importance=HIGH,
        doc="The expression of the topic; a record for which it is null keeps its topic.",
    )

    def check(self) -> list[ConfigError]:
        """Refuse other languages and malformed expressions."""
        return self.refusals("topic.expression", self.topic_expression, "value.op == 'u' ? 'updates' : null")


class ContentBasedRouter(_ContentBased[ContentBasedRouterConfig]):
    """Sends records to the topics that an expression computes from them."""

    def __init__(self, config: ContentBasedRouterConfig) -> None:
        super().__init__(config)
        self._expression = Expression(config.topic_expression, "topic.expression")

    def decided(self, record: R) -> R | None:
        """Return the record with its topic."""
        topic: Any = self._expression.evaluate(record)
        if topic is None:
            return record
        if not isinstance(topic, str) or not topic:
            raise DataError(f"Expression {self._expression.text} must be a topic or null, but is {excerpt(topic)}")
        new = copy_of(record)
        new.topic = topic
        return new

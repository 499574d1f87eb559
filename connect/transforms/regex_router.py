"""RegexRouter: renames topics by a regular expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from connect.config import HIGH, Config, option
from connect.data import Batch, Record
from connect.errors import DataError
from connect.internals.java.regex import expand, regex_from_java, valid_java_regex
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import copy_of

__all__ = ["RegexRouter", "RegexRouterConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_MOST_TOPICS: Final = 1000


class RegexRouterConfig(Config):
    """The topics to rename, and their new names."""

    regex: str = option(
        importance=HIGH,
        validator=valid_java_regex,
        doc="The regular expression that the whole name of a topic must match.",
    )
    replacement: str = option(
        importance=HIGH, doc="The new name. $1 and ${name} stand for the groups of the expression."
    )


class RegexRouter(Transformation[RegexRouterConfig]):
    """Renames the topics that match a regular expression; the others keep their names."""

    def __init__(self, config: RegexRouterConfig) -> None:
        super().__init__(config)
        self._regex = regex_from_java(config.regex)
        self._routes: dict[str, str] = {}

    def apply(self, record: R) -> R | None:
        """Return the record, with a new topic if its own matches."""
        topic = self._route(record.topic)
        if topic == record.topic:
            return record
        new = copy_of(record)
        new.topic = topic
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch, with a new topic if its own matches."""
        return [batch.replace(topic=self._route(batch.topic))]

    def _route(self, topic: str) -> str:
        route = self._routes.get(topic)
        if route is None:
            if len(self._routes) >= _MOST_TOPICS:
                self._routes.clear()
            route = self._routes[topic] = self._routed(topic)
        return route

    def _routed(self, topic: str) -> str:
        if self._regex.fullmatch(topic) is None:
            return topic
        try:
            return self._regex.sub(lambda match: expand(self.config.replacement, match), topic, count=1)
        except (IndexError, ValueError) as error:
            raise DataError(f"Replacement {self.config.replacement} of topic {topic}: {error}") from error

"""The ``topic.creation.*`` settings of a source connector, with which its topics are created."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.java.regex import regex_from_java

__all__ = ["BROKER_DEFAULT", "NewTopic", "TopicCreationGroup", "TopicCreationGroups", "refused_topic_creation"]

BROKER_DEFAULT = -1
"""Leaves the number of partitions, or of replicas, to the broker."""

_DEFAULT_GROUP = "default"
_PREFIX = "topic.creation."
_GROUPS = f"{_PREFIX}groups"
_OWN_KEYS = frozenset(("include", "exclude", "replication.factor", "partitions"))
_LARGEST_REPLICATION_FACTOR = 2**15 - 1
_LARGEST_PARTITIONS = 2**31 - 1

_PARTITIONS_RULE = "Number of partitions must be positive, or -1 to use the broker's default"
_REPLICATION_RULE = (
    "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster, or -1 to use "
    "the broker's default"
)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; ``settings`` are topic settings such as ``cleanup.policy``."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        numbers = {"partitions": self.partitions, "replication.factor": self.replication_factor}
        given = {key: number for key, number in numbers.items() if number != BROKER_DEFAULT}
        said = ", ".join(f"{key}={value}" for key, value in {**given, **self.settings}.items())
        return f"{self.name} ({said or 'as the broker makes topics'})"


@dataclass(frozen=True, slots=True)
class TopicCreationGroup:
    """One group: the topics it matches, and the settings they are created with."""

    name: str
    include: re.Pattern[str]
    exclude: re.Pattern[str]
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]

    def matches(self, topic: str) -> bool:
        """Return whether the topic belongs to this group."""
        return self.include.fullmatch(topic) is not None and self.exclude.fullmatch(topic) is None

    def new_topic(self, topic: str) -> NewTopic:
        """Return ``topic`` with this group's settings."""
        return NewTopic(topic, self.partitions, self.replication_factor, self.settings)


@dataclass(frozen=True, slots=True)
class TopicCreationGroups:
    """The groups in the order they are tried; the last is ``default``, which matches every topic."""

    groups: tuple[TopicCreationGroup, ...]

    @classmethod
    def parse(cls, connector: Mapping[str, str]) -> TopicCreationGroups | None:
        """Parse a connector's settings; ``None`` if it has none, which leaves topic creation to the broker.

        Raises ``ConfigError``, in Kafka's words, for a setting that is missing or not allowed.
        """
        if not any(key.startswith(_PREFIX) for key in connector):
            return None
        default = _group(_DEFAULT_GROUP, connector, None)
        named = [_group(name, connector, default) for name in _group_names(connector)]
        return cls((*named, default))

    def group_of(self, topic: str) -> TopicCreationGroup:
        """Return the first group the topic belongs to."""
        return next((group for group in self.groups[:-1] if group.matches(topic)), self.groups[-1])

    def new_topic(self, topic: str) -> NewTopic:
        """Return ``topic`` with the settings of its group."""
        return self.group_of(topic).new_topic(topic)


def refused_topic_creation(connector: Mapping[str, str]) -> Iterator[ConfigError]:
    """Yield an error for each invalid key of each group; does not report groups that are listed twice."""
    if not any(key.startswith(_PREFIX) for key in connector):
        return
    for name in dict.fromkeys((_DEFAULT_GROUP, *_listed(connector))):
        prefix, required = f"{_PREFIX}{name}.", name == _DEFAULT_GROUP
        counts = (
            ("replication.factor", _LARGEST_REPLICATION_FACTOR, _REPLICATION_RULE),
            ("partitions", _LARGEST_PARTITIONS, _PARTITIONS_RULE),
        )
        for own, largest, rule in counts:
            key = prefix + own
            default = None if required else BROKER_DEFAULT
            yield from _error_of(partial(_count, key, connector.get(key), default, largest, rule))
        for own in () if required else ("include", "exclude"):
            yield from _error_of(partial(_pattern, prefix + own, connector.get(prefix + own, "")))


def _error_of(read: Callable[[], object]) -> Iterator[ConfigError]:
    try:
        read()
    except ConfigError as error:
        yield error


def _listed(connector: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in connector.get(_GROUPS, "").split(",") if name.strip()]


def _group_names(connector: Mapping[str, str]) -> list[str]:
    names = _listed(connector)
    if len(set(names)) < len(names):
        raise ConfigError(_GROUPS, connector[_GROUPS], "Duplicate alias provided.")
    return [name for name in names if name != _DEFAULT_GROUP]


def _group(name: str, connector: Mapping[str, str], default: TopicCreationGroup | None) -> TopicCreationGroup:
    prefix = f"{_PREFIX}{name}."
    own = {key.removeprefix(prefix): value for key, value in connector.items() if key.startswith(prefix)}
    replication_factor = _count(
        f"{prefix}replication.factor",
        own.get("replication.factor"),
        default.replication_factor if default else None,
        _LARGEST_REPLICATION_FACTOR,
        _REPLICATION_RULE,
    )
    partitions = _count(
        f"{prefix}partitions",
        own.get("partitions"),
        default.partitions if default else None,
        _LARGEST_PARTITIONS,
        _PARTITIONS_RULE,
    )
    return TopicCreationGroup(
        name,
        # The default group takes all remaining topics, regardless of its include and exclude.
        _pattern(f"{prefix}include", own.get("include", "") if default else ".*"),
        _pattern(f"{prefix}exclude", own.get("exclude", "") if default else ""),
        partitions,
        replication_factor,
        {key: value for key, value in own.items() if key not in _OWN_KEYS},
    )


def _pattern(key: str, value: str) -> re.Pattern[str]:
    expressions = [expression.strip() for expression in value.split(",") if expression.strip()]
    try:
        return regex_from_java("|".join(expressions))
    except re.error as error:
        raise ConfigError(key, value, f"Syntax error in regular expression: {error}") from error


def _count(key: str, value: str | None, default: int | None, largest: int, rule: str) -> int:
    if value is None:
        if default is None:
            raise _missing(key)
        return default
    try:
        count = int(value.strip())
    except ValueError as error:
        raise ConfigError(key, value, f"Not a number. {rule}") from error
    if count != BROKER_DEFAULT and not 1 <= count <= largest:
        raise ConfigError(key, count, rule)
    return count


def _missing(key: str) -> ConfigRuleError:
    return ConfigRuleError(f'Missing required configuration "{key}" which has no default value.', key)

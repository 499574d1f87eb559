"""Filters: which topics, groups and settings of topics a mirror takes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Self

from connect.errors import ConfigError
from connect.java.regex import regex_from_java
from connectors.mirror.extensions import extension_class

__all__ = [
    "CONFIG_PROPERTY_FILTERS",
    "GROUP_FILTERS",
    "TOPIC_FILTERS",
    "ConfigPropertyFilter",
    "DefaultConfigPropertyFilter",
    "DefaultGroupFilter",
    "DefaultTopicFilter",
    "GroupFilter",
    "Matching",
    "TopicFilter",
    "config_property_filter",
    "group_filter",
    "topic_filter",
]

_ALL: Final = ".*"
_TOPICS_EXCLUDE: Final = r"mm2.*\.internal,.*\.replica,__.*"
_GROUPS_EXCLUDE: Final = "console-consumer-.*,connect-.*,__.*"
_PROPERTIES_EXCLUDE: Final = (
    "follower.replication.throttled.replicas,leader.replication.throttled.replicas,"
    "message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms,"
    "message.timestamp.type,unclean.leader.election.enable,min.insync.replicas"
)


class TopicFilter(ABC):
    """Chooses topics of the source by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """The filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_topic(self, topic: str) -> bool:
        """Whether to mirror a topic."""


class GroupFilter(ABC):
    """Chooses consumer groups of the source by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """The filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_group(self, group: str) -> bool:
        """Whether to make checkpoints of a group."""


class ConfigPropertyFilter(ABC):
    """Chooses settings of topics by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """The filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_config_property(self, name: str) -> bool:
        """Whether to keep a setting as it is at the source."""

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002
        """Whether a setting that has its default at the source gets that value at the target, and not the target's."""
        return False


class Matching:
    """Matches whole names by two lists of regular expressions of Java's; what is excluded is so in any case."""

    def __init__(self, include: re.Pattern[str] | None, exclude: re.Pattern[str] | None) -> None:
        self._include = include
        self._exclude = exclude

    @classmethod
    def of(cls, props: Mapping[str, str | None], key: str, include: str, exclude: str) -> Matching:
        """By the lists of ``key`` and ``key.exclude``, or these without them; an empty list matches nothing."""
        return cls(_pattern(props, key, include), _pattern(props, f"{key}.exclude", exclude))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _matches(self._include, name) and not _matches(self._exclude, name)


class DefaultTopicFilter(TopicFilter):
    """Takes what ``topics`` names and ``topics.exclude`` does not."""

    def __init__(self, names: Matching) -> None:
        self._names = names

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """The filter with the lists of a configuration."""
        return cls(Matching.of(props, "topics", _ALL, _TOPICS_EXCLUDE))

    def should_replicate_topic(self, topic: str) -> bool:
        return topic in self._names


class DefaultGroupFilter(GroupFilter):
    """Takes what ``groups`` names and ``groups.exclude`` does not."""

    def __init__(self, names: Matching) -> None:
        self._names = names

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """The filter with the lists of a configuration."""
        return cls(Matching.of(props, "groups", _ALL, _GROUPS_EXCLUDE))

    def should_replicate_group(self, group: str) -> bool:
        return group in self._names


class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Takes all settings but those that ``config.properties.exclude`` names."""

    def __init__(self, names: Matching, defaults_from: str = "target") -> None:
        self._names = names
        self._defaults_from = defaults_from

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """The filter with the list of a configuration."""
        names = Matching(regex_from_java(_ALL), _pattern(props, "config.properties.exclude", _PROPERTIES_EXCLUDE))
        return cls(names, props.get("use.defaults.from") or "target")

    def should_replicate_config_property(self, name: str) -> bool:
        return name in self._names

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002
        return self._defaults_from == "source"


_PACKAGE: Final = "org.apache.kafka.connect.mirror"
TOPIC_FILTERS: Final[Mapping[str, type[TopicFilter]]] = {f"{_PACKAGE}.DefaultTopicFilter": DefaultTopicFilter}
GROUP_FILTERS: Final[Mapping[str, type[GroupFilter]]] = {f"{_PACKAGE}.DefaultGroupFilter": DefaultGroupFilter}
CONFIG_PROPERTY_FILTERS: Final[Mapping[str, type[ConfigPropertyFilter]]] = {
    f"{_PACKAGE}.DefaultConfigPropertyFilter": DefaultConfigPropertyFilter
}


def topic_filter(props: Mapping[str, str | None]) -> TopicFilter:
    """The filter of topics that a configuration names; raise :class:`~connect.errors.ConfigError` if none is such."""
    key = "topic.filter.class"
    name = props.get(key) or next(iter(TOPIC_FILTERS))
    return extension_class(key, name, TopicFilter, TOPIC_FILTERS).configured(props)  # type: ignore[type-abstract]


def group_filter(props: Mapping[str, str | None]) -> GroupFilter:
    """The filter of groups that a configuration names; raise :class:`~connect.errors.ConfigError` if none is such."""
    key = "group.filter.class"
    name = props.get(key) or next(iter(GROUP_FILTERS))
    return extension_class(key, name, GroupFilter, GROUP_FILTERS).configured(props)  # type: ignore[type-abstract]


def config_property_filter(props: Mapping[str, str | None]) -> ConfigPropertyFilter:
    """The filter of settings that a configuration names; raise :class:`~connect.errors.ConfigError` if none is such."""
    key = "config.property.filter.class"
    name = props.get(key) or next(iter(CONFIG_PROPERTY_FILTERS))
    found = extension_class(key, name, ConfigPropertyFilter, CONFIG_PROPERTY_FILTERS)  # type: ignore[type-abstract]
    return found.configured(props)


def _pattern(props: Mapping[str, str | None], key: str, default: str) -> re.Pattern[str] | None:
    given = props.get(key)
    items = _items(default if given is None else given)
    if not items:
        return None
    try:
        # Joined before they are read, as in Java: a flag of one holds for those after it.
        return regex_from_java("|".join(items))
    except re.error as error:
        raise ConfigError(key, given, f"is not a list of regular expressions: {error}") from error


def _items(text: str) -> Sequence[str]:
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None

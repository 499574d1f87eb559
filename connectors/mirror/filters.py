"""Filters, which select the topics, groups and topic settings that a mirror copies."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Self

from connect.errors import ConfigError
from connect.internals.java.regex import regex_from_java
from connectors.mirror.extensions import extension_class
from connectors.mirror.old_names import written_key

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
    """Selects topics of the source by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """Return the filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_topic(self, topic: str) -> bool:
        """Return whether to mirror a topic."""


class GroupFilter(ABC):
    """Selects consumer groups of the source by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """Return the filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_group(self, group: str) -> bool:
        """Return whether to emit checkpoints for a group."""


class ConfigPropertyFilter(ABC):
    """Selects settings of topics by their names."""

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:  # noqa: ARG003
        """Return the filter for a connector's configuration."""
        return cls()

    @abstractmethod
    def should_replicate_config_property(self, name: str) -> bool:
        """Return whether to keep a setting in sync with the source."""

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002
        """Return whether a default of the source is set at the target, in place of the target's default."""
        return False


class Matching:
    """Matches whole names against two lists of Java regular expressions; exclusion wins."""

    def __init__(self, include: re.Pattern[str] | None, exclude: re.Pattern[str] | None) -> None:
        self._include = include
        self._exclude = exclude

    @classmethod
    def of(cls, props: Mapping[str, str | None], key: str, include: str, exclude: str) -> Matching:
        """Use the lists of ``key`` and ``key.exclude``, or these defaults; an empty list matches nothing."""
        return cls(_pattern(props, key, include), _pattern(props, f"{key}.exclude", exclude))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _matches(self._include, name) and not _matches(self._exclude, name)


class DefaultTopicFilter(TopicFilter):
    """Selects the topics that ``topics`` matches and ``topics.exclude`` does not."""

    def __init__(self, names: Matching) -> None:
        self._names = names

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the filter with the lists of a configuration."""
        return cls(Matching.of(props, "topics", _ALL, _TOPICS_EXCLUDE))

    def should_replicate_topic(self, topic: str) -> bool:
        return topic in self._names


class DefaultGroupFilter(GroupFilter):
    """Selects the groups that ``groups`` matches and ``groups.exclude`` does not."""

    def __init__(self, names: Matching) -> None:
        self._names = names

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the filter with the lists of a configuration."""
        return cls(Matching.of(props, "groups", _ALL, _GROUPS_EXCLUDE))

    def should_replicate_group(self, group: str) -> bool:
        return group in self._names


class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Selects all settings except those that ``config.properties.exclude`` matches."""

    def __init__(self, names: Matching, defaults_from: str = "target") -> None:
        self._names = names
        self._defaults_from = defaults_from

    @classmethod
    def configured(cls, props: Mapping[str, str | None]) -> Self:
        """Return the filter with the list of a configuration."""
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
    """Return the topic filter of a configuration; raise :class:`~connect.errors.ConfigError` if it does not exist."""
    key = "topic.filter.class"
    name = props.get(key) or next(iter(TOPIC_FILTERS))
    return extension_class(key, name, TopicFilter, TOPIC_FILTERS).configured(props)  # type: ignore[type-abstract]


def group_filter(props: Mapping[str, str | None]) -> GroupFilter:
    """Return the group filter of a configuration; raise :class:`~connect.errors.ConfigError` if it does not exist."""
    key = "group.filter.class"
    name = props.get(key) or next(iter(GROUP_FILTERS))
    return extension_class(key, name, GroupFilter, GROUP_FILTERS).configured(props)  # type: ignore[type-abstract]


def config_property_filter(props: Mapping[str, str | None]) -> ConfigPropertyFilter:
    """Return the settings filter of a configuration; raise ``ConfigError`` if it does not exist."""
    key = "config.property.filter.class"
    name = props.get(key) or next(iter(CONFIG_PROPERTY_FILTERS))
    found = extension_class(key, name, ConfigPropertyFilter, CONFIG_PROPERTY_FILTERS)  # type: ignore[type-abstract]
    return found.configured(props)


def _pattern(props: Mapping[str, str | None], option: str, default: str) -> re.Pattern[str] | None:
    key = written_key(props, option)
    given = props.get(key)
    items = _items(default if given is None else given)
    if not items:
        return None
    try:
        # Joined before compiling, as in Java: an inline flag also applies to the expressions after it.
        return regex_from_java("|".join(items))
    except re.error as error:
        raise ConfigError(key, given, f"It is not a list of regular expressions: {error}") from error


def _items(text: str) -> Sequence[str]:
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name) is not None

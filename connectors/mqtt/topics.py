"""Topics of MQTT: their filters, and the names that Kafka allows."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "filter_problem",
    "kafka_name",
    "kafka_problem",
    "matches",
    "shared_filter",
    "topic_problem",
    "unshared",
]

_SHARED: Final = "$share/"
_MOST_BYTES: Final = 65_535
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9._-]")
_MOST_KAFKA_CHARACTERS: Final = 249


def unshared(topic_filter: str) -> str:
    """Return the filter of a subscription, without the group that shares it."""
    return topic_filter.split("/", 2)[2] if topic_filter.startswith(_SHARED) else topic_filter


def shared_filter(topic_filter: str, group: str) -> str:
    """Return the filter that shares the messages among the members of a group, unless it does already."""
    return topic_filter if topic_filter.startswith(_SHARED) else f"{_SHARED}{group}/{topic_filter}"


def filter_problem(topic_filter: str) -> str | None:
    """Return why a text is no filter of topics, if it is none."""
    if topic_filter.startswith(_SHARED):
        parts = topic_filter.split("/", 2)
        if len(parts) < 3 or not parts[1] or any(each in parts[1] for each in "+#"):
            return "a shared subscription is written as $share/GROUP/FILTER"
    levels = unshared(topic_filter).split("/")
    if not unshared(topic_filter) or "\0" in topic_filter or len(topic_filter.encode()) > _MOST_BYTES:
        return "it is empty, too long or has a zero byte"
    if any("#" in level and (level != "#" or place < len(levels) - 1) for place, level in enumerate(levels)):
        return "# stands for all levels below, and must be the last level"
    if any("+" in level and level != "+" for level in levels):
        return "+ stands for one level, and must be the whole of it"
    return None


def topic_problem(topic: str) -> str | None:
    """Return why nothing can be published to a topic, if so."""
    if not topic:
        return "it is empty"
    if any(each in topic for each in "+#\0"):
        return "it has a wildcard or a zero byte"
    return "it is too long" if len(topic.encode("utf-8", "surrogatepass")) > _MOST_BYTES else None


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a topic is one of a filter, which may be a shared one."""
    wanted, levels = unshared(topic_filter).split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("#", "+"):
        return False
    if wanted[-1] == "#":
        wanted = wanted[:-1]
        if len(levels) < len(wanted):
            return False
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(one in ("+", other) for one, other in zip(wanted, levels, strict=True))


def kafka_name(topic: str) -> str:
    """Return a topic as part of the name of a topic of Kafka: levels end with a dot, and what is not allowed is _."""
    return _NOT_ALLOWED.sub("_", topic.replace("/", "."))


def kafka_problem(name: str) -> str | None:
    """Return why a text cannot be the name of a topic of Kafka, if so."""
    if not name or name in (".", ".."):
        return "it is empty or only dots"
    if len(name) > _MOST_KAFKA_CHARACTERS:
        return f"it is longer than {_MOST_KAFKA_CHARACTERS} characters"
    return "it has other characters than letters, digits, ., _ and -" if _NOT_ALLOWED.search(name) else None

"""What the names of objects tell: topic, partition, and whether an object is read at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from connect.internals.java.regex import regex_from_java
from connect.kits.files.names import SHARED

__all__ = ["Names", "ObjectName", "RestoredNames", "TemplateNames", "TopicNames"]

_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*(?::[^}]*)?\}\}")
_VARIABLES: Final = {
    "topic": r"(?P<topic>[a-zA-Z0-9\-_.]+?)",
    "partition": r"(?P<partition>\d+)",
    "start_offset": r"(?P<start_offset>\d+)",
    "timestamp": r"\d+",
    "utc_date": r"[\d\-/T:.Z]+",
    "local_date": r"[\d\-/T:.Z]+",
    "key": r".+?",
}


@dataclass(frozen=True, slots=True)
class ObjectName:
    """What is told of an object with values: its topic and partition, and what its keys and headers are named like.

    ``stem`` is what the names of the objects with keys and headers begin with, ``part`` which of them this one is.
    """

    topic: str | None = None
    partition: int | None = None
    stem: str = ""
    part: str = "values"
    is_tombstones: bool = False


class Names(Protocol):
    """Reads names."""

    def parse(self, path: str) -> ObjectName | None:
        """Return what the key of an object tells; ``None`` if it is not to be read."""


class TemplateNames:
    """Keys in which a template or a regular expression is found, as with Aiven's sources."""

    def __init__(self, template: str) -> None:
        self._pattern = _pattern(template)

    @property
    def tells_topic(self) -> bool:
        """Whether names tell topics."""
        return "topic" in self._pattern.groupindex

    @property
    def tells_partition(self) -> bool:
        """Whether names tell partitions."""
        return "partition" in self._pattern.groupindex

    def parse(self, path: str) -> ObjectName | None:
        """Find the template in a key."""
        found = self._pattern.search(path)
        if found is None:
            return None
        groups = found.groupdict()
        partition = groups.get("partition")
        return ObjectName(groups.get("topic"), None if partition is None else int(partition), path)


class TopicNames:
    """Keys that match a regular expression belong to its topic, as with Confluent's sources of any folder."""

    def __init__(self, pairs: Sequence[str]) -> None:
        parts = (pair.partition(":") for pair in pairs)
        self._topics = [(topic, regex_from_java(pattern)) for topic, _, pattern in parts]

    tells_topic = True
    tells_partition = False

    def parse(self, path: str) -> ObjectName | None:
        """Return the topic of the first pattern that a key matches."""
        for topic, pattern in self._topics:
            if pattern.fullmatch(path):
                return ObjectName(topic, None, path)
        return None


class RestoredNames:
    """Keys of objects of a storage sink: ``FOLDER/TOPIC/.../TOPIC+PARTITION+OFFSET[.keys|.headers]EXTENSION``; or
    ``TOPIC+all+NUMBER-MARK...`` for those of several partitions.
    """

    def __init__(self, folder: str, delimiter: str, directory_delimiter: str, tombstones: str) -> None:
        self._start = f"{folder}{directory_delimiter}" if folder else ""
        self._between = directory_delimiter
        self._tombstones = tombstones
        mark = re.escape(delimiter)
        self._pattern = re.compile(
            rf"(?P<stem>(?P<topic>.+){mark}(?:(?P<partition>\d+){mark}\d+|{SHARED}{mark}\d+-[0-9a-f]{{8}}))"
            r"(?P<part>\.keys|\.headers)?\.[A-Za-z][\w.]*"
        )

    tells_topic = True
    tells_partition = True

    def parse(self, path: str) -> ObjectName | None:
        """Take a key apart."""
        if not path.startswith(self._start):
            return None
        folder, _, name = path.removeprefix(self._start).rpartition(self._between)
        found = self._pattern.fullmatch(name)
        if found is None or folder.split(self._between)[0] != found["topic"]:
            return None
        stem = path.removesuffix(name) + found["stem"]
        part = (found["part"] or ".values").removeprefix(".")
        is_tombstones = self._tombstones in folder.split(self._between)[1:]
        partition = None if found["partition"] is None else int(found["partition"])
        return ObjectName(found["topic"], partition, stem, part, is_tombstones)


def _pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of a template; one without variables is a regular expression of Java."""
    if not _VARIABLE.search(template):
        return regex_from_java(template)
    parts: list[str] = []
    end = 0
    used: set[str] = set()
    for found in _VARIABLE.finditer(template):
        name = found[1]
        if name not in _VARIABLES:
            raise ValueError(f"it has the variable {name}; there are {', '.join(_VARIABLES)}")
        parts += (re.escape(template[end : found.start()]), f"(?P={name})" if name in used else _VARIABLES[name])
        used |= {name} if "?P<" in _VARIABLES[name] else set()
        end = found.end()
    return re.compile("".join(parts) + re.escape(template[end:]))

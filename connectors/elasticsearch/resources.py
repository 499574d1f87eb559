"""Where the records of a topic go: the names of indexes and data streams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect.errors import ConnectError, DataError
from connect.internals.java.date_format import DateFormat

__all__ = ["Resource", "ResourceNames", "index_name", "name_problem", "template_problem"]

_LONGEST_NAME_CHARACTERS: Final = 255
_LONGEST_NAMESPACE_CHARACTERS: Final = 100
_DOTS: Final = {".": "dot", "..": "dotdot"}
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_TIME: Final = "timestamp:"
_FORBIDDEN: Final = re.compile(r'[\\/*?"<>|\s,#:A-Z]')


@dataclass(frozen=True, slots=True)
class Resource:
    """An index, a data stream, or an alias of one.

    ``is_ours`` says whether the sink creates it and sends its mapping; others have to exist.
    """

    name: str
    is_data_stream: bool = False
    is_ours: bool = True


def index_name(topic: str) -> str:
    """Return the name of the index of a topic: in lower case, and without what a name must not begin with."""
    name = topic.lower()[:_LONGEST_NAME_CHARACTERS]
    if name[:1] in "-_" and len(name) > 1:
        name = name[1:]
    return _DOTS.get(name, name)


def name_problem(name: str) -> str | None:
    """Return why a text cannot be the name of an index, if it cannot."""
    if not name or name in _DOTS:
        return "it is empty or only dots"
    if len(name.encode()) > _LONGEST_NAME_CHARACTERS:
        return f"it is longer than {_LONGEST_NAME_CHARACTERS} bytes"
    if name[0] in "-_+":
        return f"it begins with {name[0]}"
    if match := _FORBIDDEN.search(name):
        return f"it contains {match[0]!r}"
    return None


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """Names the resource of each record.

    ``mapped`` has the resources of topics that were made by others, ``stream`` the pattern of data streams, such as
    ``logs-nginx-${topic}``, ``named`` the indexes of some topics, and ``template`` the pattern of the others'; without
    any of them an index is called as its topic.
    """

    mapped: Mapping[str, Resource] = field(default_factory=dict)
    stream: str = ""
    template: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    _formats: dict[str, DateFormat] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def depends_on_time(self) -> bool:
        """Whether records of one topic may go to several indexes."""
        return "${" + _TIME in self.template

    def resource(self, topic: str, timestamp: int | None) -> Resource:
        """Return the resource of a record. Raises :class:`~connect.errors.DataError` if it has none.

        A topic without a resource, where all are named in the configuration, is a mistake in it and fails the task.
        """
        if self.mapped:
            if topic not in self.mapped:
                raise ConnectError(
                    f"Topic {topic} has no resource: add {topic}:NAME to the mapping of topics to existing resources."
                )
            return self.mapped[topic]
        if self.stream:
            namespace = topic.lower()[:_LONGEST_NAMESPACE_CHARACTERS]
            return Resource(self.stream.replace("${topic}", namespace), is_data_stream=True)
        if topic in self.named:
            return Resource(self.named[topic])
        if not self.template:
            return Resource(index_name(topic))
        return Resource(self._filled(topic, timestamp))

    def _filled(self, topic: str, timestamp: int | None) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] == "topic":
                return index_name(topic)
            if timestamp is None:
                raise DataError("The record has no timestamp, which index.name.template needs.")
            return self._format(match[1].removeprefix(_TIME)).format(timestamp)

        name = _PLACEHOLDER.sub(value, self.template)
        if problem := name_problem(name):
            raise DataError(f"{name} cannot be the name of an index: {problem}. Correct index.name.template.")
        return name

    def _format(self, pattern: str) -> DateFormat:
        made = self._formats.get(pattern)
        if made is None:
            made = self._formats[pattern] = DateFormat(pattern)
        return made


def template_problem(template: str) -> str | None:
    """Return what is wrong with a template of index names, if something is."""
    for name in _PLACEHOLDER.findall(template):
        if name == "topic":
            continue
        if not name.startswith(_TIME):
            return f"${{{name}}} is not known: use ${{topic}} or ${{timestamp:yyyy.MM.dd}}"
        try:
            DateFormat(name.removeprefix(_TIME))
        except ValueError as error:
            return str(error)
    return name_problem(_PLACEHOLDER.sub("x", template))

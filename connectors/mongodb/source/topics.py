"""The topics of change events."""

from __future__ import annotations

import re
from typing import Final

from connect.errors import DataError
from connect.internals.java.regex import regex_from_java
from connect.kits.mongodb.extended_json import parse_document

__all__ = ["TopicMapper"]

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_MOST_NAMESPACES: Final = 10_000


class TopicMapper:
    """Chooses topics by namespaces. Raises a ``DataError`` if ``topic.namespace.map`` is not usable."""

    def __init__(self, topics: str, *, prefix: str = "", suffix: str = "", separator: str = ".") -> None:
        self._separator = separator
        self._prefix = f"{prefix}{separator}" if prefix else ""
        self._suffix = f"{separator}{suffix}" if suffix else ""
        given: dict[str, str] = parse_document(topics) if topics.strip() else {}
        if bad := next((name for name, topic in given.items() if not isinstance(topic, str)), None):
            raise DataError(f"the topic of {bad} is not a text.")
        self._exact = {name: topic for name, topic in given.items() if topic and not name.startswith("/")}
        self._patterns = [
            (regex_from_java(name[1:].removesuffix("/")), _checked(topic))
            for name, topic in given.items()
            if topic and name.startswith("/")
        ]
        self._known: dict[tuple[str, str], str] = {}

    def topic(self, database: str, collection: str) -> str:
        """Return the topic of a namespace; the collection is empty for events of a database."""
        found = self._known.get((database, collection))
        if found is None:
            found = f"{self._prefix}{self._mapped(database, collection)}{self._suffix}"
            if len(self._known) < _MOST_NAMESPACES:
                self._known[database, collection] = found
        return found

    def _mapped(self, database: str, collection: str) -> str:
        # A dot joins a namespace, whatever the separator of topics is.
        namespace = f"{database}.{collection}" if collection else database
        if namespace in self._exact:
            return self._exact[namespace]
        if database in self._exact:
            return self._joined(self._exact[database], collection)
        for pattern, template in self._patterns:
            if pattern.fullmatch(namespace):
                return self._filled(template, database, collection)
        if "*" in self._exact:
            return self._exact["*"]
        return self._joined(database, collection)

    def _joined(self, first: str, collection: str) -> str:
        return f"{first}{self._separator}{collection}" if collection else first

    def _filled(self, template: str, database: str, collection: str) -> str:
        separator = self._separator
        values = {
            "db": database,
            "coll": collection,
            "sep": separator,
            "sep_coll": f"{separator}{collection}" if collection else "",
            "coll_sep": f"{collection}{separator}" if collection else "",
            "sep_coll_sep": f"{separator}{collection}{separator}" if collection else "",
        }
        return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def _checked(template: str) -> str:
    known = ("db", "coll", "sep", "sep_coll", "coll_sep", "sep_coll_sep")
    for name in _PLACEHOLDER.findall(template):
        if name not in known:
            raise DataError(f"the placeholder {{{name}}} is none of {', '.join(known)}.")
    return template

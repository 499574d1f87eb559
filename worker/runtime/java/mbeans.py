"""Reads MBeans of a JVM: many values in one call, since each call costs some tenths of a millisecond."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from worker.runtime.java.jvm import Jvm

__all__ = ["MBean", "MBeans"]

_NUMBERS: Final = frozenset(
    {
        *("int", "long", "double", "float", "short", "byte", "boolean"),
        *(f"java.lang.{name}" for name in ("Integer", "Long", "Double", "Float", "Short", "Byte", "Boolean", "Object")),
    }
)
_LISTS: Final = frozenset({"[Ljava.lang.String;"})
_TABLES: Final = frozenset({"javax.management.openmbean.TabularData"})


@dataclass(frozen=True, slots=True)
class MBean:
    """An MBean: its name in Java, the domain and the properties of that name, and the attributes by kind."""

    name: Any
    domain: str
    properties: Mapping[str, str]
    attributes: Any = None
    tables: Sequence[str] = ()


class MBeans:
    """The MBeans of a JVM. For one thread."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._server: Any = jvm.java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        self._names: dict[str, Any] = {}
        self._kinds: dict[str, tuple[Any, list[str]]] = {}
        self._quoted: dict[str, str] = {}
        self._always_quoted: dict[str, str] = {}
        self._arrays: dict[tuple[str, ...], Any] = {}

    def quoted(self, value: str) -> str:
        """Return a value as Kafka and Debezium write it in the name of an MBean."""
        if value not in self._quoted:
            sanitizer = self._jvm.java.org.apache.kafka.common.utils.Sanitizer
            self._quoted[value] = str(sanitizer.jmxSanitize(value))
        return self._quoted[value]

    def always_quoted(self, value: str) -> str:
        """Return a value as others write it in the name of an MBean."""
        if value not in self._always_quoted:
            self._always_quoted[value] = str(self._jvm.java.javax.management.ObjectName.quote(value))
        return self._always_quoted[value]

    def count(self) -> int:
        """Return the number of all MBeans: as long as it is the same, hardly any has come or gone."""
        return int(self._server.getMBeanCount())

    def found(self, pattern: str, attributes: Sequence[str] | None = None) -> Iterator[MBean]:
        """Yield the MBeans that match a pattern, with these attributes, or else with all that are numbers."""
        query = self._server.queryNames(self._name(pattern), None)
        for each in self._jvm.to_python(query):
            properties = {key: _plain(value) for key, value in each["keyPropertyList"].items()}
            name = self._name(each["canonicalName"])
            if attributes is not None:
                yield MBean(name, each["domain"], properties, self._array(tuple(attributes)))
                continue
            numbers, tables = self._attributes(each["canonicalName"], name)
            yield MBean(name, each["domain"], properties, numbers, tables)

    def values(self, bean: MBean) -> dict[str, float]:
        """Return the values of its attributes; of a list its length. What was not measured yet is left out."""
        read = self._jvm.to_python(self._server.getAttributes(bean.name, bean.attributes))
        numbers = ((each["name"], _number(each["value"])) for each in read)
        return {name: value for name, value in numbers if value is not None}

    def table(self, bean: MBean, attribute: str) -> dict[str, float]:
        """Return an attribute that is a map of text to numbers."""
        # The map of py4j has Python's method of this name.
        rows = self._jvm.call(self._server.getAttribute(bean.name, attribute), "values").toArray()
        pairs = ((str(row.get("key")), _number(row.get("value"))) for row in rows)
        return {key: value for key, value in pairs if value is not None}

    def _name(self, text: str) -> Any:
        found = self._names.get(text)
        if found is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
                self._kinds.clear()
            found = self._names[text] = self._jvm.java.javax.management.ObjectName(text)
        return found

    def _array(self, names: tuple[str, ...]) -> Any:
        if names not in self._arrays:
            self._arrays[names] = self._jvm.strings(names)
        return self._arrays[names]

    def _attributes(self, text: str, name: Any) -> tuple[Any, list[str]]:
        """Return an array of the attributes that are numbers, and those that are maps. It takes a call for each."""
        if (known := self._kinds.get(text)) is not None:
            return known
        found = [(str(each.getName()), str(each.getType())) for each in self._server.getMBeanInfo(name).getAttributes()]
        numbers = self._jvm.strings([attribute for attribute, kind in found if kind in _NUMBERS | _LISTS])
        kinds = self._kinds[text] = numbers, [attribute for attribute, kind in found if kind in _TABLES]
        return kinds


_MOST_NAMES: Final = 2000


def _plain(value: str) -> str:
    """Return a property of a name without the quotes that it has if it holds special characters."""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return (
            value[1:-1]
            .replace("\\n", "\n")
            .replace('\\"', '"')
            .replace("\\*", "*")
            .replace("\\?", "?")
            .replace("\\\\", "\\")
        )
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, list):
        return float(len(value))
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

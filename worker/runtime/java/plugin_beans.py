"""The MBeans of a Java plugin as its measurements: which belong to a task, and their names and labels here."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

from connect.errors import ConnectError
from connect.measurement import Measurement
from worker.runtime.java.mbeans import MBean, MBeans

__all__ = ["PluginBeans", "measurement_name"]

logger = logging.getLogger(__name__)

_MOST_BEANS: Final = 500
_SECONDS_EACH: Final = 0.05
_MOST_TABLES: Final = 200
_DEBEZIUM: Final = "debezium."
_MIRROR: Final = "kafka.connect.mirror"
_KAFKA: Final = ("kafka.", "java.", "jdk.", "com.sun.", "sun.", "JMImplementation")
_KIP_877: Final = "kafka.connect:type=plugins"
_ALIASES: Final = ("source.cluster.alias", "target.cluster.alias")
_ASSIGNED: Final = "task.assigned.partitions"
_MS: Final = 1000.0
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_NUMBER_AT_END: Final = re.compile(r"(\d+)$")
_RUNTIMES: Final = frozenset({"connector", "task"})
_MIRROR_NAMES: Final = {
    "record-count": "mirror_records_total",
    "record-rate": "mirror_record_rate",
    "byte-count": "mirror_bytes_total",
    "byte-rate": "mirror_byte_rate",
}
_MIRROR_ATTRIBUTES: Final = (
    *_MIRROR_NAMES,
    *(
        f"{measured}-ms{kind}"
        for measured in ("record-age", "replication-latency", "checkpoint-latency")
        for kind in ("", "-min", "-max", "-avg")
    ),
)
_MIRROR_TIME: Final = re.compile(r"(record-age|replication-latency|checkpoint-latency)-ms((?:-(?:min|max|avg))?)")


def measurement_name(attribute: str) -> str:
    """Return the name of an attribute in lower case, as in ``milli_seconds_behind_source``."""
    words = [word for word in _WORD.split(attribute) if word]
    name = "_".join(words).lower()
    return name if name[:1].isalpha() else f"n_{name}"


class PluginBeans:
    """The measurements of one task's plugin, for the thread of the task. ``props`` are its configuration.

    ``guard`` makes a context of each call that reads an MBean, and raises ``ConnectError`` for what Java throws.
    """

    def __init__(
        self,
        beans: MBeans,
        connector: str,
        task: int,
        props: Mapping[str, str],
        guard: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.due = 0.0
        """When to read them next, by :func:`time.monotonic`: many are read less often."""
        self._guard = guard
        self._has_warned = False
        self._beans = beans
        self._connector = connector
        self._task = task
        self._props = props
        self._found: list[MBean] = []

    def look(self) -> None:
        """Look for MBeans: some plugins make them long after their start."""
        try:
            with self._guard():
                self._found = list(islice(self._own(), _MOST_BEANS))
        except ConnectError as error:
            self._warn(error)

    def measurements(self) -> Iterator[Measurement]:
        """Yield what they measure now. One that cannot be read, or is gone, is left out."""
        self.due = time.monotonic() + len(self._found) * _SECONDS_EACH
        for bean in self._found:
            try:
                with self._guard():
                    found = list(self._of(bean))
            except ConnectError as error:
                self._warn(error)
            else:
                yield from found

    def _warn(self, error: ConnectError) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("An MBean of the plugin cannot be read, and perhaps others: %s", error)

    def _of(self, bean: MBean) -> Iterator[Measurement]:
        if bean.domain.startswith(_DEBEZIUM):
            yield from self._of_debezium(bean)
        elif bean.domain == _MIRROR:
            yield from self._of_mirror(bean)
        else:
            labels = _labels({key: value for key, value in bean.properties.items() if key not in _RUNTIMES})
            for attribute, value in self._beans.values(bean).items():
                yield Measurement(measurement_name(attribute), value, _help(bean), labels)

    def _own(self) -> Iterator[MBean]:
        connector = self._beans.quoted(self._connector)
        yield from self._beans.found(f"{_KIP_877},connector={connector},task={self._task},*")
        for written in {connector, self._beans.always_quoted(self._connector)}:
            for bean in self._beans.found(f"*:connector={written},*"):
                if not bean.domain.startswith(_KAFKA) and self._is_of_task(bean):
                    yield bean
        if prefix := self._props.get("topic.prefix"):
            for bean in self._beans.found(f"{_DEBEZIUM}*:type=connector-metrics,server={self._beans.quoted(prefix)},*"):
                if self._is_of_task(bean):
                    yield bean
        if all(key in self._props for key in _ALIASES):
            yield from self._of_aliases()

    def _is_of_task(self, bean: MBean) -> bool:
        """Return whether an MBean is of this task; one that names none is of the first."""
        number = _NUMBER_AT_END.search(bean.properties.get("task", "0"))
        return number is not None and int(number[1]) == self._task

    def _of_aliases(self) -> Iterator[MBean]:
        source, target = (self._beans.quoted(self._props[key]) for key in _ALIASES)
        assigned = self._props.get(_ASSIGNED)
        mine = None if assigned is None else {each.strip() for each in assigned.split(",")}
        for bean in self._beans.found(f"{_MIRROR}:source={source},target={target},*", _MIRROR_ATTRIBUTES):
            place = f"{bean.properties.get('topic')}-{bean.properties.get('partition')}"
            if mine is None or self._of_source(place) & mine:
                yield bean

    def _of_source(self, place: str) -> set[str]:
        """Return the names that a partition may have in the source: the measurements have those of the target."""
        separator = self._props.get("replication.policy.separator", ".")
        return {place, place.removeprefix(f"{self._props[_ALIASES[0]]}{separator}")}

    def _of_debezium(self, bean: MBean) -> Iterator[Measurement]:
        kept = {key: bean.properties[key] for key in ("context", "database") if key in bean.properties}
        named = {"plugin": bean.domain.removeprefix(_DEBEZIUM), "name": bean.properties["server"], **kept}
        for attribute, value in self._beans.values(bean).items():
            yield Measurement(f"debezium_{measurement_name(attribute)}", value, _help(bean), _labels(named))
        for attribute in bean.tables:
            for table, value in list(self._beans.table(bean, attribute).items())[:_MOST_TABLES]:
                labels = _labels({**named, "table": table})
                yield Measurement(f"debezium_{measurement_name(attribute)}", value, _help(bean), labels)

    def _of_mirror(self, bean: MBean) -> Iterator[Measurement]:
        labels = _labels({key: value for key, value in bean.properties.items() if key != "type"})
        for attribute, value in self._beans.values(bean).items():
            if (name := _MIRROR_NAMES.get(attribute)) is not None:
                yield Measurement(name, value, _help(bean), labels)
            elif (took := _MIRROR_TIME.fullmatch(attribute)) is not None:
                name = f"mirror_{measurement_name(took[1])}{took[2].replace('-', '_')}_seconds"
                yield Measurement(name, value / _MS, _help(bean), labels)


def _labels(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((measurement_name(key), value) for key, value in properties.items())


def _help(bean: MBean) -> str:
    return f"An attribute of an MBean in {bean.domain}."

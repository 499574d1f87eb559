"""The records of the status topic, in Kafka Connect's bytes.

The ``*_key`` and ``*_value`` functions make keys and values, :func:`parse` reads them. A value of ``None`` is a
tombstone: the unit was removed, or its connector's topics were reset.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from connect.errors import DataError
from worker.stores.java_json import dump, load_object, text, whole
from worker.stores.status.store import Hang, Skips, State, Status, Wait
from worker.unit import Unit

__all__ = ["StatusRecord", "TopicUseRecord", "parse", "status_key", "status_value", "topic_use_key", "topic_use_value"]

_CONNECTOR: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
# Topic names contain no colon, so the first one ends the topic. A connector's name may contain any character.
_OF_CONNECTOR: Final = ":connector-"
_DESTROYED: Final = "DESTROYED"


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """The status of a unit, or ``None`` if the unit was removed."""

    unit: Unit
    status: Status | None


@dataclass(frozen=True, slots=True)
class TopicUseRecord:
    """A connector uses a topic, or no longer does."""

    connector: str
    topic: str
    used: bool


AnyStatusRecord: TypeAlias = StatusRecord | TopicUseRecord


def status_key(unit: Unit) -> bytes:
    """Return the key of a unit's status."""
    name = f"{_TASK}{unit.connector}-{unit.task}" if unit.is_task else f"{_CONNECTOR}{unit.connector}"
    return name.encode("utf-8")


def status_value(status: Status) -> bytes:
    """Return the value of a status. Members that Kafka Connect does not know, and skips, are written only if set."""
    document: dict[str, Any] = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    if status.drained:
        document["drained"] = True
    if status.restarts:
        document["restarts"] = status.restarts
    if status.hanging is not None:
        document["hanging"] = asdict(status.hanging)
    if status.waiting is not None:
        document["waiting"] = asdict(status.waiting)
    if status.skipped is not None:
        document["skipped"] = asdict(status.skipped)
    times = (("changed", status.changed), ("started", status.started))
    document |= {name: time for name, time in times if time is not None}
    return dump(document)


def topic_use_key(connector: str, topic: str) -> bytes:
    """Return the key of a connector's use of a topic (KIP-158)."""
    return f"{_TOPIC}{topic}{_OF_CONNECTOR}{connector}".encode()


def topic_use_value(unit: Unit, topic: str, discovered: int) -> bytes:
    """Return the value for a task's use of a topic, since ``discovered`` in milliseconds since 1970."""
    use = {"name": topic, "connector": unit.connector, "task": unit.task, "discoverTimestamp": discovered}
    return dump({"topic": use})


def parse(key: bytes | None, value: bytes | None) -> AnyStatusRecord:
    """Parse a record of the topic. Raises :class:`~connect.errors.DataError` if it is not a valid one."""
    try:
        name = (key or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("its key is not UTF-8") from None
    if name.startswith(_CONNECTOR):
        return StatusRecord(Unit(name.removeprefix(_CONNECTOR)), _status(value))
    if name.startswith(_TASK):
        connector, _, number = name.removeprefix(_TASK).rpartition("-")
        if not connector or not (number.isascii() and number.isdigit()):
            raise DataError("its key does not end with a connector and the number of a task")
        return StatusRecord(Unit(connector, int(number)), _status(value))
    if name.startswith(_TOPIC):
        return _topic_use(name.removeprefix(_TOPIC), value)
    raise DataError("its key is of no known kind")


def _status(value: bytes | None) -> Status | None:
    if value is None:
        return None
    document = load_object(value)
    state = text(document, "state")
    if state == _DESTROYED:
        return None
    if state not in State.__members__:
        raise DataError(f"'{state}' is not a state")
    trace, version = document.get("trace"), document.get("version")
    return Status(
        State[state],
        text(document, "worker_id"),
        whole(document, "generation"),
        trace if isinstance(trace, str) else None,
        version if isinstance(version, str) else None,
        document.get("drained") is True,
        whole(document, "restarts") if "restarts" in document else 0,
        _hang(document.get("hanging")),
        whole(document, "changed") if "changed" in document else None,
        whole(document, "started") if "started" in document else None,
        _wait(document.get("waiting")),
        _skips(document.get("skipped")),
    )


def _hang(value: object) -> Hang | None:
    if not isinstance(value, dict):
        return None
    return Hang(text(value, "method"), text(value, "since"), text(value, "line"), text(value, "trace"))


def _wait(value: object) -> Wait | None:
    return Wait(text(value, "reason"), text(value, "since")) if isinstance(value, dict) else None


def _skips(value: object) -> Skips | None:
    if not isinstance(value, dict):
        return None
    counts = whole(value, "records"), whole(value, "dead_letters")
    return Skips(*counts, text(value, "since"), text(value, "last"), text(value, "reason"))


def _topic_use(rest: str, value: bytes | None) -> TopicUseRecord:
    topic, separator, connector = rest.partition(_OF_CONNECTOR)
    if not (topic and separator and connector):
        raise DataError("its key does not name a topic and a connector")
    if value is not None and not isinstance(load_object(value).get("topic"), dict):
        raise DataError("'topic' should be an object")
    return TopicUseRecord(connector, topic, value is not None)

"""Consumer settings that depend on each other: the group, its assignor, its limits."""

from __future__ import annotations

from collections.abc import Mapping

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import PropertyValue
from connect.internals.kafka.settings.conversion import boolean, integer, parse_integer

__all__ = ["check_consumer", "consumer_properties"]

_ASSIGNMENT = "partition.assignment.strategy"
_SESSION_TIMEOUT = "session.timeout.ms"
_POLL_INTERVAL = "max.poll.interval.ms"
_DEFAULT_SESSION_TIMEOUT_MS = 45_000
_DEFAULT_POLL_INTERVAL_MS = 300_000
_DEFAULT_MESSAGE_MAX_BYTES = 1_000_000

_COOPERATIVE = "cooperative-sticky"

_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": _COOPERATIVE,
    "range": "range",
    "roundrobin": "roundrobin",
    _COOPERATIVE: _COOPERATIVE,
}

_INTERNAL_TOPICS = "^__consumer_offsets$,^__transaction_state$,^__share_group_state$"

_ONLY_CLASSIC = ("heartbeat.interval.ms", _SESSION_TIMEOUT, _ASSIGNMENT)


def consumer_properties(java: Mapping[str, str]) -> dict[str, PropertyValue]:
    """Return the properties that several Java settings of a consumer determine together."""
    properties: dict[str, PropertyValue] = {}
    for key in ("group.id", "group.instance.id"):
        if key in java:
            properties[key] = _non_empty(key, java[key])
    if boolean("exclude.internal.topics", java.get("exclude.internal.topics", "false")):
        properties["topic.blacklist"] = _INTERNAL_TOPICS
    return properties | _group_protocol(java)


def _non_empty(key: str, value: str) -> str:
    # librdkafka aborts the process if a consumer's group.id is empty.
    if not value.strip():
        raise ConfigError(key, value, "String must be non-empty")
    return value.strip()


def _group_protocol(java: Mapping[str, str]) -> dict[str, PropertyValue]:
    if java.get("group.protocol", "classic").strip().lower() == "consumer":
        for key in _ONLY_CLASSIC:
            if key in java:
                raise ConfigRuleError(
                    f"{key} cannot be set when group.protocol=CONSUMER: the broker sets it, remove the key",
                    key,
                )
        assignor = java.get("group.remote.assignor", "").strip()
        return {"group.remote.assignor": assignor} if assignor else {}
    if java.get("group.remote.assignor", "").strip():
        raise ConfigRuleError(
            f"group.remote.assignor cannot be set when group.protocol=CLASSIC: use {_ASSIGNMENT}",
            "group.remote.assignor",
        )
    return _classic_group(java)


def _classic_group(java: Mapping[str, str]) -> dict[str, PropertyValue]:
    milliseconds = integer(1, 3_600_000)
    properties = {
        key: milliseconds(key, java[key]) for key in ("heartbeat.interval.ms", _SESSION_TIMEOUT) if key in java
    }
    if java.get(_ASSIGNMENT, "").strip():
        properties[_ASSIGNMENT] = _assignors(java[_ASSIGNMENT])
    return properties


def _assignors(value: str) -> str:
    """Return the assignors in order. As in Java, a group that also supports an eager assignor is eager."""
    names = [name.strip().removeprefix("class ") for name in value.split(",") if name.strip()]
    for name in names:
        if name not in _ASSIGNORS:
            raise ConfigError(
                _ASSIGNMENT,
                name,
                "A Java assignor cannot run here: use RangeAssignor, RoundRobinAssignor or "
                "CooperativeStickyAssignor of org.apache.kafka.clients.consumer",
            )
    assignors = [_ASSIGNORS[name] for name in names]
    eager = [assignor for assignor in assignors if assignor != _COOPERATIVE]
    return ",".join(eager or assignors)


def check_consumer(properties: dict[str, PropertyValue]) -> None:
    """Adjust ``properties`` where librdkafka requires consistency and Java does not."""
    _fit_session_timeout(properties)
    most = _number(properties, "fetch.max.bytes", _DEFAULT_MESSAGE_MAX_BYTES)
    if most < _number(properties, "message.max.bytes", _DEFAULT_MESSAGE_MAX_BYTES):
        properties["message.max.bytes"] = most


def _fit_session_timeout(properties: dict[str, PropertyValue]) -> None:
    if properties.get("group.protocol") == "consumer":
        return
    interval = _number(properties, _POLL_INTERVAL, _DEFAULT_POLL_INTERVAL_MS)
    session = _number(properties, _SESSION_TIMEOUT, _DEFAULT_SESSION_TIMEOUT_MS)
    if session <= interval:
        return
    if _SESSION_TIMEOUT in properties:
        raise ConfigError(_SESSION_TIMEOUT, session, f"Must not be larger than {_POLL_INTERVAL} ({interval}): lower it")
    properties[_SESSION_TIMEOUT] = interval


def _number(properties: Mapping[str, PropertyValue], name: str, default: int) -> int:
    return parse_integer(name, str(properties.get(name, default)))

"""Translation of Java's client settings to librdkafka's properties."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from connect.config.errors import ConfigRuleError
from connect.internals.kafka.auth.sasl import check_kerberos, sasl_properties
from connect.internals.kafka.auth.ssl import ssl_properties
from connect.internals.kafka.settings.client import ClientKind, ClientProperties, PropertyValue
from connect.internals.kafka.settings.consumer import check_consumer, consumer_properties
from connect.internals.kafka.settings.conversion import parse_integer
from connect.internals.kafka.settings.java_keys import (
    CLIENT_KEYS,
    IGNORED_PREFIXES,
    Combined,
    HandledByWorker,
    Ignored,
    Mapped,
    Refused,
)
from connect.internals.kafka.settings.native_keys import REFUSED_NATIVE_KEYS, canonical_native_key, is_native_key
from connect.internals.kafka.settings.producer import check_producer, producer_properties

__all__ = ["JAVA_DEFAULTS", "UNKNOWN_KEY", "layered", "librdkafka_properties"]

UNKNOWN_KEY = "no such setting is known"
"""The reason for ignoring a setting that neither Java's client nor librdkafka knows."""

# The first reconnect wait and the longest, with librdkafka's defaults.
_BACKOFF = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 10_000}

_COMMON_DEFAULTS = {
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "1000",
    "request.timeout.ms": "30000",
}

JAVA_DEFAULTS: Mapping[ClientKind, Mapping[str, str]] = MappingProxyType(
    {
        ClientKind.PRODUCER: _COMMON_DEFAULTS | {"max.request.size": "1048576"},
        ClientKind.CONSUMER: _COMMON_DEFAULTS
        | {
            "allow.auto.create.topics": "true",
            "check.crcs": "true",
            "isolation.level": "read_uncommitted",
        },
        ClientKind.ADMIN: _COMMON_DEFAULTS,
    }
)
"""Java's defaults where librdkafka's differ: the lowest layer of a client that must behave like Java's."""


def librdkafka_properties(java: Mapping[str, str], kind: ClientKind) -> ClientProperties:
    """Return a client's settings for librdkafka, given settings under Java's names, librdkafka's names or both.

    If a property is given under both names, librdkafka's takes precedence. Raises ``ConfigError`` for an invalid value
    and for a setting that cannot be translated, with what to use instead.
    """
    properties = _converted(java, kind) | sasl_properties(java) | ssl_properties(java)
    if kind is ClientKind.PRODUCER:
        properties |= producer_properties(java)
    if kind is ClientKind.CONSUMER:
        properties |= consumer_properties(java)
    properties |= _native(java, kind)
    check_kerberos(properties)
    if kind is ClientKind.PRODUCER:
        check_producer(properties)
    if kind is ClientKind.CONSUMER:
        check_consumer(properties)
    _fit_reconnect_backoff(properties)
    return ClientProperties(
        MappingProxyType(properties),
        MappingProxyType({key: java[key] for key in java if isinstance(CLIENT_KEYS[kind].get(key), HandledByWorker)}),
        MappingProxyType(_ignored(java, kind)),
    )


def layered(kind: ClientKind, *layers: Mapping[str, str]) -> dict[str, str]:
    """Merge settings; later layers override earlier ones.

    A later layer also overrides the same property under its other name, Java's or librdkafka's.
    """
    merged: dict[str, str] = {}
    for layer in layers:
        covered = [key for key in merged if any(_is_other_name(key, later, kind) for later in layer)]
        for key in covered:
            del merged[key]
        merged |= layer
    return merged


def _is_other_name(key: str, other: str, kind: ClientKind) -> bool:
    """Return whether two keys name the same property.

    Two Java settings never do: they determine a property together.
    """
    one_is_java = (key in CLIENT_KEYS[kind]) != (other in CLIENT_KEYS[kind])
    return one_is_java and not set(_property_names(key, kind)).isdisjoint(_property_names(other, kind))


def _property_names(key: str, kind: ClientKind) -> tuple[str, ...]:
    decision = CLIENT_KEYS[kind].get(key)
    if isinstance(decision, Mapped | Combined):
        return decision.names
    return (canonical_native_key(key),) if decision is None and is_native_key(key, kind) else ()


def _converted(java: Mapping[str, str], kind: ClientKind) -> dict[str, PropertyValue]:
    properties: dict[str, PropertyValue] = {}
    for key, value in java.items():
        decision = CLIENT_KEYS[kind].get(key)
        match decision:
            case Mapped(names, convert):
                properties |= dict.fromkeys(names, convert(key, value))
            case Refused(remedy, harmless) if value.strip().lower() not in {allowed.lower() for allowed in harmless}:
                raise ConfigRuleError(f"Configuration {key} cannot be used. {remedy}", key)
            case HandledByWorker(check):
                check(key, value)
            case Refused() | Combined() | Ignored() | None:
                pass
            case _:
                assert_never(decision)
    return properties


def _native(java: Mapping[str, str], kind: ClientKind) -> dict[str, PropertyValue]:
    properties: dict[str, PropertyValue] = {}
    for key, value in java.items():
        if key in REFUSED_NATIVE_KEYS:
            raise ConfigRuleError(f"Configuration {key} cannot be used. {REFUSED_NATIVE_KEYS[key]}", key)
        if key not in CLIENT_KEYS[kind] and is_native_key(key, kind):
            properties[canonical_native_key(key)] = value
    return properties


def _ignored(java: Mapping[str, str], kind: ClientKind) -> dict[str, str]:
    ignored: dict[str, str] = {}
    for key, value in java.items():
        decision = CLIENT_KEYS[kind].get(key)
        if isinstance(decision, Ignored) and value.strip():
            ignored[key] = decision.reason
        elif decision is None and not is_native_key(key, kind):
            ignored[key] = next(
                (reason for prefix, reason in IGNORED_PREFIXES.items() if key.startswith(prefix)), UNKNOWN_KEY
            )
    return ignored


def _fit_reconnect_backoff(properties: dict[str, PropertyValue]) -> None:
    """Keep the first reconnect wait below the longest, as librdkafka requires. A wait that was set takes priority."""
    given = {name: parse_integer(name, str(properties[name])) for name in _BACKOFF if name in properties}
    first, longest = ({**_BACKOFF, **given}[name] for name in _BACKOFF)
    if first > longest:
        first_name, longest_name = _BACKOFF
        if first_name in given:
            properties[longest_name] = first
        else:
            properties[first_name] = longest

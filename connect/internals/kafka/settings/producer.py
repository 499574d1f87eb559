"""Producer settings that depend on each other: partitioner, compression, idempotence, transactions."""

from __future__ import annotations

from collections.abc import Mapping

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import PropertyValue
from connect.internals.kafka.settings.conversion import boolean, parse_integer

__all__ = ["check_producer", "producer_properties"]

_LIBRDKAFKA_MAX_LEVEL = 12
_MAX_IDEMPOTENT_IN_FLIGHT = 5
_DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
_DEFAULT_LINGER_MS = 5
_DEFAULT_DELIVERY_TIMEOUT_MS = 300_000

_LEVELS = {
    "gzip": ("compression.gzip.level", 1, 9),
    "lz4": ("compression.lz4.level", 1, 17),
    "zstd": ("compression.zstd.level", -131_072, 22),
}

_PARTITIONER_CLASS = "partitioner.class"
_IGNORE_KEYS = "partitioner.ignore.keys"

# librdkafka's equivalent of Java's default partitioner: a key is hashed with murmur2, and a record without a key goes
# to a random partition that is kept for a moment ("sticky"). It runs without calling Python for each record.
_JAVA_PARTITIONER = "murmur2_random"

_IGNORING_KEYS = "random"

_JAVA_CLASSES = {
    "": _JAVA_PARTITIONER,
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": _JAVA_PARTITIONER,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": _IGNORING_KEYS,
}


def producer_properties(java: Mapping[str, str]) -> dict[str, PropertyValue]:
    """Return the properties that several Java settings of a producer determine together."""
    properties: dict[str, PropertyValue] = {"partitioner": _partitioner(java)}
    level = _compression_level(java)
    if level is not None:
        properties["compression.level"] = level
    if "transactional.id" in java:
        if not java["transactional.id"].strip():
            raise ConfigError("transactional.id", "", "String must be non-empty")
        properties["transactional.id"] = java["transactional.id"].strip()
    return properties


def _partitioner(java: Mapping[str, str]) -> str:
    """Return librdkafka's ``partitioner``, which puts records without a partition where Java's producer would."""
    name = java.get(_PARTITIONER_CLASS, "").strip()
    if name not in _JAVA_CLASSES:
        raise ConfigError(
            _PARTITIONER_CLASS,
            name,
            "A Java partitioner cannot run here: leave the key out to place records as Java's default "
            "partitioner does, set partitioner=random to spread them, or set the partition of each record",
        )
    if boolean(_IGNORE_KEYS, java.get(_IGNORE_KEYS, "false")):
        return _IGNORING_KEYS
    return _JAVA_CLASSES[name]


def _compression_level(java: Mapping[str, str]) -> int | None:
    codec = java.get("compression.type", "none").strip().lower()
    if codec not in _LEVELS:
        return None
    key, low, high = _LEVELS[codec]
    if key not in java:
        return None
    level = parse_integer(key, java[key])
    if not low <= level <= high and not (codec == "gzip" and level == -1):
        raise ConfigError(key, level, f"Value must be between {low} and {high}")
    return level if level == -1 else min(max(level, 1), _LIBRDKAFKA_MAX_LEVEL)


def check_producer(properties: dict[str, PropertyValue]) -> None:
    """Settle ``enable.idempotence`` and the transaction times in ``properties`` as Java does.

    If idempotence was requested, another setting that rules it out is an error; by default it is enabled unless another
    setting rules it out.
    """
    refusal = _idempotence_refusal(properties)
    asked = properties.get("enable.idempotence")
    enabled = refusal is None if asked is None else boolean("enable.idempotence", str(asked))
    if enabled and refusal is not None:
        raise refusal
    if "transactional.id" in properties and not enabled:
        raise ConfigRuleError(
            "Cannot set a transactional.id without also enabling idempotence: set enable.idempotence=true and acks=all",
            "enable.idempotence",
        )
    properties["enable.idempotence"] = enabled
    _fit_delivery_timeout(properties)
    if "transactional.id" in properties:
        _fit_into_transaction(properties)


def _idempotence_refusal(properties: Mapping[str, PropertyValue]) -> ConfigRuleError | None:
    if str(properties.get("request.required.acks", "all")) not in ("all", "-1"):
        return ConfigRuleError("Must set acks to all in order to use the idempotent producer.", "acks")
    if str(properties.get("message.send.max.retries", "1")) == "0":
        return ConfigRuleError("Must set retries to non-zero when using the idempotent producer.", "retries")
    name = "max.in.flight.requests.per.connection"
    if parse_integer(name, str(properties.get(name, 1))) > _MAX_IDEMPOTENT_IN_FLIGHT:
        return ConfigRuleError(
            f"Must set {name} to at most {_MAX_IDEMPOTENT_IN_FLIGHT} to use the idempotent producer.", name
        )
    return None


def _fit_into_transaction(properties: dict[str, PropertyValue]) -> None:
    """Lower waits for records and answers to the transaction timeout, as librdkafka requires."""
    limit = _number(properties, "transaction.timeout.ms", _DEFAULT_TRANSACTION_TIMEOUT_MS)
    for name in ("message.timeout.ms", "socket.timeout.ms"):
        if name in properties:
            waiting = _number(properties, name, limit)
            properties[name] = min(waiting, limit) if waiting else limit


def _fit_delivery_timeout(properties: dict[str, PropertyValue]) -> None:
    """Make the delivery timeout longer than the linger time; a timeout that was not set grows with it."""
    linger = _number(properties, "queue.buffering.max.ms", _DEFAULT_LINGER_MS)
    if "message.timeout.ms" not in properties:
        if linger >= _DEFAULT_DELIVERY_TIMEOUT_MS:
            properties["message.timeout.ms"] = linger + _DEFAULT_DELIVERY_TIMEOUT_MS
        return
    timeout = _number(properties, "message.timeout.ms", 0)
    if 0 < timeout <= linger:
        raise ConfigError(
            "delivery.timeout.ms",
            timeout,
            f"Should be larger than linger.ms ({linger}): raise it or lower that",
        )


def _number(properties: Mapping[str, PropertyValue], name: str, default: int) -> int:
    return parse_integer(name, str(properties.get(name, default)))

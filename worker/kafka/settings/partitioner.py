"""Which partition a record without one goes to: where Java's producer would put it.

A key is hashed by murmur2, a record without a key goes to a random partition that is kept for a moment
("sticky"). librdkafka does both itself as ``murmur2_random``, so that no record passes through Python for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect.errors import ConfigError
from worker.kafka.settings.conversion import boolean

__all__ = ["JAVA_PARTITIONER", "PARTITIONER_CLASS", "PARTITIONER_IGNORE_KEYS", "partitioner_property"]

PARTITIONER_CLASS = "partitioner.class"
PARTITIONER_IGNORE_KEYS = "partitioner.ignore.keys"

JAVA_PARTITIONER = "murmur2_random"
"""librdkafka's name for what Java's default partitioner does."""

_IGNORING_KEYS = "random"

_JAVA_CLASSES = {
    "": JAVA_PARTITIONER,
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": JAVA_PARTITIONER,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": _IGNORING_KEYS,
}


def partitioner_property(java: Mapping[str, str]) -> str:
    """Return librdkafka's ``partitioner`` for the Java settings of a producer."""
    name = java.get(PARTITIONER_CLASS, "").strip()
    if name not in _JAVA_CLASSES:
        raise ConfigError(
            PARTITIONER_CLASS,
            name,
            "A Java partitioner cannot run here: leave the key out to place records as Java's default "
            "partitioner does, set partitioner=random to spread them, or set the partition of each record",
        )
    if boolean(PARTITIONER_IGNORE_KEYS, java.get(PARTITIONER_IGNORE_KEYS, "false")):
        return _IGNORING_KEYS
    return _JAVA_CLASSES[name]

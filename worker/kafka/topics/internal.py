"""The internal topics of a cluster, and how they are created."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError

from connect.config.errors import ConfigRuleError
from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import WORKER, on_topic, remedy
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.clients.librdkafka import until_answered
from connect.internals.kafka.settings.client import ClientKind
from worker.kafka.clients import roles
from worker.kafka.topics.admin import TopicDescription, ensure_compacted, too_few_brokers
from worker.kafka.topics.creation import NewTopic

__all__ = ["ensure_internal_topic", "topic_settings"]

logger = logging.getLogger(__name__)

_OWN = frozenset(("topic", "partitions", "replication.factor"))
_CLEANUP_POLICY = "cleanup.policy"
_PATIENCE_SECONDS: Final = 120.0


def topic_settings(worker: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the settings of a topic in the worker's properties with ``prefix``, such as ``config.storage.``."""
    below = {key.removeprefix(prefix): value for key, value in worker.items() if key.startswith(prefix)}
    if _CLEANUP_POLICY in below:
        logger.warning("Ignoring %s%s, since compaction is always used", prefix, _CLEANUP_POLICY)
    return {key: value for key, value in below.items() if key not in _OWN and key != _CLEANUP_POLICY}


def ensure_internal_topic(
    worker: Mapping[str, str], prefix: str, *, partitions: int, replication_factor: int, purpose: str
) -> TopicDescription:
    """Create the topic ``<prefix>topic`` if it is missing, and check that it is compacted.

    ``worker`` are the worker's resolved properties; ``purpose`` says what the topic holds. Blocks for two minutes or
    more if the brokers go away; raises :class:`~connect.errors.ConnectError`.
    """
    key = f"{prefix}topic"
    topic = NewTopic(worker[key], partitions, replication_factor, topic_settings(worker, prefix))
    admin = librdkafka.admin(roles.internal_properties(worker, ClientKind.ADMIN, "shared-admin"))
    try:
        found = until_answered(lambda: ensure_compacted(admin, topic, key=key, purpose=purpose), _PATIENCE_SECONDS)
    except ConnectError as error:
        if not too_few_brokers(error):
            raise
        factor = f"{prefix}replication.factor"
        raise ConfigRuleError(
            f"Topic '{topic.name}' of the '{key}' property cannot be created with {factor}={replication_factor}: there "
            f"are fewer brokers ({error}). Set {factor} to at most the number of brokers (1 for a single one), or to "
            "-1 for the brokers' default.",
            factor,
        ) from error
    if not found.may_read:
        # While the topic is empty, nothing else would reveal this.
        advice = remedy(KafkaError.TOPIC_AUTHORIZATION_FAILED, WORKER, [on_topic(topic.name, "Read")])
        raise ConnectError(f"Topic '{topic.name}' of the '{key}' property may not be read. {advice}")
    return found

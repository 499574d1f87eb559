"""Requests about topics: describe them, create missing ones, check that they are compacted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.admin import NewTopic as _NewTopicRequest  # type: ignore[attr-defined]

from connect.config.errors import ConfigRuleError
from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.auth.rights import ADMIN, on_topic, remedy
from worker.config.internal_topics import InternalTopics
from worker.kafka.topics.creation import NewTopic, TopicCreationGroups

__all__ = [
    "Creation",
    "TopicCreator",
    "TopicDescription",
    "create",
    "describe",
    "describe_settings",
    "ensure_compacted",
    "forbidden",
    "too_few_brokers",
    "topic_ids",
]

logger = logging.getLogger(__name__)

_REQUEST_TIMEOUT_SECONDS = 60.0
_VISIBLE_AFTER_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.05
_SLICE_SECONDS = 0.2

_TIMEOUTS = frozenset(
    (
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
    )
)
_NOT_AUTHORIZED = frozenset((KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED))
_MISSING = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC))

_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_CLEANUP_POLICY = "cleanup.policy"
_COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as described by the broker."""

    name: str
    partitions: int
    replication_factor: int
    may_read: bool = field(default=True, compare=False)
    """Whether the admin client's user may read the topic. Brokers before 2.3 do not report this."""


class Creation(Enum):
    """The result of creating a topic."""

    CREATED = auto()
    EXISTED = auto()
    FORBIDDEN = auto()


class TopicCreator:
    """Creates the topics of a source task by its connector's topic creation groups, each before its first record.

    Without groups it creates none, but the broker may. One creator belongs to one task and thread; ``admin`` returns a
    client, which is not kept. Records may not go to ``internal`` topics.
    """

    def __init__(
        self, admin: Callable[[], AdminClient], groups: TopicCreationGroups | None, internal: InternalTopics
    ) -> None:
        self._admin = admin
        self._groups = groups
        self._internal = internal
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Return when ``topic`` exists; a topic that was seen once is not looked up again.

        Raises ``RetriableError`` while the broker does not answer, ``ConnectError`` if the topic is an internal one,
        or does not exist and cannot be created.
        """
        if isinstance(topic, str):
            # A plugin may give anything; what is no name is refused where the record is sent.
            self._internal.check(topic)
        if self._groups is None or topic in self._known:
            return
        admin = self._admin()
        if describe(admin, topic) is None:
            group = self._groups.group_of(topic)
            new_topic = group.new_topic(topic)
            creation = create(admin, new_topic)
            if creation is Creation.CREATED:
                logger.info("Created topic %s using creation group %s", new_topic, group.name)
            elif creation is Creation.FORBIDDEN:
                raise forbidden(new_topic)
        self._known.add(topic)


def describe(admin: AdminClient, topic: str) -> TopicDescription | None:
    """Return the broker's description of a topic; ``None`` if it does not exist."""
    try:
        described = _answer(
            admin,
            lambda: admin.describe_topics(
                TopicCollection([topic]), include_authorized_operations=True, request_timeout=_REQUEST_TIMEOUT_SECONDS
            )[topic],
        )
    except KafkaException as error:
        code = _code(error)
        if code in _MISSING:
            return None
        if code in _TIMEOUTS:
            raise RetriableError(f"Timed out while describing topics '{topic}'") from error
        if code in _NOT_AUTHORIZED:
            raise ConnectError(f"Not authorized to describe topic(s) '{topic}'. {_right(topic, 'Describe')}") from error
        raise ConnectError(f"Error while attempting to describe topics '{topic}': {_text(error)}") from error
    replication_factor = min((len(partition.replicas) for partition in described.partitions), default=0)
    may_read = not described.authorized_operations or AclOperation.READ in described.authorized_operations
    return TopicDescription(topic, len(described.partitions), replication_factor, may_read)


def topic_ids(
    admin: AdminClient, topics: Sequence[str], seconds: float = _REQUEST_TIMEOUT_SECONDS, *, needs_answer: bool = False
) -> dict[str, str]:
    """Return the ids of topics, which distinguish a topic from a later one of the same name (KIP-516).

    Topics without a known id are left out, such as all topics before Kafka 2.8. With ``needs_answer``, raises
    ``ConnectError`` if the brokers say neither an id nor that there is none for this user.
    """
    if not topics:
        return {}
    asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=seconds)
    found: dict[str, str] = {}
    for topic, answer in asked.items():
        try:
            found[topic] = str(answer.result().topic_id)
        except KafkaException as error:
            if needs_answer and _code(error) not in (*_MISSING, *_NOT_AUTHORIZED):
                raise ConnectError(
                    f"The brokers did not tell the id of topic {topic} within {seconds:g} s: {_text(error)}. Restart "
                    "the task when they answer again."
                ) from error
            logger.debug("The id of topic %s is unknown: %s", topic, _text(error))
    admin.poll(0)
    return {topic: known for topic, known in found.items() if known != _NO_TOPIC_ID}


def create(admin: AdminClient, topic: NewTopic) -> Creation:
    """Create a topic; return whether it was created, already existed, or may not be created.

    A topic that was created can be described when this returns. Raises ``RetriableError`` while the broker does not
    answer or does not show the new topic, another ``ConnectError`` if it refuses to create it.
    """
    request = _NewTopicRequest(
        topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        config=dict(topic.settings),
    )
    try:
        _answer(
            admin,
            lambda: admin.create_topics([request], request_timeout=_REQUEST_TIMEOUT_SECONDS)[topic.name],
        )
    except KafkaException as error:
        code = _code(error)
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return Creation.EXISTED
        if code in _NOT_AUTHORIZED:
            return Creation.FORBIDDEN
        if code in _TIMEOUTS:
            raise RetriableError(
                f"Timed out while checking for or creating topic(s) '{topic.name}'. This could indicate a connectivity "
                "issue, or that too few brokers are alive"
            ) from error
        raise ConnectError(f"Unable to create topic(s) '{topic.name}': {_text(error)}") from error
    _described_when_visible(admin, topic.name)
    return Creation.CREATED


def forbidden(topic: NewTopic) -> ConnectError:
    """Return the error of a task whose topic is missing and must not be created."""
    return ConnectError(
        f"Task failed to create new topic {topic}. Ensure that the task is authorized to create topics or that the "
        f"topic exists and restart the task. {_right(topic.name, 'Create')}"
    )


def too_few_brokers(error: ConnectError) -> bool:
    """Return whether topic creation failed because there are fewer brokers than replicas."""
    cause = error.__cause__
    code = cause.args[0].code() if isinstance(cause, KafkaException) and cause.args else None
    return code == KafkaError.INVALID_REPLICATION_FACTOR


def describe_settings(admin: AdminClient, topic: str) -> dict[str, str] | None:
    """Return a topic's settings, including defaults.

    ``None`` if the topic is missing or this principal may not read them.
    """
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        entries = _answer(
            admin,
            lambda: admin.describe_configs([resource], request_timeout=_REQUEST_TIMEOUT_SECONDS)[resource],
        )
    except KafkaException as error:
        code = _code(error)
        if code in _MISSING or code in _NOT_AUTHORIZED:
            return None
        if code in _TIMEOUTS:
            raise RetriableError(f"Timed out while waiting to describe topic config for topic '{topic}'") from error
        raise ConnectError(
            f"Error while attempting to describe topic config for topic '{topic}': {_text(error)}"
        ) from error
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def ensure_compacted(admin: AdminClient, topic: NewTopic, *, key: str, purpose: str) -> TopicDescription:
    """Create an internal, compacted topic if it is missing; return its description.

    An existing topic keeps its partitions and settings, but its only ``cleanup.policy`` must be ``compact``. ``key`` is
    the worker's key that names the topic and ``purpose`` what it holds ("connector and task states"); errors show both.
    """
    compacted = replace(topic, settings={**topic.settings, _CLEANUP_POLICY: _COMPACT})
    creation = create(admin, compacted)
    if creation is Creation.CREATED:
        logger.info("Created topic %s", compacted)
        return _described_when_visible(admin, topic.name)
    if creation is Creation.FORBIDDEN and describe(admin, topic.name) is None:
        raise ConnectError(
            f"Topic '{topic.name}' of the '{key}' property does not exist, and may not be created: create it with "
            f"{_CLEANUP_POLICY}={_COMPACT}, or let it be created. {_right(topic.name, 'Create')}"
        )
    description = _described_when_visible(admin, topic.name)
    _check_compacted(admin, topic.name, key, purpose)
    return description


def _check_compacted(admin: AdminClient, topic: str, key: str, purpose: str) -> None:
    settings = describe_settings(admin, topic)
    if settings is None or _CLEANUP_POLICY not in settings:
        logger.info("Cannot tell whether topic '%s' is compacted. %s", topic, _right(topic, "DescribeConfigs"))
        return
    policy = settings[_CLEANUP_POLICY]
    if {part.strip().lower() for part in policy.split(",")} == {_COMPACT}:
        return
    wanted = f"{_CLEANUP_POLICY}={_COMPACT}"
    raise ConfigRuleError(
        f"Topic '{topic}' supplied via the '{key}' property is required to have '{wanted}' to guarantee consistency "
        f"and durability of {purpose}, but found the topic currently has '{_CLEANUP_POLICY}={policy}'. Continuing "
        f"would likely result in eventually losing {purpose} and problems restarting this Connect cluster in the "
        f"future. Change the '{key}' property in the Connect worker configurations to use a topic with '{wanted}'.",
        key,
    )


def _described_when_visible(admin: AdminClient, topic: str) -> TopicDescription:
    """Wait until the brokers know a new topic: the controller knows it slightly earlier."""
    deadline = time.monotonic() + _VISIBLE_AFTER_SECONDS
    while (description := describe(admin, topic)) is None:
        if time.monotonic() > deadline:
            raise RetriableError(f"Topic '{topic}' exists but the brokers do not show it yet")
        time.sleep(_LOOK_AGAIN_SECONDS)
    return description


def _answer(admin: AdminClient, request: Callable[[], Any]) -> Any:
    answer = request()
    while True:
        try:
            return answer.result(_SLICE_SECONDS)
        except TimeoutError:
            continue
        finally:
            # The client delivers its log lines and rejected logins only when it is polled.
            admin.poll(0)


def _right(topic: str, operation: str) -> str:
    return remedy(KafkaError.TOPIC_AUTHORIZATION_FAILED, ADMIN, [on_topic(topic, operation)])


def _code(error: KafkaException) -> int | None:
    cause = error.args[0] if error.args else None
    return cause.code() if isinstance(cause, KafkaError) else None


def _text(error: KafkaException) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)

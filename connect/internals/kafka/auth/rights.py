"""Explanations of a broker's refusals: the right that a client's user lacks, or the login that was rejected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from confluent_kafka import KafkaError

__all__ = [
    "ADMIN",
    "CONSUMER",
    "PRODUCER",
    "WORKER",
    "Resource",
    "Right",
    "explained",
    "is_denial",
    "is_login_refused",
    "on_group",
    "on_topic",
    "on_topics",
    "on_transactional_id",
    "remedy",
]

ADMIN: Final = "the admin client's user (the worker's own, unless admin.* names another)"
CONSUMER: Final = "the consumer's user"
PRODUCER: Final = "the producer's user"
WORKER: Final = "the worker's user"


class Resource(Enum):
    """The kind of resource that a right applies to. ``kafka-acls.sh`` has an option of the same name, with dashes."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional id"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource, as in Kafka's ACLs. The cluster resource has no name."""

    operation: str
    resource: Resource
    name: str = ""

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource.value} {self.name}".rstrip()

    @property
    def command(self) -> str:
        """Return the command that grants it to a user."""
        option = f"--{self.resource.value.replace(' ', '-')} {self.name}".rstrip()
        return f"kafka-acls.sh --add --allow-principal User:NAME --operation {self.operation} {option}"


_RESOURCES: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Resource.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: Resource.GROUP,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Resource.TRANSACTIONAL_ID,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Resource.CLUSTER,
}
_LOGIN: Final = frozenset(
    (
        KafkaError._AUTHENTICATION,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    )
)
_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105 - what librdkafka says
_IDEMPOTENT_WRITE: Final = Right("IdempotentWrite", Resource.CLUSTER)


def on_topic(name: str, operation: str) -> Right:
    """Return a right on a topic."""
    return Right(operation, Resource.TOPIC, name)


def on_topics(names: Iterable[str], operation: str) -> tuple[Right, ...]:
    """Return a right on each of these topics."""
    return tuple(on_topic(name, operation) for name in dict.fromkeys(names))


def on_group(name: str, operation: str) -> Right:
    """Return a right on a consumer group."""
    return Right(operation, Resource.GROUP, name)


def on_transactional_id(name: str, operation: str) -> Right:
    """Return a right on a transactional id."""
    return Right(operation, Resource.TRANSACTIONAL_ID, name)


def is_denial(code: int) -> bool:
    """Return whether a broker's error says that a user lacks a right."""
    return code in _RESOURCES


def is_login_refused(error: KafkaError) -> bool:
    """Return whether a broker rejects a client's login, in which case retrying does not help.

    A token that could not be obtained does not count: the identity provider may be back soon.
    """
    return error.code() in _LOGIN and _NO_TOKEN not in error.str()


def remedy(code: int, user: str, rights: Iterable[Right]) -> str:
    """Return the rights to grant after a refusal with this error code; empty if the error is about something else.

    ``user`` describes whose rights they are, ``rights`` lists all that the request needs: those of the refused kind are
    named.
    """
    if code in _LOGIN:
        return f"Check the login of {user}: sasl.mechanism, and the user and password in sasl.jaas.config"
    resource = _RESOURCES.get(code)
    if resource is None:
        return ""
    missing = [right for right in rights if right.resource is resource]
    if not missing and resource is Resource.CLUSTER:
        # Since version 2.8, brokers grant this right to everyone who may write to some topic.
        missing = [*(right for right in rights if right.operation == "Write"), _IDEMPOTENT_WRITE]
    if not missing:
        return f"Give {user} rights on the {resource.value}"
    needed = " or ".join(map(str, missing)) if resource is Resource.CLUSTER else " and ".join(map(str, missing))
    return f"Give {user} the right {needed}: {missing[0].command}"


def explained(error: KafkaError, user: str, *rights: Right) -> str:
    """Return the text of a client's error, with the remedy if a broker refused something."""
    text = error.str().rstrip(".")
    if _NO_TOKEN in text:
        provider = "sasl.oauthbearer.token.endpoint.url, and the client's id and secret"
        return f"{text}. Check the identity provider at {provider}"
    known = remedy(error.code(), user, rights)
    return f"{text}. {known}" if known else text

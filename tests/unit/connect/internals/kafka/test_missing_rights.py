"""What is told after a broker's refusal."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import (
    CONSUMER,
    PRODUCER,
    explained,
    is_denial,
    is_login_refused,
    on_group,
    on_topic,
    on_topics,
    on_transactional_id,
    remedy,
)
from connect.internals.kafka.clients.librdkafka import fail_without_login

RIGHTS = (on_topic("t", "Write"), on_group("g", "Read"), on_transactional_id("x-0", "Write"))
COMMAND = "kafka-acls.sh --add --allow-principal User:NAME"


@pytest.mark.parametrize(
    ("code", "right", "option"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Write on topic t", "--operation Write --topic t"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Read on group g", "--operation Read --group g"),
        (
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "Write on transactional id x-0",
            "--operation Write --transactional-id x-0",
        ),
    ],
)
def test_the_right_of_the_refused_kind_is_told_with_its_command(code: int, right: str, option: str) -> None:
    assert is_denial(code)
    assert remedy(code, PRODUCER, RIGHTS) == f"Give the producer's user the right {right}: {COMMAND} {option}"


def test_who_may_write_to_a_topic_needs_no_right_on_the_cluster() -> None:
    told = remedy(KafkaError.CLUSTER_AUTHORIZATION_FAILED, PRODUCER, [on_topic("t", "Write")])
    assert told == (
        "Give the producer's user the right Write on topic t or IdempotentWrite on cluster: "
        f"{COMMAND} --operation Write --topic t"
    )


def test_each_topic_is_told_once() -> None:
    told = remedy(KafkaError.TOPIC_AUTHORIZATION_FAILED, CONSUMER, on_topics(["a", "b", "a"], "Read"))
    assert told.startswith("Give the consumer's user the right Read on topic a and Read on topic b: ")


def test_a_resource_whose_name_is_unknown_is_told_by_its_kind() -> None:
    assert remedy(KafkaError.TOPIC_AUTHORIZATION_FAILED, CONSUMER, ()) == "Give the consumer's user rights on the topic"


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TIMED_OUT])
def test_other_errors_are_told_as_they_are(code: int) -> None:
    assert not is_denial(code)
    assert remedy(code, PRODUCER, RIGHTS) == ""
    assert explained(KafkaError(code, "as told"), PRODUCER, *RIGHTS) == "as told"


def test_a_login_that_is_refused_ends_the_client_and_is_told() -> None:
    error = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: Authentication failed")
    assert is_login_refused(error)
    with pytest.raises(ConnectError, match=r"Authentication failed\. Check the login of the producer's user: sasl\."):
        fail_without_login(PRODUCER)(error)


def test_a_token_that_cannot_be_had_is_waited_for() -> None:
    error = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: HTTP 503")
    assert not is_login_refused(error)
    fail_without_login(PRODUCER)(error)
    assert explained(error, PRODUCER).endswith(
        "HTTP 503. Check the identity provider at sasl.oauthbearer.token.endpoint.url, and the client's id and secret"
    )

"""What is told of Java's errors."""

from __future__ import annotations

import pytest

from connectors.spark.failure import missing_right

JAVA = "org.apache.kafka.common.errors."
COMMAND = "kafka-acls.sh --add --allow-principal User:NAME --operation Read"


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (f"{JAVA}TopicAuthorizationException: Not authorized to access topics: [a]", f"topic a: {COMMAND} --topic a"),
        (
            f"{JAVA}TopicAuthorizationException: Not authorized to access topics: [a, b]",
            f"topic a: {COMMAND} --topic a",
        ),
        (f"{JAVA}GroupAuthorizationException: Not authorized to access group: g", f"group g: {COMMAND} --group g"),
    ],
)
def test_a_right_that_kafkas_client_of_java_lacks_is_told(cause: str, told: str) -> None:
    assert missing_right(cause) == f"Give the consumer's user the right Read on {told}"


def test_other_causes_are_about_no_right() -> None:
    assert missing_right("java.lang.OutOfMemoryError: Java heap space") is None

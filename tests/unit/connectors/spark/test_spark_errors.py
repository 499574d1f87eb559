"""What is told of errors of Spark, of Java and of executors."""

from __future__ import annotations

import pytest

from connect.errors import ConnectError, RetriableError
from connectors.spark.errors import failure_cause, load_error, missing_right

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
    assert missing_right(cause) == f"Grant the consumer's user the right Read on {told}"


def test_other_causes_are_about_no_right() -> None:
    assert missing_right("java.lang.OutOfMemoryError: Java heap space") is None


RANGES = "connect.internals.consumption.ranges"


def test_what_the_readers_of_ranges_say_is_told_as_it_is() -> None:
    trace = "An exception was thrown.\nTraceback (most recent call last):\n  File x, line 1\n{}\n\n"
    gone = load_error(
        RuntimeError(trace.format("connect.internals.consumption.ranges.RangesGoneError: Kafka no longer has it."))
    )
    assert (type(gone), str(gone)) == (ConnectError, "Kafka no longer has it.")
    slow = load_error(
        RuntimeError(trace.format("connect.internals.consumption.ranges.RangesStalledError: Nothing came."))
    )
    assert (type(slow), str(slow)) == (RetriableError, "Nothing came.")
    refused = load_error(RuntimeError(trace.format("connect.errors.ConnectError: The brokers refuse the login.")))
    assert (type(refused), str(refused)) == (
        ConnectError,
        "Spark failed to load the records: The brokers refuse the login.",
    )


def test_the_cause_of_a_failure_comes_after_its_remedy() -> None:
    crash = RuntimeError("Job aborted.\nCaused by: org.apache.spark.SparkException: Python worker exited unexpectedly")
    told = failure_cause(crash)
    assert told.startswith("The Python process of an executor was killed")
    assert told.endswith("(org.apache.spark.SparkException: Python worker exited unexpectedly)")
    assert failure_cause(RuntimeError("Job aborted.\nCaused by: no disk")) == "no disk"

"""Finds what happened, and what to do about it, in Spark's long error messages."""

from __future__ import annotations

import re
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.internals.chain.stack_trace import error_text

__all__ = [
    "TOO_LITTLE_MEMORY",
    "failed_executor",
    "failure_cause",
    "is_lasting",
    "load_error",
    "missing_right",
    "root_cause",
]

_DENIED: Final = re.compile(
    r"(Topic|Group)AuthorizationException: Not authorized to access (?:topics|group): \[?([^]\s]+)"
)
_OF_RANGES: Final = re.compile(r"connect\.internals\.consumption\.ranges\.(RangesGoneError|RangesStalledError): (.+)")
TOO_LITTLE_MEMORY: Final = (
    "The Python process of an executor ran out of memory. Give it more (spark.executor.pyspark.memory), or "
    "fewer records at a time (consumer.override.max.poll.records, spark.executor.cores)."
)
_OF_CLIENT: Final = re.compile(r"connect\.errors\.ConnectError: (.+)")


def root_cause(error: BaseException) -> str:
    """Return the innermost cause in Java's message, or its first line with text."""
    lines = [line.strip() for line in error_text(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter([*causes[-1:], *raised, *lines]), type(error).__name__)


def missing_right(cause: str) -> str | None:
    """Return the permission that the consumer's user lacks, if Kafka's Java client was denied a topic or a group."""
    denied = _DENIED.search(cause)
    if denied is None:
        return None
    resource, name = denied[1].lower(), denied[2].rstrip(",")
    command = f"kafka-acls.sh --add --allow-principal User:NAME --operation Read --{resource} {name}"
    return f"Grant the consumer's user the right Read on {resource} {name}: {command}"


def failed_executor(text: str) -> str | None:
    """Explain, with a remedy, that an executor or its Python died, if Spark's message says so."""
    if "MemoryError" in text or "malloc of size" in text:
        return TOO_LITTLE_MEMORY
    if "Python worker exited unexpectedly" in text:
        return (
            "The Python process of an executor was killed, usually because its machine or container ran out "
            "of memory. Give the container more (spark.executor.memoryOverhead, "
            "spark.executor.pyspark.memory), or Python fewer records at a time "
            "(consumer.override.max.poll.records, spark.executor.cores)."
        )
    if "ExecutorLostFailure" in text or "ExecutorDeadException" in text:
        return (
            "Executors were lost repeatedly, usually because their containers ran out of memory. See the "
            "executors' log, and give them more (spark.executor.memory, spark.executor.memoryOverhead)."
        )
    return None


def failure_cause(error: BaseException) -> str:
    """Return the innermost cause, preceded by the remedy if an executor or its Python died."""
    cause = root_cause(error)
    return cause if (failed := failed_executor(error_text(error))) is None else f"{failed} ({cause})"


def load_error(error: Exception) -> ConnectError:
    """Turn a Spark error in a load into an error for the operator."""
    if (found := _OF_RANGES.search(error_text(error))) is not None:
        return RetriableError(found[2]) if found[1] == "RangesStalledError" else ConnectError(found[2])
    if _tells_of_loss(error):
        return ConnectError(
            "Kafka no longer has all of the records to load: retention removed some, or the topic was deleted "
            "and created again. Set the connector's offsets to where it should continue "
            f"({root_cause(error)})."
        )
    found = _OF_CLIENT.search(error_text(error))
    cause = root_cause(error) if found is None else found[1]
    if (remedy := missing_right(cause)) is not None:
        cause = f"{cause}. {remedy}"
    elif found is None:
        cause = failure_cause(error)
    return ConnectError(f"Spark failed to load the records: {cause}")


def is_lasting(error: Exception) -> bool:
    """Return whether repeating the load would fail again, as far as Spark's error shows."""
    return _tells_of_loss(error) or missing_right(root_cause(error)) is not None


def _tells_of_loss(error: Exception) -> bool:
    return "failOnDataLoss" in error_text(error) or "data may have been lost" in error_text(error)

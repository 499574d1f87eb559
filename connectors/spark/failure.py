"""Extracts from Spark's long messages the line that says what happened."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["missing_right", "root_cause"]

_DENIED: Final = re.compile(
    r"(Topic|Group)AuthorizationException: Not authorized to access (?:topics|group): \[?([^]\s]+)"
)


def root_cause(error: BaseException) -> str:
    """The innermost cause in Java's message, or its first line with text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter([*causes[-1:], *raised, *lines]), type(error).__name__)


def missing_right(cause: str) -> str | None:
    """What to give the consumer's user, if this is Kafka's Java client being denied a topic or a group."""
    denied = _DENIED.search(cause)
    if denied is None:
        return None
    resource, name = denied[1].lower(), denied[2].rstrip(",")
    command = f"kafka-acls.sh --add --allow-principal User:NAME --operation Read --{resource} {name}"
    return f"Give the consumer's user the right Read on {resource} {name}: {command}"

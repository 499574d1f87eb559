"""Extracts from Spark's long messages the line that says what happened."""

from __future__ import annotations

__all__ = ["root_cause"]


def root_cause(error: BaseException) -> str:
    """The innermost cause in Java's message, or its first line with text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter([*causes[-1:], *raised, *lines]), type(error).__name__)

"""Spark's long messages, brought down to the line that says what happened."""

from __future__ import annotations

__all__ = ["root_cause"]


def root_cause(error: BaseException) -> str:
    """The innermost cause that Java's message names, or the first line that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    raised = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter([*causes[-1:], *raised, *lines]), type(error).__name__)

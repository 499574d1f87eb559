"""The steps of a reading: what its pure part asks the task to do, and the outcomes it gets back."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from connect.data import SourceRecord
from connect.errors import DataError
from connect.kits.http.messages import NoAnswerError, Request, Response

__all__ = ["Ask", "Malformed", "Outcome", "Publish", "Rest", "Step", "Steps", "TryLater"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request; the outcome is its response or error."""

    request: Request


@dataclass(frozen=True, slots=True)
class Malformed:
    """An item that cannot be used."""

    record: SourceRecord
    error: DataError


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish these records, and report those that are malformed."""

    items: Sequence[SourceRecord | Malformed]


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for some seconds; ``is_end`` marks the end of the list."""

    seconds: float
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class TryLater:
    """Report a failure; the request is repeated after some seconds."""

    reason: str
    seconds: float


Step: TypeAlias = Ask | Publish | Rest | TryLater
Outcome: TypeAlias = Response | NoAnswerError | None
Steps: TypeAlias = Generator[Step, Outcome, T]
"""A generator of steps that is sent the outcome of each, and returns a result at its end."""

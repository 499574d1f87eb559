"""Pure decisions about statuses and retries."""

from __future__ import annotations

import email.utils
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Final

__all__ = ["Backoff", "StatusRanges", "clock_advice", "pause_asked", "retry_after", "status_ranges"]

_RANGE: Final = re.compile(r"([0-9]{3})(?:\s*(?:\.\.|-)\s*([0-9]{3})?)?")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LONGEST_SECONDS: Final = 24 * 3600.0
"""How long a server can have a connector wait at once: a clock that is wrong must not stop it for years."""

_CLOCKS_DIFFER_SECONDS: Final = 240.0
"""Somewhat less than the five minutes that the strictest services allow."""

_EPOCH_FROM: Final = 1e9
"""A reset that is a larger number is a time since 1970, otherwise so many seconds from now."""

_REMAINING: Final = ("x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining")
_RESET: Final = ("x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset")


@dataclass(frozen=True, slots=True)
class StatusRanges:
    """A set of HTTP statuses."""

    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, status: int) -> bool:
        return any(low <= status <= high for low, high in self.ranges)


def status_ranges(text: str) -> StatusRanges:
    """Parse a comma-separated list such as ``404,500..599,400-``. Raises ``ValueError`` with the reason."""
    found = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ValueError(f"{item} is neither a status such as 404 nor a range such as 500..599 or 500-")
        low = int(match[1])
        high = int(match[2]) if match[2] else (low if item == match[1] else 999)
        found.append((min(low, high), max(low, high)))
    return StatusRanges(tuple(found))


@dataclass(frozen=True, slots=True)
class Backoff:
    """The waits between attempts: doubling from ``first`` to ``longest`` seconds, or always ``first``."""

    first: float
    longest: float
    constant: bool = False
    jitter: float = 0.5
    """The share of a wait that is random, so that tasks that lost the same server do not come back all at once."""

    def seconds(self, tries: int, share: float | None = None) -> float:
        """Return the wait after an attempt, counted from 1; its jitter depends on ``share``, by default random."""
        if self.constant:
            return self.first
        wait = min(self.first * 2.0 ** min(tries - 1, 60), max(self.first, self.longest))
        part = random.random() if share is None else share  # noqa: S311
        return wait * (1 - self.jitter * (1 - part))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds requested by ``Retry-After``, a number or a date; ``None`` without it."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if _SECONDS.fullmatch(text):
        return min(float(text), _LONGEST_SECONDS)
    instant = _instant(text)
    return None if instant is None else min(max(instant - now, 0.0), _LONGEST_SECONDS)


def _instant(date: str) -> float | None:
    """Return the seconds since 1970 of a date in a header."""
    try:
        moment = email.utils.parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # A date without a zone is one in UTC.
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def clock_advice(date: str, now: float) -> str:
    """Return what to do about a clock that differs from that of a service which refuses; nothing if it does not.

    ``date`` is the answer's header. Services refuse what is signed with another time than theirs, and say so in several
    ways, or not at all.
    """
    instant = _instant(date)
    if instant is None or abs(instant - now) < _CLOCKS_DIFFER_SECONDS:
        return ""
    side = "behind" if instant > now else "ahead of"
    minutes = round(abs(instant - now) / 60)
    return (
        f" The clock of this machine is {minutes} minutes {side} that of the service, which refuses requests that are "
        "signed with a wrong time: set it right (by NTP) first."
    )


def pause_asked(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until an exhausted rate limit resets, according to the usual headers."""
    remaining = next((headers[name] for name in _REMAINING if name in headers), None)
    reset = next((headers[name] for name in _RESET if name in headers), None)
    if remaining is None or reset is None or remaining.strip() != "0":
        return None
    if not _SECONDS.fullmatch(text := reset.strip()) and not re.fullmatch(r"[0-9]{10,13}", text):
        return None
    number = float(text)
    if number > _EPOCH_FROM * 100:
        number /= 1000
    seconds = number - now if number >= _EPOCH_FROM else number
    return min(max(seconds, 0.0), _LONGEST_SECONDS)

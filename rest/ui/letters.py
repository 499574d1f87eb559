"""The dead letters of a page: those that its reader looks for, and how many have which error."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rest.ui.formats import record_text

__all__ = ["ErrorGroup", "Found", "Looked", "LookedFor", "excerpt", "is_replayed", "looked_through", "short_error"]

ROWS: Final = 100
"""How many dead letters a page shows."""
_MOST_CHARACTERS: Final = 200
_EXCERPT: Final = 160
_VARYING: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""What differs between records with the same error: what is quoted, and numbers."""
_NO_CONTEXT: Final = "no error is stored: context headers were not enabled"
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class LookedFor:
    """What the reader looks for: the key of a group of errors, and words; empty strings match everything."""

    error: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LookedFor:
        """Parse the query of an address."""
        return cls(query.get("error", "")[:_DIGITS], query.get("q", "")[:_MOST_CHARACTERS])

    def query(self, **changed: str) -> dict[str, str]:
        """Return the query of the same look with some members changed, without what is empty."""
        return {key: value for key, value in {"error": self.error, "q": self.text, **changed}.items() if value}

    def matches(self, letter: Mapping[str, Any]) -> bool:
        """Return whether a dead letter is looked for: by its error, and by words in it, its key, value and origin."""
        if self.error and key_of(letter) != self.error:
            return False
        words = self.text.casefold().split()
        return not words or all(word in _searched(letter) for word in words)


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """The dead letters with the same error apart from what is quoted in it, and numbers."""

    key: str
    error: str
    count: int


@dataclass(frozen=True, slots=True)
class Looked:
    """Some dead letters in order that were read, and where reading goes on (``partition:offset``) if there are more."""

    records: Sequence[Mapping[str, Any]]
    next: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a page shows: the rows, how many were read and how many of these matched, their errors, and what follows."""

    records: Sequence[Mapping[str, Any]]
    read: int
    matched: int
    groups: Sequence[ErrorGroup]
    next: str | None


def looked_through(parts: Iterable[Looked], wanted: LookedFor) -> Found:
    """Read parts until a page is full, and return it. What follows it begins after its last row."""
    groups: Counter[str] = Counter()
    errors: dict[str, str] = {}
    matched: list[Mapping[str, Any]] = []
    read, following = 0, None
    for part in parts:
        read += len(part.records)
        for letter in part.records:
            key = key_of(letter)
            groups[key] += 1
            errors.setdefault(key, short_error(letter))
        matched += filter(wanted.matches, part.records)
        following = part.next
        if len(matched) >= ROWS:
            break
    if len(matched) > ROWS:
        last = matched[ROWS - 1]
        following = f"{last['partition']}:{last['offset']}"
    ordered = [ErrorGroup(key, errors[key], count) for key, count in groups.most_common()]
    return Found(matched[:ROWS], read, len(matched), ordered, following)


def short_error(letter: Mapping[str, Any]) -> str:
    """Return the first line of a dead letter's error."""
    error = letter.get("error") or {}
    lines = str(error.get("message") or error.get("exception") or "").strip().splitlines()
    return lines[0] if lines else ("no message" if error else _NO_CONTEXT)


def key_of(letter: Mapping[str, Any]) -> str:
    """Return the key of the group of a dead letter's error."""
    error = letter.get("error") or {}
    told = _VARYING.sub("?", short_error(letter)[:_MOST_CHARACTERS])
    text = f"{error.get('stage')}\0{error.get('exception')}\0{told}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]


def excerpt(value: Mapping[str, str] | None) -> str:
    """Return the beginning of a key or value in one line."""
    text = " ".join(record_text(value).split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} …"


def is_replayed(letter: Mapping[str, Any], replayed: Mapping[str, int]) -> bool:
    """Return whether a dead letter is one of those that a replay of all has passed."""
    return int(letter["offset"]) < replayed.get(str(letter["partition"]), 0)


def _searched(letter: Mapping[str, Any]) -> str:
    error = letter.get("error") or {}
    told = [short_error(letter), error.get("exception") or "", error.get("topic") or ""]
    return " ".join((*told, record_text(letter.get("key")), record_text(letter.get("value")))).casefold()

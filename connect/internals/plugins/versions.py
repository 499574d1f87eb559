"""Plugin versions and version ranges, ordered and written as in Maven.

Kafka Connect selects plugins by such ranges (KIP-891), so configurations written for it mean the same here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from itertools import pairwise, zip_longest
from typing import Final, TypeAlias

from connect.errors import PluginError

__all__ = ["Version", "VersionRange", "VersionSpecError"]

_PART: Final = re.compile(r"([.-]?)([0-9]+|[^0-9.-]+|)")
_BEFORE_RELEASE: Final = ("alpha", "beta", "milestone", "rc", "snapshot")
_RELEASES: Final = frozenset(("", "ga", "final", "release"))
_SYNONYMS: Final = {"cr": "rc"}
_BEFORE_A_NUMBER: Final = {"a": "alpha", "b": "beta", "m": "milestone"}
_LATEST: Final = "latest"
_INTERVAL: Final = re.compile(r"\s*([\[(])([^\])]*)([\])])\s*")

# The sort key of a part: words come before numbers after a hyphen, and these before numbers after a dot. A number is
# represented by its length and its digits, because it may have any number of them.
_Part: TypeAlias = tuple[int, int, str]
_WORD, _AFTER_HYPHEN, _AFTER_DOT = range(3)
_RELEASE: Final = len(_BEFORE_RELEASE)
_NOTHING: Final = ((_WORD, _RELEASE, ""), (_AFTER_HYPHEN, 0, ""), (_AFTER_DOT, 0, ""))


class VersionSpecError(PluginError):
    """A text is not a valid version range."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version such as ``1.2.0-rc1``. Versions with the same meaning are equal, such as ``1``, ``1.0`` and ``1.0-GA``.

    Any text is a version. Numbers compare by value, letters without regard to case. ``alpha``, ``beta``, ``milestone``,
    ``rc`` and ``snapshot`` precede the release, in this order; any other word follows it.
    """

    text: str
    _parts: tuple[_Part, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", _parts(self.text.strip()))

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __lt__(self, other: Version) -> bool:
        pairs = zip_longest(self._parts, other._parts)
        padded = ((mine or _nothing_like(its), its or _nothing_like(mine)) for mine, its in pairs)
        return next((mine < its for mine, its in padded if mine != its), False)


def _nothing_like(part: _Part) -> _Part:
    """Return what a shorter version is padded with where the other one has this part."""
    return _NOTHING[_AFTER_DOT] if part[0] == _AFTER_DOT else _NOTHING[_WORD]


def _parts(text: str) -> tuple[_Part, ...]:
    """Split a version at dots, hyphens and between digits and letters, and drop parts that do not affect its order."""
    # The match at the very end is a part only after a separator.
    found = [match for match in _PART.findall(text.lower()) if any(match)]
    kept: list[_Part] = []
    for position, ((separator, part), (next_separator, follower)) in enumerate(pairwise([*found, ("", "")])):
        if follower and not next_separator:
            part = _BEFORE_A_NUMBER.get(part, part)  # noqa: PLW2901 - the word that it is short for
        made = _part(part, after_dot=separator == "." or position == 0)
        if position and (separator != "." or made[0] == _WORD):
            _drop_nothing(kept)
        kept.append(made)
    _drop_nothing(kept)
    return tuple(kept)


def _part(text: str, *, after_dot: bool) -> _Part:
    if not text or text[0] in "0123456789":
        digits = text.lstrip("0")
        return _AFTER_DOT if after_dot else _AFTER_HYPHEN, len(digits), digits
    word = _SYNONYMS.get(text, text)
    if word in _RELEASES:
        return _NOTHING[_WORD]
    if word in _BEFORE_RELEASE:
        return _WORD, _BEFORE_RELEASE.index(word), ""
    return (_WORD, _RELEASE + 1, "") if word == "sp" else (_WORD, _RELEASE + 2, word)


def _drop_nothing(parts: list[_Part]) -> None:
    while parts and parts[-1] in _NOTHING:
        parts.pop()


@dataclass(frozen=True, slots=True)
class _Interval:
    """The versions between two bounds; a bound of ``None`` is open."""

    lower: Version | None
    includes_lower: bool
    upper: Version | None
    includes_upper: bool

    def __contains__(self, version: Version) -> bool:
        above = self.lower is None or self.lower < version or (self.includes_lower and self.lower == version)
        below = self.upper is None or version < self.upper or (self.includes_upper and self.upper == version)
        return above and below

    def __str__(self) -> str:
        left, right = "[" if self.includes_lower else "(", "]" if self.includes_upper else ")"
        return f"{left}{self.lower or ''},{self.upper or ''}{right}"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions: ``[1.0,2.0)``, ``(,1.5]``, or several intervals separated by commas.

    As in Kafka Connect, a plain version means exactly that version: ``1.0`` is ``[1.0]``.
    """

    intervals: tuple[_Interval, ...]

    @classmethod
    def parse(cls, spec: str | None) -> VersionRange | None:
        """Parse the value of a ``plugin.version`` key.

        Return ``None`` for no value or ``latest``, which mean the newest.

        Raises :class:`VersionSpecError` if it is not a valid range.
        """
        if spec is None or spec == _LATEST:
            return None
        text = spec.strip()
        if text and text[0] not in "[(" and not any(mark in text for mark in "[](),"):
            exact = Version(text)
            return cls((_Interval(exact, True, exact, True),))
        return cls(_intervals(text))

    def __contains__(self, version: Version) -> bool:
        return any(version in interval for interval in self.intervals)

    def __str__(self) -> str:
        return ",".join(map(str, self.intervals))


def _intervals(text: str) -> tuple[_Interval, ...]:
    found: list[_Interval] = []
    position = 0
    while position < len(text) or not found:
        match = _INTERVAL.match(text, position)
        if match is None:
            raise VersionSpecError(
                f"'{text}' is not a version range. Write a version such as 1.0, or a range such as [1.0,2.0)"
            )
        interval = _interval(text, *match.groups())
        if found and not _is_beyond(interval, found[-1]):
            raise VersionSpecError(f"Ranges overlap, or are not in order: {text}")
        found.append(interval)
        position = match.end()
        if position < len(text) and text[position] == ",":
            position += 1
    return tuple(found)


def _interval(text: str, left: str, inner: str, right: str) -> _Interval:
    lower, comma, upper = (part.strip() for part in inner.partition(","))
    includes_lower, includes_upper = left == "[", right == "]"
    if not comma:
        if not (lower and includes_lower and includes_upper):
            raise VersionSpecError(f"A single version must be surrounded by []: {text}")
        return _Interval(Version(lower), True, Version(lower), True)
    if "," in upper:
        raise VersionSpecError(f"A range has two bounds at most: {text}")
    first, last = Version(lower) if lower else None, Version(upper) if upper else None
    is_empty = first == last and not (includes_lower and includes_upper)
    if first is not None and last is not None and (last < first or is_empty):
        raise VersionSpecError(f"Range defies version ordering: {text}")
    return _Interval(first, includes_lower, last, includes_upper)


def _is_beyond(interval: _Interval, before: _Interval) -> bool:
    return interval.lower is not None and before.upper is not None and not interval.lower < before.upper

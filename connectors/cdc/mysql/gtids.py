"""Sets of global transaction ids (GTIDs) of MySQL and MariaDB: what of the log has been read."""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

__all__ = ["GtidSet", "MariaDbGtidSet", "MySqlGtidSet"]

Intervals: TypeAlias = tuple[tuple[int, int], ...]
"""Disjoint, ascending ranges of transaction numbers, both ends inclusive."""

_SOURCE: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_RANGE: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")
_MARIADB: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")
_TAGGED: Final = 1
"""The format of an encoded set whose sources may have tags; 0 is that of MySQL before 8.3."""


@dataclass(frozen=True, slots=True)
class MySqlGtidSet:
    """A set such as ``3e11fa47-...:1-5:7:tag:1-3``: for each source, and each of its tags, ranges of numbers."""

    sources: Mapping[str, Intervals] = field(default_factory=dict)
    """By the source's UUID, or ``uuid:tag``; none is empty."""

    @classmethod
    def parse(cls, text: str) -> MySqlGtidSet:
        """Read a set as MySQL and Debezium write it. Raises ``ValueError`` for anything else."""
        found: dict[str, list[tuple[int, int]]] = {}
        for part in filter(None, (part.strip() for part in text.replace("\n", "").split(","))):
            source, *ranges = (piece.strip().lower() for piece in part.split(":"))
            if not _SOURCE.fullmatch(source) or not ranges:
                raise ValueError(f"{part!r} is no GTID; one looks like 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
            name = source
            for piece in ranges:
                if match := _RANGE.fullmatch(piece):
                    first, last = int(match[1]), int(match[2] or match[1])
                    if not 1 <= first <= last:
                        raise ValueError(f"{piece!r} in {part!r} is no range of transactions")
                    found.setdefault(name, []).append((first, last))
                elif _TAG.fullmatch(piece):
                    name = f"{source}:{piece}"
                else:
                    raise ValueError(f"{piece!r} in {part!r} is neither a range of transactions nor a tag")
        return cls({name: _merged(ranges) for name, ranges in found.items()})

    def __str__(self) -> str:
        """Return the set as MySQL writes it: sources and tags in order, without blanks."""
        parts: list[str] = []
        last = ""
        for name in sorted(self.sources):
            source, _, tag = name.partition(":")
            ranges = _ranges(self.sources[name])
            if source == last:
                parts[-1] += f":{tag}:{ranges}"
            else:
                parts.append(f"{name}:{ranges}")
            last = source
        return ",".join(parts)

    def __bool__(self) -> bool:
        """Whether the set has a transaction."""
        return bool(self.sources)

    def __contains__(self, gtid: str) -> bool:
        """Whether a transaction, such as ``uuid:5`` or ``uuid:tag:5``, is in the set."""
        name, _, number = gtid.rpartition(":")
        return _has(self.sources.get(name, ()), int(number))

    def with_gtid(self, gtid: str) -> MySqlGtidSet:
        """Return the set with one transaction more."""
        name, _, number = gtid.rpartition(":")
        return MySqlGtidSet({**self.sources, name: _with(self.sources.get(name, ()), int(number))})

    def union(self, other: MySqlGtidSet) -> MySqlGtidSet:
        """Return the transactions that are in either set."""
        names = {**self.sources, **other.sources}
        return MySqlGtidSet(
            {name: _merged([*self.sources.get(name, ()), *other.sources.get(name, ())]) for name in names}
        )

    def minus(self, other: MySqlGtidSet) -> MySqlGtidSet:
        """Return the transactions that are in this set and not in the other."""
        left = {name: _without(ranges, other.sources.get(name, ())) for name, ranges in self.sources.items()}
        return MySqlGtidSet({name: ranges for name, ranges in left.items() if ranges})

    def contains(self, other: MySqlGtidSet) -> bool:
        """Whether all transactions of the other set are in this one."""
        return not other.minus(self)

    def of_sources(self, wanted: Iterable[str]) -> MySqlGtidSet:
        """Return the part that these sources, given by UUID, have written."""
        uuids = set(wanted)
        return MySqlGtidSet({name: ranges for name, ranges in self.sources.items() if name.split(":")[0] in uuids})

    @property
    def uuids(self) -> frozenset[str]:
        """The UUIDs of the servers that wrote the transactions."""
        return frozenset(name.split(":")[0] for name in self.sources)

    def encode(self) -> bytes:
        """Return the set as COM_BINLOG_DUMP_GTID takes it; with tags in the format of MySQL 8.3 and later."""
        tagged = any(":" in name for name in self.sources)
        count = len(self.sources)
        head = (_TAGGED << 56) | (count << 8) | _TAGGED if tagged else count
        parts = [struct.pack("<Q", head)]
        for name in sorted(self.sources):
            source, _, tag = name.partition(":")
            parts.append(UUID(source).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
            ranges = self.sources[name]
            parts.append(struct.pack("<Q", len(ranges)))
            parts += (struct.pack("<QQ", first, last + 1) for first, last in ranges)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class MariaDbGtidSet:
    """A position such as ``0-1-10,5-2-7``: for each domain the last transaction, with the server that wrote it."""

    domains: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By domain: the server's id and the sequence number."""

    @classmethod
    def parse(cls, text: str) -> MariaDbGtidSet:
        """Read a position as MariaDB and Debezium write it. Raises ``ValueError`` for anything else."""
        found: dict[int, tuple[int, int]] = {}
        for part in filter(None, (part.strip() for part in text.replace("\n", "").split(","))):
            match = _MARIADB.fullmatch(part)
            if match is None:
                raise ValueError(f"{part!r} is no GTID of MariaDB; one looks like 0-1-100")
            domain, server, sequence = map(int, match.groups())
            if domain not in found or found[domain][1] < sequence:
                found[domain] = (server, sequence)
        return cls(found)

    def __str__(self) -> str:
        """Return the position as MariaDB writes it, domains in order."""
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in sorted(self.domains.items()))

    def __bool__(self) -> bool:
        """Whether the position has a transaction."""
        return bool(self.domains)

    def __contains__(self, gtid: str) -> bool:
        """Whether a transaction, such as ``0-1-10``, lies at or before the position."""
        domain, _, sequence = map(int, gtid.split("-"))
        return domain in self.domains and sequence <= self.domains[domain][1]

    def with_gtid(self, gtid: str) -> MariaDbGtidSet:
        """Return the position after one transaction more."""
        domain, server, sequence = map(int, gtid.split("-"))
        return MariaDbGtidSet({**self.domains, domain: (server, sequence)})

    def contains(self, other: MariaDbGtidSet) -> bool:
        """Whether the other position lies at or before this one, in each of its domains."""
        return all(
            domain in self.domains and sequence <= self.domains[domain][1]
            for domain, (_, sequence) in other.domains.items()
        )


GtidSet: TypeAlias = MySqlGtidSet | MariaDbGtidSet


def _merged(ranges: Iterable[tuple[int, int]]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _has(ranges: Intervals, number: int) -> bool:
    index = bisect.bisect_right(ranges, number, key=lambda interval: interval[0])
    return index > 0 and number <= ranges[index - 1][1]


def _with(ranges: Intervals, number: int) -> Intervals:
    """Ranges with one number more; at once in the usual case that it follows the last."""
    if ranges and number == ranges[-1][1] + 1:
        return (*ranges[:-1], (ranges[-1][0], number))
    return ranges if _has(ranges, number) else _merged([*ranges, (number, number)])


def _without(ranges: Intervals, others: Intervals) -> Intervals:
    left: list[tuple[int, int]] = []
    at = 0
    for first, last in ranges:
        start = first
        while at < len(others) and others[at][1] < start:
            at += 1
        index = at
        while index < len(others) and others[index][0] <= last:
            if start < others[index][0]:
                left.append((start, others[index][0] - 1))
            start = max(start, others[index][1] + 1)
            index += 1
        if start <= last:
            left.append((start, last))
    return tuple(left)


def _ranges(ranges: Intervals) -> str:
    return ":".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)

"""Runs: stretches of a source partition whose records lie at the target in step, so that every offset translates.

Offsets of the source are called *upstream*, those of the target *downstream*. A record that is mirrored moves both on
by one, so one :class:`Run` tells of all records up to the next hole: a compacted record or the end of a transaction at
either end, or a restart of the mirror.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Final
from uuid import UUID

__all__ = ["MOST_RUNS", "UNKNOWN", "Generation", "Run", "Runs", "Translation"]

MOST_RUNS: Final = 1024
"""Most runs that are kept of a partition."""

_upstream = attrgetter("upstream")
_downstream = attrgetter("downstream")


@dataclass(frozen=True, slots=True)
class Generation:
    """The topics that runs speak of, by their ids; ``None`` where a broker has none. A new topic has another."""

    source: UUID | None = None
    target: UUID | None = None


UNKNOWN: Final = Generation()
"""The topics of brokers that give them no ids."""


@dataclass(frozen=True, slots=True)
class Run:
    """The records from ``upstream`` on, ``length`` of them, lie at the target from ``downstream`` on.

    From ``since`` up to ``upstream`` no record was mirrored: there is none, or the mirror leaves it out. If it is equal
    to ``upstream``, nothing is known of what lies before.
    """

    upstream: int
    downstream: int
    length: int
    since: int

    @property
    def upstream_end(self) -> int:
        """The offset after the last record, at the source."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        """The offset after the last record, at the target."""
        return self.downstream + self.length

    def cut(self, first: int, end: int) -> Run:
        """The part between two offsets of the source."""
        since = self.since if first == self.upstream else first
        return Run(first, self.downstream + first - self.upstream, end - first, since)


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset at the other cluster. ``again`` is how many records before it are read once more there, at most."""

    offset: int
    again: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether nothing is read twice."""
        return self.again == 0


class Runs:
    """The runs of one partition, for one thread.

    A translation never skips a record: whoever continues from it reads all that was not read before the offset that
    was translated. After a restart some records may be mirrored again; then the last copies count.
    """

    def __init__(self, generation: Generation = UNKNOWN, *, most: int = MOST_RUNS) -> None:
        self.generation = generation
        self._most = most
        self._runs: list[Run] = []
        """In the order of the target. No two have an offset of the source, or of the target, in common."""
        self._in_step = True
        """Whether that is the order of the source as well, as it is but after a restart, until it has caught up."""
        self._position: int | None = None
        self._changed_from: int | None = None
        self._awaited = 0
        """How many records may have copies that no run tells of, and are to be made again."""
        self._awaited_from = 0
        self._awaited_end = 0

    @classmethod
    def of(cls, generation: Generation, runs: Iterable[Run], *, most: int = MOST_RUNS) -> Runs:
        """The runs as they were recorded, in any order, some of them twice or in part."""
        made = cls(generation, most=most)
        end = 0
        for run in sorted(runs, key=lambda run: (run.downstream, -run.length)):
            known = max(0, end - run.downstream)
            if known < run.length:
                part = run.cut(run.upstream + known, run.upstream_end)
                made.add(part.upstream, part.downstream, part.length, since=part.since)
                end = part.downstream_end
        made._position = None
        made._changed_from = None
        return made

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order of the target."""
        return tuple(self._runs)

    @property
    def upstream_end(self) -> int | None:
        """The offset after the last record of the source that is known; ``None`` if none is."""
        return max((run.upstream_end for run in self._behind()), default=None)

    @property
    def downstream_end(self) -> int | None:
        """The offset after the last record at the target that is known; ``None`` if none is."""
        return self._runs[-1].downstream_end if self._runs else None

    def resume(self, position: int) -> None:
        """Say that the source is read from this offset on: up to the next record that is added there is none."""
        self._position = position

    @property
    def is_behind(self) -> bool:
        """Whether copies that :meth:`await_copies` told of are not made again yet: translate by older runs alone."""
        return self._awaited > 0

    def await_copies(self, count: int, end: int) -> None:
        """Say that up to ``count`` records, before the offset ``end`` of the source, may have copies after the runs.

        No run tells of these, as after a kill. What is added from now on would place groups behind their only copies,
        until all are made again. They follow each other, so that is after as many records that are new to the runs.
        """
        self._awaited = count
        self._awaited_from = max(self._position or 0, self.upstream_end or 0)
        self._awaited_end = end

    def forget_position(self) -> None:
        """Say that nothing is known of what lies before the next record that is added."""
        self._position = None

    def add(self, upstream: int, downstream: int, length: int = 1, *, since: int | None = None) -> None:
        """Note that records of the source from ``upstream`` on were written to the target from ``downstream`` on.

        ``since`` is the offset from which on there was no other record; without it, the one after the record that was
        added before, or given to :meth:`resume`.
        """
        if since is None:
            since = upstream if self._position is None else min(self._position, upstream)
        run = Run(upstream, downstream, length, since)
        self._position = run.upstream_end
        self._count_off(run)
        last = self._runs[-1] if self._runs else None
        if last is None or (run.upstream >= last.upstream_end and run.downstream >= last.downstream_end):
            if not self._in_step:
                self._cover(run)
            self._append(run)
        else:
            self._insert(run)
        if len(self._runs) > self._most:
            self._thin()

    def downstream_of(self, offset: int) -> Translation | None:
        """Where a group that has read up to ``offset`` at the source continues at the target.

        ``None`` if no run is early enough to tell.
        """
        runs = self._runs if self._in_step else sorted(self._runs, key=_upstream)
        index = bisect_right(runs, offset, key=_upstream) - 1
        following = runs[index + 1] if index + 1 < len(runs) else None
        if index < 0:
            if following is None or offset < following.since:
                return None
            found = Translation(following.downstream)
        else:
            found = _translated(runs[index], following, offset)
        if self._in_step:
            return found
        # What a restart has not mirrored again yet lies before what it has.
        ends = {run: before.downstream_end for before, run in pairwise(self._runs)}
        return _at_most(found, min((ends.get(run, 0) for run in runs[index + 1 :]), default=found.offset))

    def upstream_of(self, offset: int) -> Translation | None:
        """Where a group that has read up to ``offset`` at the target continues at the source.

        ``None`` if no run is early enough to tell. What others have written to the target after the last run has no
        offset at the source.
        """
        runs = self._runs
        index = bisect_right(runs, offset, key=_downstream) - 1
        if index < 0:
            first = min(runs, key=_upstream, default=None)
            return Translation(first.upstream) if first is not None and first.since == 0 else None
        run, following = runs[index], runs[index + 1] if index + 1 < len(runs) else None
        found = Translation(run.upstream + min(offset - run.downstream, run.length))
        if following is not None and offset > run.downstream_end and following.since > run.upstream_end:
            # What lies between the two at the target are records of the source between the two there.
            found = Translation(found.offset, min(offset - run.downstream_end, following.since - run.upstream_end))
        if self._in_step:
            return found
        ends = {run: before.upstream_end for before, run in pairwise(sorted(runs, key=_upstream))}
        return _at_most(found, min((ends.get(run, 0) for run in runs[index + 1 :]), default=found.offset))

    def take_changes(self) -> int | None:
        """The index of the first run that was changed since this was last asked; ``None`` if none was."""
        changed, self._changed_from = self._changed_from, None
        return changed

    def touch(self) -> None:
        """Have all runs count as changed, as after what was taken could not be written."""
        self._changed_from = 0

    def clear(self, generation: Generation) -> None:
        """Begin anew, for other topics of the same name."""
        self.generation = generation
        self._runs.clear()
        self._in_step = True
        self._position = None
        self._changed_from = 0
        self._awaited = 0

    def _count_off(self, run: Run) -> None:
        new = max(0, run.upstream_end - max(run.upstream, self._awaited_from))
        self._awaited = 0 if run.upstream_end >= self._awaited_end else max(0, self._awaited - new)

    def _behind(self) -> Sequence[Run]:
        return self._runs[-1:] if self._in_step else self._runs

    def _append(self, run: Run) -> None:
        last = self._runs[-1] if self._runs else None
        if last is not None and (run.upstream, run.downstream) == (last.upstream_end, last.downstream_end):
            self._runs[-1] = replace(last, length=last.length + run.length)
            self._change(len(self._runs) - 1)
        else:
            self._runs.append(run)
            self._change(len(self._runs) - 1)

    def _insert(self, run: Run) -> None:
        """Note a run that begins before the end of the last: copies made again, or out of order."""
        if any(run.downstream < other.downstream_end and other.downstream < run.downstream_end for other in self._runs):
            # Two records at one offset: the target is another topic than it was.
            self._runs.clear()
        self._cover(run)
        self._runs.insert(bisect_right(self._runs, run.downstream, key=_downstream), run)
        self._change(0)
        self._see_order()

    def _cover(self, run: Run) -> None:
        """Leave out what other runs say of the records of this one."""
        kept: list[Run] = []
        for other in self._runs:
            if run.upstream >= other.upstream_end or other.upstream >= run.upstream_end:
                kept.append(other)
                continue
            if other.upstream < run.upstream:
                kept.append(other.cut(other.upstream, run.upstream))
            if run.upstream_end < other.upstream_end:
                kept.append(other.cut(run.upstream_end, other.upstream_end))
        if kept != self._runs:
            self._runs = kept
            self._change(0)
            self._see_order()

    def _see_order(self) -> None:
        self._in_step = all(one.upstream < other.upstream for one, other in pairwise(self._runs))

    def _thin(self) -> None:
        """Forget half of the runs of the older half: far from the end it is enough to be near."""
        older = min(self._most // 2, self._runs_in_step())
        if older > 2:
            self._runs[:older] = _spaced(self._runs[:older], self._runs[-1].upstream_end)
        else:
            # What is forgotten between runs that are not in step could lie anywhere.
            self._runs = self._runs[-1:]
        self._change(0)
        self._see_order()

    def _runs_in_step(self) -> int:
        """How many runs are before all later ones, at both ends."""
        count, least = len(self._runs), self._runs[-1].upstream
        for index in range(len(self._runs) - 2, -1, -1):
            upstream = self._runs[index].upstream
            if upstream >= least:
                count = index
            least = min(least, upstream)
        return count

    def _change(self, index: int) -> None:
        self._changed_from = index if self._changed_from is None else min(self._changed_from, index)


def _spaced(runs: Sequence[Run], end: int) -> list[Run]:
    """Half of the runs, with the first and the last of them: gaps are to grow with their distance from the end."""
    kept, most = list(runs), (len(runs) + 1) // 2
    while (over := len(kept) - most) > 0 and len(kept) > 2:
        inner = range(1, len(kept) - 1)
        gaps = {at: (kept[at + 1].upstream - kept[at - 1].upstream) / (end - kept[at].upstream) for at in inner}
        forgotten: set[int] = set()
        for at in sorted(inner, key=gaps.__getitem__)[: (over + 3) // 4]:
            if not {at - 1, at + 1} & forgotten:
                forgotten.add(at)
        kept = [run for at, run in enumerate(kept) if at not in forgotten]
    return kept


def _translated(run: Run, following: Run | None, offset: int) -> Translation:
    """Where an offset lies that is in a run or after it, and before the following one."""
    into = offset - run.upstream
    if into <= run.length or following is None or run.upstream_end >= following.since:
        return Translation(run.downstream + min(into, run.length))
    if offset >= following.since:
        return Translation(following.downstream)
    return Translation(run.downstream_end, offset - run.upstream_end)


def _at_most(found: Translation, offset: int) -> Translation:
    if offset >= found.offset:
        return found
    return Translation(offset, found.again + found.offset - offset)

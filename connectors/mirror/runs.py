"""Runs: stretches of a source partition whose records lie at the target in step, so that every offset translates.

Offsets of the source are called *upstream*, those of the target *downstream*. A mirrored record increases both by one,
so one :class:`Run` covers all records up to the next hole: a compacted record or the end of a transaction at either
end, or a restart of the mirror.
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
    """The ids of the topics that runs belong to; ``None`` where a broker has none. A recreated topic has another id."""

    source: UUID | None = None
    target: UUID | None = None


UNKNOWN: Final = Generation()
"""The generation of topics whose brokers give them no ids."""


@dataclass(frozen=True, slots=True)
class Run:
    """The ``length`` records from ``upstream`` on, which lie at the target from ``downstream`` on.

    Between ``since`` and ``upstream`` no record was mirrored: there is none, or the mirror leaves it out. If the two
    are equal, nothing is known of what lies before.
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
        """Return the part between two offsets of the source."""
        since = self.since if first == self.upstream else first
        return Run(first, self.downstream + first - self.upstream, end - first, since)


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset at the other cluster. ``again`` is the most records before it that are read again there."""

    offset: int
    again: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether nothing is read twice."""
        return self.again == 0


class Runs:
    """The runs of one partition. For one thread.

    A translation never skips a record: a group that continues from it reads everything that it had not read. After a
    restart some records may be mirrored again; then the last copies count.
    """

    def __init__(self, generation: Generation = UNKNOWN, *, most: int = MOST_RUNS) -> None:
        self.generation = generation
        self._most = most
        self._runs: list[Run] = []
        """In the order of the target. No two overlap at the source or at the target."""
        self._in_step = True
        """Whether that is the order of the source as well; not so after a restart, until the mirror has caught up."""
        self._position: int | None = None
        self._changed_from: int | None = None
        self._awaited = 0
        """How many records may have copies that no run covers, and are going to be mirrored again."""
        self._awaited_from = 0
        self._awaited_end = 0

    @classmethod
    def of(cls, generation: Generation, runs: Iterable[Run], *, most: int = MOST_RUNS) -> Runs:
        """Build the runs from recorded ones, in any order, some of them doubled or partial."""
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
        """The offset after the last known record, at the source; ``None`` if there is none."""
        return max((run.upstream_end for run in self._behind()), default=None)

    @property
    def downstream_end(self) -> int | None:
        """The offset after the last known record, at the target; ``None`` if there is none."""
        return self._runs[-1].downstream_end if self._runs else None

    def resume(self, position: int) -> None:
        """Set the offset from which the source is read. Up to the next record that is added there is none."""
        self._position = position

    @property
    def is_behind(self) -> bool:
        """Whether copies announced by :meth:`await_copies` are still missing, so that only older runs may be used."""
        return self._awaited > 0

    def await_copies(self, count: int, end: int) -> None:
        """Announce that up to ``count`` records before the upstream offset ``end`` may have copies that no run covers.

        That is so after a kill. Runs added from now on would place groups behind the only copies of these records,
        until all of them have been mirrored again. They are consecutive, so that is after as many records that are new
        to the runs.
        """
        self._awaited = count
        self._awaited_from = max(self._position or 0, self.upstream_end or 0)
        self._awaited_end = end

    def forget_position(self) -> None:
        """Declare that nothing is known of what lies before the next record that is added."""
        self._position = None

    def add(self, upstream: int, downstream: int, length: int = 1, *, since: int | None = None) -> None:
        """Note that records from ``upstream`` on were written to the target from ``downstream`` on.

        ``since`` is the offset from which on there was no other record. By default it is the one after the record that
        was added before, or the one given to :meth:`resume`.
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
        """Return where a group that has read up to ``offset`` at the source continues at the target.

        ``None`` if no run is old enough to tell.
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
        # Records that the restarted mirror has not copied again yet lie before those that it has.
        ends = {run: before.downstream_end for before, run in pairwise(self._runs)}
        return _at_most(found, min((ends.get(run, 0) for run in runs[index + 1 :]), default=found.offset))

    def upstream_of(self, offset: int) -> Translation | None:
        """Return where a group that has read up to ``offset`` at the target continues at the source.

        ``None`` if no run is old enough to tell. Records that others have written to the target after the last run have
        no offset at the source.
        """
        runs = self._runs
        index = bisect_right(runs, offset, key=_downstream) - 1
        if index < 0:
            first = min(runs, key=_upstream, default=None)
            return Translation(first.upstream) if first is not None and first.since == 0 else None
        run, following = runs[index], runs[index + 1] if index + 1 < len(runs) else None
        found = Translation(run.upstream + min(offset - run.downstream, run.length))
        if following is not None and offset > run.downstream_end and following.since > run.upstream_end:
            # Between the two runs, the target has the records that the source has between them.
            found = Translation(found.offset, min(offset - run.downstream_end, following.since - run.upstream_end))
        if self._in_step:
            return found
        ends = {run: before.upstream_end for before, run in pairwise(sorted(runs, key=_upstream))}
        return _at_most(found, min((ends.get(run, 0) for run in runs[index + 1 :]), default=found.offset))

    def take_changes(self) -> int | None:
        """Return the index of the first run that changed since the last call; ``None`` if none did."""
        changed, self._changed_from = self._changed_from, None
        return changed

    def touch(self) -> None:
        """Mark all runs as changed, for example after a failed write."""
        self._changed_from = 0

    def clear(self, generation: Generation) -> None:
        """Start over, for other topics of the same name."""
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
        """Add a run that begins before the end of the last one: records copied again, or out of order."""
        if any(run.downstream < other.downstream_end and other.downstream < run.downstream_end for other in self._runs):
            # Two records at one offset: the target topic was recreated.
            self._runs.clear()
        self._cover(run)
        self._runs.insert(bisect_right(self._runs, run.downstream, key=_downstream), run)
        self._change(0)
        self._see_order()

    def _cover(self, run: Run) -> None:
        """Remove the records of this run from all other runs."""
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
        """Drop half of the runs of the older half: far from the end, near translations are good enough."""
        older = min(self._most // 2, self._runs_in_step())
        if older > 2:
            self._runs[:older] = _spaced(self._runs[:older], self._runs[-1].upstream_end)
        else:
            # Records of dropped runs could lie anywhere while runs are not in step.
            self._runs = self._runs[-1:]
        self._change(0)
        self._see_order()

    def _runs_in_step(self) -> int:
        """Return how many runs come before all later ones at both ends."""
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
    """Return half of the runs, with the first and the last, so that gaps grow with their distance from the end."""
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
    """Translate an offset that lies in a run or between it and the following one."""
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

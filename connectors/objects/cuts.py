"""Cuts: where the files of a topic partition ended for a reason that does not come again.

Records that are read again after a kill must get into the same files. Where the records alone decide when files end,
they do. Where the clock, the size in bytes, or memory decides, the end is written down *before* a file is visible: a
cut is a small object, created only if absent, that says at which offset the files of a span end.

==================================  =============================================================================
kill -9 here                        then
==================================  =============================================================================
before the cut exists               no file is visible; the records are read again, and cut anew
after it, before or between files   the records are read again, and end at the cut: files that are there already are
                                    written again, with the same name and the same records
after all files, before Kafka's     the same
commit
after the commit                    reading continues behind the cut, which is removed when others follow
==================================  =============================================================================

Two tasks may hold one partition for a while, when one was frozen and does not know that it lost it. Whoever creates
the cut first decides; the other one finds it, reads its records again, and writes the same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.kits.objects.store import ObjectStore

__all__ = ["Cut", "Cuts", "StaleError"]

_log = logging.getLogger(__name__)
_DIGITS: Final = 20
_KEPT: Final = 8


class StaleError(RetriableError):
    """Another task has written, or is writing, these records: they have to be read again."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The files of the span from ``start`` end before ``end``. By the clock, ``places`` says from which offset on
    records belong in which folder.
    """

    start: int
    end: int
    places: Sequence[tuple[int, str]] = ()
    topic_id: str | None = None


class Cuts:
    """The cuts of one topic partition, in a folder of their own."""

    def __init__(self, store: ObjectStore, folder: str, partition: TopicPartition, topic_id: str | None) -> None:
        self._store = store
        self._folder = f"{folder}/{partition.topic}/{partition.partition}"
        self._topic_id = topic_id
        self._known: dict[int, Cut] = {}

    def load(self) -> None:
        """Read the cuts that earlier runs have left; those of a former topic of the same name are removed."""
        known: dict[int, Cut] = {}
        for name in self._names():
            path = f"{self._folder}/{name}"
            try:
                cut = _parsed(self._store.read(path), path)
            except FileNotFoundError:
                continue
            if None not in (cut.topic_id, self._topic_id) and cut.topic_id != self._topic_id:
                _log.warning("Removing %s: it is of a former topic of the same name.", path)
                self._store.remove(path)
                continue
            known[cut.start] = cut
        self._known = known

    def reach(self, offset: int) -> bool:
        """Whether any cut ends behind an offset."""
        return any(cut.end > offset for cut in self._known.values())

    def covering(self, offset: int) -> Cut | None:
        """Return the cut of the span that holds an offset."""
        return next((cut for cut in self._known.values() if cut.start <= offset < cut.end), None)

    def next_start(self, offset: int) -> int | None:
        """Return where the next span after an offset begins that has a cut."""
        return min((start for start in self._known if start > offset), default=None)

    def create(self, cut: Cut) -> None:
        """Write a cut down; raises :class:`StaleError` if another task was first."""
        path = f"{self._folder}/{cut.start:0{_DIGITS}d}.json"
        try:
            self._store.create(path, _written(cut, self._topic_id))
        except FileExistsError:
            self.load()
            known = self._known.get(cut.start)
            if known is None or known.end != cut.end or list(known.places) != list(cut.places):
                raise StaleError(f"{path} was created by another task: its records are read again.") from None
            return
        # Replaced and not changed: the task's thread may be reading it.
        self._known = {**self._known, cut.start: cut}
        self._check_newest(cut, path)

    def forget(self, committed: int) -> None:
        """Remove cuts that end at or before an offset which is committed for good; some of the newest are kept."""
        old = sorted(start for start, cut in self._known.items() if cut.end <= committed)
        for start in old[:-_KEPT] if len(self._known) > _KEPT else ():
            self._store.remove(f"{self._folder}/{start:0{_DIGITS}d}.json")
            del self._known[start]

    def _check_newest(self, cut: Cut, path: str) -> None:
        """Raise :class:`StaleError` if another task is further: then the cut was one that had been removed."""
        others = {int(name.partition(".")[0]) for name in self._names()} - self._known.keys()
        if any(start > cut.start for start in others):
            self._store.remove(path)
            self.load()
            raise StaleError(f"{self._folder} has newer cuts of another task: its records are read again.")

    def _names(self) -> list[str]:
        return [name for name in self._store.names(self._folder) if name.endswith(".json")]


def _written(cut: Cut, topic_id: str | None) -> bytes:
    told = {"version": 1, "start": cut.start, "end": cut.end, "places": list(cut.places), "topic_id": topic_id}
    return json.dumps(told, separators=(",", ":")).encode()


def _parsed(data: bytes, path: str) -> Cut:
    try:
        told: Mapping[str, object] = json.loads(data)
        places = [(int(offset), str(place)) for offset, place in told["places"]]  # type: ignore[attr-defined]
        topic_id = told.get("topic_id")
        return Cut(int(str(told["start"])), int(str(told["end"])), places, None if topic_id is None else str(topic_id))
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectError(
            f"{path} says where files end, and cannot be understood ({error}). If it is damaged, remove it: records "
            "since the last commit may then be written twice."
        ) from error

"""Commits: which records of all partitions of a topic are in files, where partitions share files.

How the records of several partitions follow each other does not come again after a kill, and the partitions may have
other owners then. So nothing is written again: files are sent whole, but invisible; then a commit, a small object that
is created only if its number is free, says which files these are and up to which offsets of each partition they go;
then the files are published.

==================================  =============================================================================
kill -9 here                        then
==================================  =============================================================================
before the commit                   nothing is visible; the records are read again
after it, before or between files   whoever opens the topic next publishes the files; the records are skipped
after all files, before Kafka's     the records are skipped
commit
==================================  =============================================================================

Only the newest commit may have files that are not published: the next number is taken after that. Whoever opens a topic
takes the next number for a commit without files, so that no task that was frozen can commit behind its back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.objects.staged import Staged, publish
from connect.kits.objects.store import ObjectStore

__all__ = ["Commits"]

_log = logging.getLogger(__name__)
_DIGITS: Final = 20
_KEPT: Final = 8
_DONE: Final = ".done"
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class _Commit:
    """Up to which offsets records are in files, and which files came last."""

    positions: Mapping[int, int]
    files: Sequence[Staged] = ()
    topic_id: str | None = None

    def written(self) -> bytes:
        positions = {str(partition): offset for partition, offset in sorted(self.positions.items())}
        files = [staged.told() for staged in self.files]
        told = {"version": 1, "positions": positions, "files": files, "topic_id": self.topic_id}
        return json.dumps(told, separators=(",", ":")).encode()

    @classmethod
    def parsed(cls, data: bytes, path: str) -> Self:
        try:
            told: Any = json.loads(data)
            positions = {int(partition): int(offset) for partition, offset in told["positions"].items()}
            return cls(positions, [Staged.parsed(each) for each in told["files"]], told["topic_id"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectError(
                f"{path} says which records are in files, and cannot be understood ({error}). If it is damaged, remove "
                "it: records since the commit before it may then be written twice."
            ) from error


class Commits:
    """The commits of one topic, in a folder of their own."""

    def __init__(self, store: ObjectStore, folder: str, topic: str, topic_id: str | None) -> None:
        self._store = store
        self._folder = f"{folder}/{topic}"
        self._topic = topic
        self._newest = 0
        self._commit = _Commit({}, topic_id=topic_id)

    @property
    def positions(self) -> Mapping[int, int]:
        """The offset of each partition before which all records are in files."""
        return self._commit.positions

    def take_over(self) -> None:
        """Publish what is committed, and make sure that nobody who has opened the topic before can commit."""
        for _ in range(_TRIES):
            self._load()
            try:
                self._create(self._commit)
            except FileExistsError:
                continue
            return
        raise RetriableError(f"Other tasks write files of topic {self._topic} at the same time.")

    def set(self, offsets: Mapping[int, int | None]) -> None:
        """Set positions that a user has chosen; ``None`` removes one."""
        self._load()
        if self._newest:
            chosen = {**self.positions, **offsets}
            kept = {partition: offset for partition, offset in chosen.items() if offset is not None}
            self._create(_Commit(kept, topic_id=self._commit.topic_id))

    def commit(self, moved: Mapping[int, int], files: Sequence[Staged]) -> None:
        """Commit staged files with the records up to some offsets, and publish them.

        Whatever it raises, the files may be committed: :meth:`take_over` finds out.
        """
        crash_point("objects-before-cut")
        try:
            self._create(_Commit({**self.positions, **moved}, files, self._commit.topic_id))
        except FileExistsError:
            raise RetriableError(f"Another task writes topic {self._topic}: its records are read again.") from None
        crash_point("objects-after-cut")
        self._publish()
        crash_point("objects-after-files")

    def _create(self, commit: _Commit) -> None:
        number = self._newest + 1
        path = self._path(number)
        self._store.create(path, commit.written())
        if any(other > number for other in self._numbers()):
            # It was one of those that had been removed.
            self._store.remove(path)
            raise FileExistsError(path)
        self._newest, self._commit = number, commit
        self._forget()

    def _load(self) -> None:
        """Read the newest commit, and publish its files if that was not done."""
        topic_id = self._commit.topic_id
        numbers = self._numbers()
        self._newest = max(numbers, default=0)
        if not numbers:
            self._commit = _Commit({}, topic_id=topic_id)
            return
        found = _Commit.parsed(self._store.read(self._path(self._newest)), self._path(self._newest))
        self._commit = found
        if found.files and self._store.size(self._path(self._newest, _DONE)) is None:
            _log.info("%s: %d files that were committed are published.", self._topic, len(found.files))
            self._publish()
        if None not in (topic_id, found.topic_id) and topic_id != found.topic_id:
            _log.warning("%s is a new topic of an old name: offsets of the former one are forgotten.", self._topic)
            self._commit = _Commit({}, topic_id=topic_id)
        elif found.topic_id is None:
            self._commit = _Commit(found.positions, topic_id=topic_id)

    def _publish(self) -> None:
        path = self._path(self._newest)
        try:
            for staged in self._commit.files:
                publish(self._store, staged)
                crash_point("objects-after-file")
        except RetriableError:
            raise
        except ConnectError as error:
            done = self._path(self._newest, _DONE)
            raise ConnectError(
                f"{error} If the object was there and was taken away, create an empty {done}; otherwise remove {path}, "
                "and its records are read again."
            ) from error
        try:
            self._store.create(self._path(self._newest, _DONE), b"")
        except FileExistsError:
            return

    def _forget(self) -> None:
        """Remove what is no longer needed."""
        for number in self._numbers():
            if number <= self._newest - _KEPT:
                self._store.remove(self._path(number, _DONE))
                self._store.remove(self._path(number))

    def _numbers(self) -> list[int]:
        names = self._store.names(self._folder)
        return [int(name.removesuffix(".json")) for name in names if name.endswith(".json")]

    def _path(self, number: int, ending: str = ".json") -> str:
        return f"{self._folder}/{number:0{_DIGITS}d}{ending}"

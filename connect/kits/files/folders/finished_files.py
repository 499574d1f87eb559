"""Leaves, moves or deletes files after all their records are published."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from connect.data import Offset
from connect.errors import ConnectError, DataError
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.systems.system import FileSystem, SourceFile

__all__ = ["FinishedFile", "Finisher"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """A file that was read to its end, as it was then, with the last published place of each source partition.

    A source partition without published rows is left out, since there is nothing to commit for it. The reports of
    malformed rows are flushed with the next commit, even one without offsets; until then ``has_reports`` is set.
    """

    file: SourceFile
    places: Sequence[tuple[Offset, Bookmark]]
    has_reports: bool
    fault: DataError | None = None
    """Why the rest of it was not read, if it was not."""

    def is_committed(self, offsets: Sequence[Offset | None]) -> bool:
        """Whether the committed offsets, one for each place, are those of the last rows."""
        return all(
            offset is not None
            and offset.get("position") == place.position
            and offset.get("fingerprint") == place.fingerprint
            for (_, place), offset in zip(self.places, offsets, strict=True)
        )


class Finisher:
    """Moves files to where ``target`` says, or deletes those for which it says nothing.

    After a kill, the next start finishes those left behind. A marker beside a file goes with it, after it: one that a
    kill leaves alone stands for the next file of that name, which must still be unchanged for long enough.
    """

    def __init__(
        self, system: FileSystem, target: Callable[[SourceFile], str | None], marker: str | None = None
    ) -> None:
        self._system = system
        self._target = target
        self._marker = marker

    def finish(self, file: SourceFile) -> bool:
        """Move or delete a file, unless it changed since it was read; return whether it is gone from the folder."""
        try:
            if self._system.status(file.place) != file.status:
                return False
            target = self._target(file)
            if target is None:
                self._system.remove(file.place)
                _log.info("Deleted %s after publishing all its records.", file.path)
            else:
                taken = self._moved(file.place, target)
                _log.info("Moved %s to %s.", file.path, self._system.shown(taken))
            if self._marker is not None:
                with suppress(FileNotFoundError):
                    self._system.remove(file.place + self._marker)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise ConnectError(
                f"Cannot move or delete the finished file {file.path}: {error}. Give the worker's user write access; "
                "the folder for finished files must be on the same file system."
            ) from error
        return True

    def _moved(self, place: str, target: str) -> str:
        """Move a file, with a number appended if the name is taken: no file is overwritten. Return the name."""
        candidate, number = target, 0
        while True:
            try:
                self._system.move(place, candidate)
            except FileExistsError:
                number += 1
                candidate = f"{target}.{number}"
            else:
                return candidate

"""Leaves, moves or deletes files after all their records are published."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connect.data import Offset
from connect.errors import ConnectError
from connectors.directory.bookmark import Bookmark
from connectors.directory.config import DirectorySourceConfig, FinishedAction
from connectors.directory.listing import SourceFile, modified_ns

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

    def is_committed(self, offsets: Sequence[Offset | None]) -> bool:
        """Return whether the committed offsets, one for each place, are those of the last rows."""
        return all(
            offset is not None
            and offset.get("position") == place.position
            and offset.get("fingerprint") == place.fingerprint
            for (_, place), offset in zip(self.places, offsets, strict=True)
        )


class Finisher:
    """Moves or deletes finished files. After a kill, the next start finishes those left behind."""

    def __init__(self, config: DirectorySourceConfig) -> None:
        self._action = config.finished_action
        self._folder = Path(config.finished_folder) if config.finished_folder else None

    @property
    def leaves(self) -> bool:
        """Whether finished files stay where they are."""
        return self._action is FinishedAction.LEAVE

    def finish(self, file: SourceFile) -> bool:
        """Move or delete a file, unless it changed since it was read; return whether it is gone from the folder."""
        try:
            status = os.stat(file.path)  # noqa: PTH116 - beside the listing's own
            seen = (file.device, file.inode, file.size, file.modified_ns)
            if (status.st_dev, status.st_ino, status.st_size, modified_ns(status)) != seen:
                return False
            if self._action is FinishedAction.DELETE:
                Path(file.path).unlink()
                _log.info("Deleted %s after publishing all its records.", file.path)
            elif self._folder is not None:
                target = _free(self._folder / file.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                Path(file.path).rename(target)
                _log.info("Moved %s to %s after publishing all its records.", file.path, target)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise ConnectError(
                f"Cannot {self._action} the finished file {file.path}: {error}. Give the worker's user write access; "
                "finished.folder must be on the same file system."
            ) from error
        return True


def _free(path: Path) -> Path:
    """Return the path, with a number appended if it is taken: no file is overwritten."""
    candidate, number = path, 0
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}.{number}")
    return candidate

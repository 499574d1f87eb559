"""Decides what to send of a table next, from its history and its position.

A table is first sent as it is, and then version by version. Versions that only add rows are sent by their files,
several versions together unless their rows have keys, whose order matters; a load that would be too large ends between
two files. A version that changes or deletes rows is sent by itself.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.errors import ConfigError, ConnectError

__all__ = ["Commit", "FilesStep", "Kind", "RowChanges", "Skip", "Step", "TablePosition", "check_history", "next_step"]

_KEYS: Final = ("version", "upto", "files")


class Kind(enum.Enum):
    """What a commit does to the rows of a table."""

    NOTHING = "nothing"
    """Changes files, properties or columns, but no rows."""
    APPEND = "append"
    """Adds rows."""
    CHANGE = "change"
    """Replaces or deletes rows, and may add some."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a table: the version it created, and its time in milliseconds since 1970."""

    version: int
    kind: Kind
    time: int


@dataclass(frozen=True, slots=True)
class TablePosition:
    """The position in a table: everything up to ``version``, and the first ``files`` files added after it up to
    ``upto``.

    Files are counted in the order of their names. Without a version, they are the files of the whole table.
    """

    version: int | None = None
    upto: int | None = None
    files: int = 0

    def offset(self) -> dict[str, Any]:
        """Return the position as a source offset."""
        return {"version": self.version, "upto": self.upto, "files": self.files}

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> TablePosition:
        """Return the position in a source offset; the start if there is none, or the table was empty then."""
        if offset is None:
            return cls()
        version, upto, files = (offset.get(key) for key in _KEYS)
        for key, value in (("version", version), ("upto", upto)):
            if not (value is None or _is_number(value)):
                raise ConfigError(key, value, "It must be the number of a version of the table, or null.")
        is_empty = offset == cls().offset()
        if not _is_number(files or 0) or (version is None and upto is None and not is_empty):
            raise ConfigError(
                "version", version, "The offset of a table needs its version: remove the offset to begin again."
            )
        return cls(version, upto, files or 0)


@dataclass(frozen=True, slots=True)
class FilesStep:
    """Send the rows of files added after one version up to another, skipping the first ``done`` files."""

    after: int | None
    upto: int
    done: int = 0


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Send the changes of a commit."""

    after: int
    commit: Commit


@dataclass(frozen=True, slots=True)
class Skip:
    """Move past a version: there is nothing to send up to it."""

    upto: int


Step: TypeAlias = FilesStep | RowChanges | Skip


def next_step(reached: TablePosition, newest: int | None, commits: Sequence[Commit], most: int) -> Step | None:
    """Return the next step, ``None`` if there is nothing to do.

    ``commits`` are those after the version reached, in order, up to the ``newest``; at most this many are sent
    together.
    """
    if reached.upto is not None:
        return FilesStep(reached.version, reached.upto, reached.files)
    if reached.version is None:
        return None if newest is None else FilesStep(None, newest)
    added: list[Commit] = []
    last = None
    for commit in commits:
        if commit.kind is Kind.CHANGE and not added:
            return RowChanges(reached.version if last is None else last, commit)
        if commit.kind is Kind.CHANGE or len(added) == most:
            break
        last = commit.version
        if commit.kind is Kind.APPEND:
            added.append(commit)
    if last is None:
        return None
    return FilesStep(reached.version, last) if added else Skip(last)


def check_history(table: str, reached: TablePosition, first: int | None) -> None:
    """Raise :class:`~connect.errors.ConnectError` unless the history goes back to the position reached.

    ``first`` is the version from which the oldest known commit after the position was made.
    """
    if reached.version is not None and first != reached.version:
        raise ConnectError(
            f"The history of table {table} no longer shows what came after version {reached.version}, up to "
            "which it was sent: that version was rolled back or has expired. Remove the table's offset to "
            "send it again from its present rows."
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

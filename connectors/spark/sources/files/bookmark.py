"""Remembers which files of a folder have been sent, in a text of bounded length, whatever the number of files.

A file is identified by its path, size and modification time: a changed file is a different file, and is sent again as a
whole. Files are sent in the order of their modification times, with ties broken by a digest of all three. So every file
up to a *mark* in this order is done, and for the files after the mark the bookmark keeps their digests.

The mark follows the newest file sent, at a distance: a file that turns up with an earlier time (because it was copied
with its times, or because its writer's clock is behind) is found as long as it sorts after the mark. One that turns up
before the mark cannot be told from the files already sent. Its presence is still noticed, because the bookmark counts
the files before its mark (invariant I4).
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from connect.errors import ConfigError

__all__ = ["Bookmark", "Due", "FoundFile", "Limits", "Place", "files_due"]

Place: TypeAlias = tuple[int, str]
"""A file's position in the order: its modification time in milliseconds, and its digest."""

_BEGINNING: Final[Place] = (-1, "")
_MOST_FILES: Final = 10_000
_DIGEST_BYTES: Final = 12
_KEYS: Final = {"modified": int, "digest": str, "passed": int, "sent": str}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it was when the folder was listed. ``name`` is its path below the folder."""

    path: str
    name: str
    size: int
    modified: int
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        text = f"{self.name}\0{self.size}\0{self.modified}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()
        object.__setattr__(self, "digest", base64.urlsafe_b64encode(digest).decode())

    @property
    def place(self) -> Place:
        """The file's position in the order in which files are sent."""
        return self.modified, self.digest

    @property
    def piece(self) -> str:
        """The file's name as a piece of a load."""
        return _piece(self.digest, self.modified)


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far a folder has been sent: all files up to ``mark``, and those after it that are in ``sent``."""

    mark: Place = _BEGINNING
    passed: int = 0
    """The number of files up to the mark."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """The modification times, by digest, of the files after the mark that are done."""

    def has(self, file: FoundFile) -> bool:
        """Return whether a file has been sent."""
        return file.place <= self.mark or file.digest in self.sent

    def with_pieces(self, pieces: Iterable[str]) -> Bookmark:
        """Return the bookmark once the files with these names are done too; its mark does not move."""
        return replace(self, sent={**self.sent, **_times_of(pieces)})

    def after(self, files: Iterable[FoundFile], rest: Place | None, lateness: int, most: int = _MOST_FILES) -> Bookmark:
        """Return the bookmark once these files are done too; ``rest`` is the position of the first file that is not.

        The mark stays this many milliseconds behind the newest of them, unless that would leave more than ``most``
        files after it; and it always stays behind whatever is not done yet.
        """
        sent = {**self.sent, **{file.digest: file.modified for file in files}}
        places = sorted((modified, digest) for digest, modified in sent.items())
        mark = max(self.mark, (max(sent.values(), default=-1) - lateness, ""))
        if len(places) > most:
            mark = max(mark, places[-most - 1])
        if rest is not None and mark >= rest:
            mark = max(self.mark, (rest[0], ""), *[place for place in places if place < rest][-1:])
        left = {digest: modified for modified, digest in places if (modified, digest) > mark}
        return Bookmark(mark, self.passed + len(sent) - len(left), left)

    def offset(self) -> dict[str, Any]:
        """Return the bookmark as a source offset, whose values are plain strings and numbers."""
        sent = " ".join(itertools.starmap(_piece, self.sent.items()))
        return {"modified": self.mark[0], "digest": self.mark[1], "passed": self.passed, "sent": sent}

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Bookmark:
        """Return the bookmark in a source offset, or the initial one if there is none."""
        if offset is None:
            return cls()
        for key, kind in _KEYS.items():
            if not isinstance(offset.get(key), kind) or isinstance(offset.get(key), bool):
                reason = "The offset of a folder has modified, digest, passed and sent: remove it to begin again."
                raise ConfigError(key, offset.get(key), reason)
        sent = _times_of(offset["sent"].split())
        return cls((offset["modified"], offset["digest"]), offset["passed"], sent)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read at once, and how old (by modification time, in milliseconds) a file has to be."""

    files: int
    bytes: int
    age: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """The result of listing a folder: the files to send now, the first of the rest, and how many are left."""

    files: Sequence[FoundFile] = ()
    next: Place | None = None
    """The position of the first file that is neither sent nor among ``files``."""
    passed: int = 0
    """The number of files up to the bookmark's mark."""
    late: int = 0
    """How many of them have turned up since they were last counted."""
    left: int = 0
    """How many files remain to be sent after these, not counting those that are too young."""
    ripe_in: int | None = None
    """Milliseconds until the oldest of the files that are too young is old enough."""


def files_due(files: Iterable[FoundFile], bookmark: Bookmark, limits: Limits, now: int) -> Due:
    """Return the files to send next, in order. However many there are, only a few are held in memory (invariant I9)."""
    seen = _Seen(bookmark, limits, now)
    first = heapq.nsmallest(limits.files + 1, seen.ripe(files), key=lambda file: file.place)
    chosen = _within(first[: limits.files], limits.bytes)
    rest = [file.place for file in first[len(chosen) :][:1]]
    places = [*rest, *([] if seen.youngest is None else [seen.youngest])]
    return Due(
        chosen,
        min(places, default=None),
        seen.passed,
        max(0, seen.passed - bookmark.passed),
        seen.count - len(chosen),
        None if seen.youngest is None else max(1, seen.youngest[0] + limits.age - now),
    )


class _Seen:
    """Counts files as they pass through."""

    def __init__(self, bookmark: Bookmark, limits: Limits, now: int) -> None:
        self._bookmark = bookmark
        self._newest = now - limits.age
        self.passed = 0
        self.count = 0
        self.youngest: Place | None = None

    def ripe(self, files: Iterable[FoundFile]) -> Iterable[FoundFile]:
        """Yield the files that are old enough and not yet sent."""
        for file in files:
            if file.place <= self._bookmark.mark:
                self.passed += 1
            elif self._bookmark.has(file):
                continue
            elif file.modified > self._newest:
                self.youngest = min(self.youngest or file.place, file.place)
            else:
                self.count += 1
                yield file


def _within(files: Sequence[FoundFile], most: int) -> Sequence[FoundFile]:
    """Return the longest prefix of the files that fits into this many bytes, but at least one file."""
    size = 0
    for place, file in enumerate(files):
        size += file.size
        if size > most and place:
            return files[:place]
    return files


def _piece(digest: str, modified: int) -> str:
    return f"{digest}:{modified}"


def _times_of(pieces: Iterable[str]) -> dict[str, int]:
    """Return the modification times of files, by digest."""
    try:
        return {digest: int(modified) for digest, modified in (piece.split(":") for piece in pieces)}
    except ValueError:
        reason = "It has the digests of files with their times of modification: DIGEST:MILLISECONDS and so on."
        raise ConfigError("sent", "...", reason) from None

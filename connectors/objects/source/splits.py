"""Splits of a bucket: its unread objects, divided by their sizes, and the task that reads some of them to their end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from connect.data import Offset
from connect.kits.files.folders.task_files import divided
from connect.kits.files.readers.visit import FileState
from connect.kits.files.systems.objects import ObjectSystem
from connect.kits.files.systems.system import FileStatus, SourceFile
from connect.source import OffsetStorageReader
from connectors.objects.source.config import Distribution, ObjectSourceConfig
from connectors.objects.source.unread_objects import FoundObject, UnreadObjects

__all__ = ["ObjectSplits", "SplitObjects"]

_AT_ONCE: Final = 100
"""The objects that are looked up before the first of them is read."""


class ObjectSplits:
    """Finds unread objects by the stored offsets. Used by the connector's thread alone."""

    def __init__(self, config: ObjectSourceConfig, system: ObjectSystem, offsets: OffsetStorageReader) -> None:
        self._config = config
        self._objects = UnreadObjects(config, system, config.reading_of("values"), offsets, _pass_nothing)
        self._read: dict[str, FileStatus] = {}

    def next(self, most: int) -> list[list[str]]:
        """Return the keys of unread objects, in at most so many parts.

        Objects that one task would read in order are in one part: those of a topic partition that a sink wrote. An
        object to be moved or deleted is among them until it is gone.
        """
        keys: dict[str, list[str]] = defaultdict(list)
        sizes: dict[str, int] = defaultdict(int)
        for page in self._objects.pages(self._read):
            for state in page:
                group = _group(self._config, self._objects.found(state))
                keys[group].append(state.file.name)
                sizes[group] += state.file.size
        return [sorted(key for group in part for key in keys[group]) for part in divided(list(sizes.items()), most)]


def _pass_nothing(partition: Offset, offset: Offset) -> None:
    """Pass no offset: a connector reads no object."""


def _group(config: ObjectSourceConfig, found: FoundObject) -> str:
    if config.restores:
        return f"{found.name.topic}-{found.name.partition}"
    if config.distribution_type is Distribution.PARTITION:
        return str(found.name.partition)
    return found.file.name


class SplitObjects:
    """The objects of a split, as they are when they are looked at; a ``FilesToRead`` that comes to an end."""

    def __init__(self, objects: UnreadObjects, keys: Sequence[str]) -> None:
        self._objects = objects
        self._keys = list(reversed(keys))

    @property
    def has_more(self) -> bool:
        """Whether there are objects that were not looked at."""
        return bool(self._keys)

    def to_read(self) -> list[FileState]:
        """Return the unread ones of the next objects, and those whose reading was broken off."""
        keys = self._objects.unread_names()
        keys += [self._keys.pop() for _ in range(min(_AT_ONCE, len(self._keys)))]
        return self._objects.unread([found for key in keys if (found := self._told(key)) is not None])

    def _told(self, key: str) -> FoundObject | None:
        try:
            return self._objects.told(key)
        except FileNotFoundError:
            return None  # its keys or headers are gone; the next splits have it once they are back

    def complete(self, state: FileState) -> None:
        """Have the end of an object stored."""
        self._objects.complete(state)

    def forget(self, file: SourceFile) -> None:
        """Forget an object that was moved or deleted."""
        self._objects.forget(file)

    def is_drained(self) -> bool:
        """Whether all objects were read to their end, or are gone."""
        return not self._keys and not self._objects.unread_names()

    def remaining(self) -> Mapping[str, int]:
        """Return the bytes and objects that are known and unread."""
        return self._objects.remaining()

    def total(self) -> Mapping[str, int]:
        """Return nothing: how many there are in all is not known."""
        return {}

"""Finds the objects with something to read, a page of the list at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, Final

from connect.data import Offset
from connect.errors import ConnectError
from connect.internals.java.hash_code import hash_code
from connect.kits.files.readers.bookmark import Bookmark
from connect.kits.files.readers.content import is_archive
from connect.kits.files.readers.format_detection import file_format
from connect.kits.files.readers.options import ReadingOptions
from connect.kits.files.readers.visit import FileState
from connect.kits.files.systems.objects import ObjectSystem
from connect.kits.files.systems.system import FileStatus, FoundFile, SourceFile
from connect.source import OffsetStorageReader
from connectors.objects.source.config import Distribution, ObjectSourceConfig
from connectors.objects.source.names import ObjectName

__all__ = ["FoundObject", "UnreadObjects", "is_read", "object_offset", "object_partition"]

_PAGE: Final = 1_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object with values, what its name tells, and the objects with its keys and headers.

    Of records without values there are only keys, and ``file`` is the object that has them.
    """

    file: SourceFile
    name: ObjectName
    keys: SourceFile | None = None
    headers: SourceFile | None = None


class UnreadObjects:
    """The objects of one task that are not read to their end; a ``FilesToRead`` of the folder reader.

    Each scan lists all objects, so that keys which sort before others and come later are found. What was read is told
    by the stored offsets; only what they do not tell yet is in memory.
    """

    def __init__(
        self,
        config: ObjectSourceConfig,
        system: ObjectSystem,
        reading: ReadingOptions,
        offsets: OffsetStorageReader,
        pass_offset: Callable[[Offset, Offset], None],
    ) -> None:
        self._config = config
        self._system = system
        self._reading = reading
        self._offsets = offsets
        self._pass_offset = pass_offset
        self._bucket = config.address.host
        self._pages: Iterator[list[FoundObject]] | None = None
        self._states: dict[str, FileState] = {}
        self._found: dict[str, FoundObject] = {}
        self._unseen: set[str] = set()
        """The unread objects that the present scan has not come to."""
        self._unknown: set[str] = set()
        self._has_looked = False

    @property
    def has_more(self) -> bool:
        """Whether the present scan goes on."""
        return self._pages is not None

    def found(self, state: FileState) -> FoundObject:
        """Return what is known of an object that is being read."""
        return self._found[state.file.name]

    def has_keys_alone(self, file: SourceFile) -> bool:
        """Whether an object has the keys of records without values."""
        found = self._found.get(file.name)
        return found is not None and found.name.is_tombstones

    def to_read(self) -> list[FileState]:
        """Return the unread objects of the next page."""
        if self._pages is None:
            self._pages, self._unseen = self._scan(), set(self.unread_names())
        try:
            page = next(self._pages, None)
        except Exception:
            self._pages = None  # the next call begins the list again
            raise
        if page is None:
            self._pages, self._has_looked = None, True
            self._forget_removed()
            return []
        self._unseen.difference_update(found.file.name for found in page)
        return self.unread(page)

    def _forget_removed(self) -> None:
        """Forget what is unread and was not in the list, as somebody has removed it."""
        for name in self._unseen.intersection(self.unread_names()):
            del self._states[name], self._found[name]

    def told(self, key: str) -> FoundObject | None:
        """Return an object that a key, or that of its keys or headers, stands for, as it is now.

        ``None`` if there is nothing to read; raises :class:`FileNotFoundError` if parts of it are not there yet.
        """
        name = self._config.names.parse(key)
        after = self._config.native_start_key or ""
        if name is None or not key.startswith(self._config.key_prefix) or (after and key <= after):
            return None
        listed = self._beside(name, key)
        parts = {part.part: (part, self._source_file(file)) for part, file in listed if file.status.size}
        found = self._together(parts) if parts else None
        if found is None:
            # What was being read of it is read from its beginning if it comes back.
            self._states.pop(key, None)
            self._found.pop(key, None)
        if parts and found is None:
            raise FileNotFoundError(name.stem)
        if found is None:
            return None
        return found if self._can_be_read(found.file) else None

    def is_open(self, file: SourceFile) -> bool:
        """Whether something of an object is unread, or not stored yet."""
        return file.name in self._states

    def pages(self, read: dict[str, FileStatus]) -> Iterator[list[FileState]]:
        """Yield the unread objects of one list, page by page; ``read`` are those known as read, and learns of more."""
        for page in self._scan():
            others = [found for found in page if read.get(found.file.name) != found.file.status]
            states = self.unread(others)
            unread = {state.file.name for state in states}
            read |= {found.file.name: found.file.status for found in others if found.file.name not in unread}
            yield states

    def unread_names(self) -> list[str]:
        """Return the objects that are known and neither read to their end nor as far as they can be read."""
        return [name for name, state in self._states.items() if not (state.is_complete or state.is_refused)]

    def ended(self) -> list[FileState]:
        """Return the objects that were read to their end, or as far as they can be read."""
        return [state for state in self._states.values() if state.is_complete or state.is_refused]

    def complete(self, state: FileState) -> None:
        """Have the end of an object stored, if the offset of its last record does not tell it."""
        partition = object_partition(self._bucket, state.file)
        place = state.places.get(None)
        if place is None:
            kept = self._offsets.offset(partition)
            if kept is not None and is_read(kept, state.file):
                return
            place = Bookmark()
        if place.finished is None:
            done = replace(place, finished=state.file.size)
            self._pass_offset(partition, object_offset(done.to_offset(), state.file))

    def forget(self, file: SourceFile) -> None:
        """Forget an object that was moved or deleted."""
        self._states.pop(file.name, None)
        self._found.pop(file.name, None)

    def is_drained(self) -> bool:
        """Whether a whole scan has found nothing that is unread."""
        is_read = all(state.is_complete or state.is_refused for state in self._states.values())
        return self._has_looked and self._pages is None and is_read

    def remaining(self) -> Mapping[str, int]:
        """Return the bytes and objects that are unread, as far as the present scan has come."""
        unread = [state.file.size for state in self._states.values() if not (state.is_complete or state.is_refused)]
        return {"bytes": sum(unread), "objects": len(unread)}

    def total(self) -> Mapping[str, int]:
        """Return the bytes and objects that were unread when they were listed; nothing while a scan goes on."""
        if self.has_more or not self._has_looked:
            return {}
        sizes = [state.file.size for state in self._states.values() if not state.is_refused]
        return {"bytes": sum(sizes), "objects": len(sizes)}

    def _scan(self) -> Iterator[list[FoundObject]]:
        found = self._system.beginning(self._config.key_prefix, self._config.native_start_key or "")
        objects = self._objects(found)
        while page := list(islice(objects, _PAGE)):
            yield page

    def _objects(self, listed: Iterator[FoundFile]) -> Iterator[FoundObject]:
        """Yield the objects of this task; the keys and headers of one are listed beside it."""
        named = ((name, file) for file in listed if (name := self._config.names.parse(file.place)) is not None)
        mine = ((name, file) for name, file in named if file.status.size and self._is_mine(name, file.place))
        for _, group in groupby(mine, key=lambda pair: pair[0].stem):
            parts = {name.part: (name, self._source_file(file)) for name, file in group}
            if (found := self._together(parts)) is not None and self._can_be_read(found.file):
                yield found

    def _beside(self, name: ObjectName, key: str) -> list[tuple[ObjectName, FoundFile]]:
        """Return the objects of a record file that are there: of values, keys and headers."""
        if not self._config.restores:
            try:
                return [(name, FoundFile(key, key, self._system.status(key)))]
            except FileNotFoundError:
                return []
        named = ((self._config.names.parse(file.place), file) for file in self._system.beginning(name.stem))
        return [(part, file) for part, file in named if part is not None and part.stem == name.stem]

    def _together(self, parts: Mapping[str, tuple[ObjectName, SourceFile]]) -> FoundObject | None:
        keys, headers = (parts[part][1] if part in parts else None for part in ("keys", "headers"))
        main = parts.get("values")
        if main is None:
            main = parts.get("keys")
            if main is None or not main[0].is_tombstones:
                return None  # its values are not written yet
        lacks_keys = self._config.store_kafka_keys and keys is None
        if lacks_keys or (self._config.store_kafka_headers and headers is None):
            return None  # nor are these
        return FoundObject(main[1], main[0], keys, headers)

    def _source_file(self, file: FoundFile) -> SourceFile:
        return SourceFile(file.place, self._system.shown(file.place), file.place, file.status, 0, grows=False)

    def _is_mine(self, name: ObjectName, key: str) -> bool:
        count = self._config.task_count
        if self._config.restores:
            return hash_code(f"{name.topic}-{name.partition}", None) % count == self._config.task_index
        if self._config.distribution_type is Distribution.PARTITION:
            return (name.partition or 0) % count == self._config.task_index
        return hash_code(key, None) % count == self._config.task_index

    def _can_be_read(self, file: SourceFile) -> bool:
        """Whether the format of an object is known; if not, warn once that it is not read (I4)."""
        if self._config.file_compression_type.lower() == "gzip" and not file.name.lower().endswith(".gz"):
            raise ConnectError(
                f"{file.path} does not end with .gz, and file.compression.type=gzip. Rename it, or exclude it with "
                "file.name.template."
            )
        if not is_archive(file.path) and file_format(self._reading, file.name) is not None:
            return True
        if file.name not in self._unknown and len(self._unknown) < _PAGE:
            self._unknown.add(file.name)
            _log.warning(
                "Skipping %s: archives are not read, or its format cannot be told from its name. Set 'format', or "
                "exclude it with 'file.name.template'.",
                file.path,
            )
        return False

    def unread(self, page: Sequence[FoundObject]) -> list[FileState]:
        """Return those of some objects that have something to read, by the stored offsets."""
        kept = self._offsets.offsets([object_partition(self._bucket, found.file) for found in page])
        states = (self._state(found, offset) for found, offset in zip(page, kept, strict=True))
        return [state for state in states if state is not None]

    def _state(self, found: FoundObject, offset: Offset | None) -> FileState | None:
        """Return the state of an object that has something to read."""
        name, file = found.file.name, found.file
        if offset is not None and is_read(offset, file):
            if self._config.finished_action != "leave" and name not in self._states:
                # Its move or removal is still to be done.
                state = self._states[name] = FileState(file)
                self._found[name] = found
                return state
            if self._config.finished_action == "leave":
                self.forget(file)
            return None
        known = self._states.get(name)
        if known is None:
            state = self._states[name] = FileState(file, is_new=_is_of_another(offset, file))
        elif known.file.status != file.status:
            state = self._states[name] = FileState(file, is_new=True)
        else:
            state = known
        self._found[name] = found
        return None if state.is_complete or state.is_refused else state


def is_read(offset: Offset, file: SourceFile) -> bool:
    """Whether a stored offset is that of the end of an object as it is now."""
    return offset.get("finished") == file.size and offset.get("etag") == file.status.identity


def _is_of_another(offset: Offset | None, file: SourceFile) -> bool:
    """Whether a stored offset belongs to a former content of the object."""
    return offset is not None and "etag" in offset and offset["etag"] != file.status.identity


def object_partition(bucket: str, file: SourceFile) -> dict[str, str]:
    """Return the source partition of an object, which is that of Aiven's source."""
    return {"bucket": bucket, "objectKey": file.name}


def object_offset(offset: Mapping[str, Any], file: SourceFile) -> dict[str, Any]:
    """Return the source offset for a place in an object: as Aiven's source has it, and how it is found at once."""
    return {"recordCount": offset.get("row", 0), **offset, "etag": file.status.identity}

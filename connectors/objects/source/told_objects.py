"""Objects that messages of a queue tell of; the messages are deleted when the objects' offsets are stored."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connect.data import Offset, SourceRecord
from connect.errors import DataError, RetriableError
from connect.kits.files.readers.visit import FileState
from connect.kits.files.systems.system import SourceFile
from connect.kits.objects.sqs import QueueMessage, SqsQueue
from connect.source import SourceTaskContext
from connectors.objects.source.config import ObjectSourceConfig
from connectors.objects.source.event_messages import events_of
from connectors.objects.source.unread_objects import FoundObject, UnreadObjects, is_read, object_partition

__all__ = ["ToldObjects"]

_WAIT_SECONDS: Final = 1
"""How long a request waits for a message; all servers of a queue are asked only by one that waits."""
_MOST_HELD: Final = 1_000
"""Messages that may wait for their objects' offsets; more are not received (I9)."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _HeldMessage:
    """The receipt of a message, and the stems of its objects' names whose offsets are not stored yet."""

    receipt: str
    stems: set[str]


class ToldObjects:
    """The unread objects of the only task: all that are there at its start, then those told; a ``FilesToRead``.

    A message only says where to look: what is read is the object as it is then. So messages may come twice, late and in
    any order.

    Crash points: a message is deleted when the offsets of all its objects are stored (I1), or when there is nothing to
    read. Killed before, the next start finds the objects by its list, and the message, which comes again, has nothing
    left to tell.
    """

    def __init__(
        self, config: ObjectSourceConfig, objects: UnreadObjects, queue: SqsQueue, context: SourceTaskContext
    ) -> None:
        self._config = config
        self._bucket = config.address.host
        self._objects = objects
        self._queue = queue
        self._context = context
        self._held: dict[str, _HeldMessage] = {}
        self._by_stem: dict[str, set[str]] = {}
        self._to_look: dict[str, str] = {}
        """A key of each record file that is to be looked at, by the stem of its name."""
        self._deletable: list[str] = []
        self._reported: list[str] = []
        self._is_listed = False
        self._is_empty = False
        self._hidden_at = time.monotonic()

    @property
    def has_more(self) -> bool:
        """Whether the list goes on. The queue is asked once a poll, so that commits come between."""
        return not self._is_listed

    def to_read(self) -> list[FileState]:
        """Return unread objects of the list's next page, and those that messages tell of."""
        self._delete()
        if len(self._held) + len(self._reported) < _MOST_HELD:
            self._receive(_WAIT_SECONDS if self._is_listed else 0)
        # Nothing is being read now: what is unread was broken off.
        for name in self._objects.unread_names():
            self._look_at(name)
        states = self._told()
        if not self._is_listed:
            known = {state.file.name for state in states}
            states += [state for state in self._objects.to_read() if state.file.name not in known]
            self._is_listed = not self._objects.has_more
        return sorted(states, key=lambda state: state.file.name)

    def complete(self, state: FileState) -> None:
        """Have the end of an object stored."""
        self._objects.complete(state)

    def forget(self, file: SourceFile) -> None:
        """Forget an object whose offset is stored, and its messages."""
        self._objects.forget(file)
        name = self._config.names.parse(file.name)
        if name is not None:
            self._release(name.stem)

    def committed(self) -> None:
        """Delete the messages whose objects' offsets are stored; all reports have been flushed by now."""
        self._deletable += self._reported
        self._reported = []
        ended = self._objects.ended()
        partitions = [object_partition(self._bucket, state.file) for state in ended]
        kept = self._context.offset_storage_reader.offsets(partitions) if partitions else ()
        for state, offset in zip(ended, kept, strict=True):
            if _is_stored(state, offset):
                self.forget(state.file)
        try:
            self._delete()
        except RetriableError as error:
            _log.warning("%s The messages are deleted later.", error)

    def stay_hidden(self) -> None:
        """Keep the messages hidden whose objects are still being read."""
        now = time.monotonic()
        if now - self._hidden_at < self._queue.hidden_seconds / 3 or not self._held:
            return
        self._hidden_at = now
        try:
            self._queue.hide([held.receipt for held in self._held.values()])
        except RetriableError as error:
            _log.warning("%s Its messages may come twice, which does no harm.", error)

    def is_drained(self) -> bool:
        """Whether all objects of the list were read, and the queue told of no others."""
        return self._is_listed and self._is_empty and not self._to_look and self._objects.is_drained()

    def remaining(self) -> Mapping[str, int]:
        """Return the bytes and objects that are known and unread."""
        return self._objects.remaining()

    def total(self) -> Mapping[str, int]:
        """Return nothing: how many there are in all is not known."""
        return {}

    def _receive(self, wait_seconds: int) -> None:
        messages = self._queue.receive(wait_seconds)
        self._is_empty = not messages
        for message in messages:
            self._take(message)

    def _take(self, message: QueueMessage) -> None:
        """Note what a message tells; one that comes again has a newer receipt."""
        try:
            keys = self._keys_in(message)
        except DataError as error:
            self._report(message, error)
            return
        stems = set(filter(None, map(self._look_at, keys)))
        if not stems:
            self._deletable.append(message.receipt)
            return
        self._held[message.message_id] = _HeldMessage(message.receipt, stems)
        for stem in stems:
            self._by_stem.setdefault(stem, set()).add(message.message_id)

    def _keys_in(self, message: QueueMessage) -> list[str]:
        events = events_of(message.body)
        others = [event.bucket for event in events if event.bucket != self._bucket]
        if others:
            raise DataError(
                f"it tells of the bucket {others[0]}, and this source reads {self._bucket}: give it a queue of its own"
            )
        return [event.key for event in events]

    def _look_at(self, key: str) -> str | None:
        """Have an object looked at; return the stem of its name, ``None`` if it is not to be read."""
        name = self._config.names.parse(key)
        if name is None:
            return None
        self._to_look[name.stem] = key
        return name.stem

    def _report(self, message: QueueMessage, error: DataError) -> None:
        """Give up a message that cannot be understood: it stays in the queue if that fails the task."""
        told = DataError(
            f"Message {message.message_id} of {self._queue.url} cannot be used: {error}. Delete it there, or set "
            "errors.tolerance=all to have such messages logged and deleted."
        )
        self._context.errant_record_reporter.report(SourceRecord(self._config.topic or "", message.body), told)
        self._reported.append(message.receipt)

    def _told(self) -> list[FileState]:
        """Return what is unread of the objects to look at; let go of the messages of the others."""
        found: dict[str, FoundObject] = {}
        for stem, key in list(self._to_look.items()):
            try:
                each = self._objects.told(key)
            except FileNotFoundError:
                # The message comes again, and there is one for the part that is missing.
                self._let_come_again(stem)
            else:
                if each is None:
                    self._release(stem)
                else:
                    found[stem] = each
            del self._to_look[stem]
        states = self._objects.unread(list(found.values()))
        for stem, each in found.items():
            if not self._objects.is_open(each.file):
                self._release(stem)
        return states

    def _release(self, stem: str) -> None:
        """Let go of messages that waited for an object alone."""
        for message_id in self._by_stem.pop(stem, ()):
            held = self._held[message_id]
            held.stems.discard(stem)
            if not held.stems:
                del self._held[message_id]
                self._deletable.append(held.receipt)

    def _let_come_again(self, stem: str) -> None:
        for message_id in self._by_stem.pop(stem, ()):
            for other in self._held.pop(message_id).stems - {stem}:
                self._by_stem[other].discard(message_id)

    def _delete(self) -> None:
        if self._deletable:
            self._queue.delete(self._deletable)
            self._deletable = []


def _is_stored(state: FileState, offset: Offset | None) -> bool:
    """Whether a stored offset is that of the last record of an object, as it was read."""
    place = state.places.get(None)
    if state.is_complete:
        return offset is not None and is_read(offset, state.file)
    if place is None:
        return True  # nothing of it was published
    return (
        offset is not None
        and offset.get("position") == place.position
        and offset.get("etag") == state.file.status.identity
    )

"""The state of the snapshots that signals ask for, which source offsets carry.

Incremental ones have Debezium's keys. Blocking ones, which Debezium forgets when it is restarted, have one of ours,
``blocking_snapshots``, with all that is left to read.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
after a signal, before an offset with it is        a signal of the table, the Kafka topic or the file is read again;
stored                                             one sent by REST is lost, and its notification STARTED never came
between two rows of a chunk                        reading goes on after the last row whose offset is stored
after the last row of a table                      the next table is begun
in a blocking snapshot                             the stream goes on from where it waited, and waits again for what
                                                   is left: tables without a key are read again as a whole
=================================================  ==================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from connect.errors import ConnectError
from connect.kits.cdc.java_keys import Key, key_from_java, key_to_java

__all__ = ["BlockingRequest", "Collection", "IncrementalState", "with_state", "without_state"]

_PREFIX: Final = "incremental_snapshot"
_LAST_KEY: Final = f"{_PREFIX}_primary_key"
_MAXIMUM_KEY: Final = f"{_PREFIX}_maximum_key"
_CORRELATION: Final = f"{_PREFIX}_correlation_id"
_PAUSED: Final = f"{_PREFIX}_paused"
_SIGNAL_OFFSET: Final = f"{_PREFIX}_signal_offset"
_COLLECTIONS: Final = f"{_PREFIX}_collections"
_ID: Final = f"{_COLLECTIONS}_id"
_CONDITION: Final = f"{_COLLECTIONS}_additional_condition"
_SURROGATE: Final = f"{_COLLECTIONS}_surrogate_key"
_AFTER: Final = f"{_COLLECTIONS}_after"
_UNTIL: Final = f"{_COLLECTIONS}_until"
_BLOCKING: Final = "blocking_snapshots"


@dataclass(frozen=True, slots=True)
class Collection:
    """A table to read, or a range of its keys: the rows after ``after``, up to and including ``until``.

    Without ``until`` the greatest key is still to be looked up. ``surrogate`` is the column to go by in place of the
    primary key.
    """

    table: str
    condition: str = ""
    surrogate: str = ""
    after: Key | None = None
    until: Key | None = None


@dataclass(frozen=True, slots=True)
class BlockingRequest:
    """Tables, or ranges of their keys, that a signal wants to be read while the stream waits."""

    signal_id: str
    collections: tuple[Collection, ...]


@dataclass(frozen=True, slots=True)
class IncrementalState:
    """The tables that are still to be read, the first of them being read, and the signal that asked for it.

    ``signal_offset`` is the offset after the last signal taken from the Kafka topic. ``blocking`` has the blocking
    snapshots that are asked for; the first is being read, or will be next.
    """

    collections: tuple[Collection, ...] = ()
    correlation_id: str | None = None
    paused: bool = False
    signal_offset: int | None = None
    blocking: tuple[BlockingRequest, ...] = ()

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> IncrementalState:
        """Read the state in an offset, which may be Debezium's."""
        signal_offset = offset.get(_SIGNAL_OFFSET)
        text = offset.get(_COLLECTIONS)
        try:
            blocking = tuple(map(_request, json.loads(offset.get(_BLOCKING) or "[]")))
            collections = [_collection(each) for each in json.loads(text or "[]")]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectError(
                f"The offset holds {_COLLECTIONS} or {_BLOCKING} in a form that is not known. "
                f"Delete the keys that begin with {_PREFIX}, and {_BLOCKING}, from the offset; send the signal again."
            ) from error
        if not collections:
            return cls(signal_offset=signal_offset, blocking=blocking)
        after, until = (_key(offset.get(name)) for name in (_LAST_KEY, _MAXIMUM_KEY))
        collections[0] = replace(collections[0], after=after, until=until)
        paused = bool(offset.get(_PAUSED, False))
        return cls(tuple(collections), offset.get(_CORRELATION), paused, signal_offset, blocking)

    @property
    def is_running(self) -> bool:
        """Whether there are tables to read."""
        return bool(self.collections)

    @property
    def is_asked(self) -> bool:
        """Whether there are tables to read, beside the stream or while it waits."""
        return bool(self.collections or self.blocking)

    def to_offset(self) -> dict[str, Any]:
        """Return the keys that an offset needs; none if nothing is to be read and no signal was taken."""
        besides: dict[str, Any] = {} if self.signal_offset is None else {_SIGNAL_OFFSET: self.signal_offset}
        if self.blocking:
            besides[_BLOCKING] = json.dumps([_described_request(each) for each in self.blocking], separators=(",", ":"))
        if not self.collections:
            return besides
        first = self.collections[0]
        described = [_described(each, is_first=not number) for number, each in enumerate(self.collections)]
        kept: dict[str, Any] = {_COLLECTIONS: json.dumps(described, separators=(",", ":"))}
        if self.correlation_id is not None:
            kept[_CORRELATION] = self.correlation_id
        for name, key in ((_LAST_KEY, first.after), (_MAXIMUM_KEY, first.until)):
            if key is not None:
                kept[name] = key_to_java(key)
        if self.paused:
            kept[_PAUSED] = True
        return kept | besides

    def with_first(self, collection: Collection) -> IncrementalState:
        """Return the state with another first table."""
        return replace(self, collections=(collection, *self.collections[1:]))

    def without_first(self) -> IncrementalState:
        """Return the state after the first table."""
        rest = self.collections[1:]
        return replace(self, collections=rest, correlation_id=self.correlation_id if rest else None)


def with_state(offset: Mapping[str, Any], state: IncrementalState) -> dict[str, Any]:
    """Return an offset with another state."""
    return {key: value for key, value in without_state(offset).items() if key != _BLOCKING} | state.to_offset()


def without_state(offset: Mapping[str, Any]) -> dict[str, Any]:
    """Return an offset without the keys of incremental snapshots."""
    return {key: value for key, value in offset.items() if not key.startswith(_PREFIX)}


def _key(text: Any) -> Key | None:
    return key_from_java(text) if isinstance(text, str) else None


def _described(collection: Collection, *, is_first: bool) -> dict[str, str | None]:
    described: dict[str, str | None] = {
        _ID: collection.table,
        _CONDITION: collection.condition,
        _SURROGATE: collection.surrogate,
    }
    if not is_first:
        # The keys of the first table are in the offset itself, where Debezium has them.
        described |= {
            name: key_to_java(key)
            for name, key in ((_AFTER, collection.after), (_UNTIL, collection.until))
            if key is not None
        }
    return described


def _described_request(request: BlockingRequest) -> dict[str, Any]:
    return {"id": request.signal_id, "collections": [_described(each, is_first=False) for each in request.collections]}


def _request(described: Mapping[str, Any]) -> BlockingRequest:
    return BlockingRequest(str(described["id"]), tuple(map(_collection, described["collections"])))


def _collection(described: Mapping[str, str | None]) -> Collection:
    table = str(described[_ID])
    condition, surrogate = described.get(_CONDITION) or "", described.get(_SURROGATE) or ""
    return Collection(table, condition, surrogate, _key(described.get(_AFTER)), _key(described.get(_UNTIL)))

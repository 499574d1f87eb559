"""Bulk requests: which operations are sent together, and what the cluster's answer says of each.

Pure: callers pass the time, and do what is decided here. Operations of one document are never under way in two requests
at once, so that their order is the cluster's; those in one request are done in order by the cluster.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeAlias

import orjson

from connect.data import TopicPartition
from connect.errors import DataError
from connectors.elasticsearch.documents import Operation

__all__ = ["Bulk", "BulkQueue", "Outcome", "Verdict", "verdicts"]

_BAD_REQUEST: Final = 400
_MISSING: Final = 404
_CONFLICT: Final = 409
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_OF_THE_INDEX: Final = frozenset({"cluster_block_exception", "index_closed_exception", "index_not_found_exception"})
"""Kinds of errors that pass once somebody has opened, unblocked or made the index."""

_OF_A_PIPELINE: Final = "ingest_processor_exception"
_OF_ALL: Final = "validation_exception"
"""The kind of error of a cluster that has as many shards as it may have."""

_BEGINNINGS_OF_ALL: Final = tuple(
    f"illegal_argument_exception: {beginning}"
    for beginning in (
        "no write index is defined for alias",
        "pipeline with id [",
        "only write ops with an op_type of create are allowed in data streams",
        "Number of documents in shard",
    )
)
"""What the words begin with that have the kind of a bad document's error, and are about its index."""

_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Bulk:
    """Operations that are sent in one request."""

    number: int
    operations: tuple[Operation, ...]

    @property
    def body(self) -> bytes:
        """The body of the request."""
        return b"".join([operation.data for operation in self.operations])


class Outcome(Enum):
    """What became of an operation."""

    DONE = auto()
    AGAIN = auto()
    """The cluster had no room for it, not all its shards, or no index that can be written: it is tried again, alone."""
    MALFORMED = auto()
    """The cluster does not take this document."""
    CONFLICT = auto()
    """The document has a higher version, or the id of a new one is taken."""
    FAILED = auto()
    """The cluster would refuse others too: the user lacks a right, or the index cannot be written as it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an operation, and the cluster's words."""

    operation: Operation
    outcome: Outcome
    reason: str = ""


def verdicts(bulk: Bulk, answer: bytes) -> list[Verdict]:
    """Read the answer to a bulk request. Raises :class:`~connect.errors.DataError` if it is none."""
    try:
        read = orjson.loads(answer)
        if not read["errors"]:
            return [Verdict(operation, Outcome.DONE) for operation in bulk.operations]
        items = [next(iter(item.values())) for item in read["items"]]
        judged = [_verdict(operation, item) for operation, item in zip(bulk.operations, items, strict=True)]
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise DataError(f"The answer is not that of a bulk request: {error!r}") from error
    return list(_in_order(judged))


def _verdict(operation: Operation, item: Mapping[str, Any]) -> Verdict:
    status, error = int(item["status"]), item.get("error")
    if error is None:
        # A document that was to be deleted and is not there has the status 404, and no error.
        return Verdict(operation, Outcome.DONE)
    kind, reason = _told(error)
    if status == _CONFLICT and kind == "version_conflict_engine_exception":
        is_update = operation.data.startswith(b'{"update"')
        return Verdict(operation, Outcome.AGAIN if is_update else Outcome.CONFLICT, reason)
    return Verdict(operation, _outcome(status, kind, reason), reason)


def _outcome(status: int, kind: str, reason: str) -> Outcome:
    """Return what becomes of an operation that was refused: the status says whose fault it is, but for a few kinds."""
    if kind == _OF_A_PIPELINE:
        return Outcome.MALFORMED
    if status in _PASSING or kind in _OF_THE_INDEX:
        return Outcome.AGAIN
    if status == _MISSING and kind == "document_missing_exception":
        return Outcome.AGAIN
    is_of_all = kind == _OF_ALL or reason.startswith(_BEGINNINGS_OF_ALL)
    return Outcome.MALFORMED if status == _BAD_REQUEST and not is_of_all else Outcome.FAILED


def _told(error: Any) -> tuple[str, str]:
    """Return the type of an error, and its words with those of its cause."""
    if not isinstance(error, Mapping):
        return "", str(error)
    kind, reason = str(error.get("type", "")), str(error.get("reason", ""))
    cause = error.get("caused_by")
    if isinstance(cause, Mapping) and cause.get("reason"):
        reason = f"{reason}: {cause['reason']}"
    return kind, f"{kind}: {reason}"


def _in_order(judged: Iterable[Verdict]) -> Iterable[Verdict]:
    """Have later operations on a document repeated after one that is, since they were done without it.

    Those with versions need not be: the cluster keeps the highest.
    """
    repeated: set[_Key] = set()
    for verdict in judged:
        operation = verdict.operation
        key = operation.key
        if key is not None and not operation.is_versioned:
            if verdict.outcome is Outcome.AGAIN:
                repeated.add(key)
            elif verdict.outcome is Outcome.DONE and key in repeated:
                yield Verdict(operation, Outcome.AGAIN, "an earlier change of the document is repeated")
                continue
        yield verdict


class BulkQueue:
    """Operations that are not done yet: in line, under way, or waiting to be tried again.

    An operation whose document is under way is parked until it is done, and so are later ones on that document. So each
    is looked at twice at most, however many there are on one document.
    """

    def __init__(self, most: int, most_bytes: int, linger: float) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._linger = linger
        self._line: deque[tuple[float, Operation]] = deque()
        self._parked: dict[_Key, deque[Operation]] = {}
        self._released: deque[_Key] = deque()
        self._again: list[tuple[float, int, tuple[Operation, ...]]] = []
        self._held: dict[_Key, int] = {}
        self._flying: dict[int, Bulk] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        waiting = sum(len(operations) for _, _, operations in self._again)
        parked = sum(map(len, self._parked.values()))
        return len(self._line) + parked + waiting + sum(len(bulk.operations) for bulk in self._flying.values())

    def waited(self, now: float) -> float:
        """Return for how many seconds the oldest operation has been here; 0 without any."""
        return now - min((operation.taken_at for operation in self._operations()), default=now)

    def durable(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets before which everything is done, none beyond those given."""
        found = dict(offsets)
        for operation in self._operations():
            origin = operation.record.origin
            if origin in found:
                found[origin] = min(found[origin], operation.record.original_offset)
        return found

    def _operations(self) -> Iterator[Operation]:
        for _, operation in self._line:
            yield operation
        for operations in (*self._parked.values(), *(waiting for _, _, waiting in self._again)):
            yield from operations
        for bulk in self._flying.values():
            yield from bulk.operations

    @property
    def flying(self) -> int:
        """The number of requests under way."""
        return len(self._flying)

    def add(self, operation: Operation, now: float) -> None:
        """Put an operation at the end of the line."""
        operation.taken_at = now
        self._line.append((now, operation))

    def next(self, now: float, *, flushes: bool = False) -> Bulk | None:
        """Return the next request that may be sent; with ``flushes`` none waits for more operations."""
        if self._again and self._again[0][0] <= now:
            return self._launched(heapq.heappop(self._again)[2])
        is_due = flushes or len(self._line) >= self._most or bool(self._released)
        if not is_due and not (self._line and now - self._line[0][0] >= self._linger):
            return None
        chosen = self._chosen()
        if not chosen:
            return None
        for operation in chosen:
            self._hold(operation)
        return self._launched(tuple(chosen))

    def due(self, now: float) -> float | None:
        """Return in how many seconds there may be a request to send, if nothing else happens."""
        times = [self._again[0][0]] if self._again else []
        if self._line:
            times.append(self._line[0][0] + self._linger)
        return max(0.0, min(times) - now) if times else None

    def landed(self, bulk: Bulk) -> bool:
        """Take note that a request has ended; return whether its operations are still wanted."""
        return self._flying.pop(bulk.number, None) is not None

    def done(self, operation: Operation) -> None:
        """Take note that an operation is done or given up."""
        key = operation.key
        if key is None or key not in self._held:
            return
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
            if key in self._parked:
                self._released.append(key)

    def again(self, operations: Iterable[Operation], due: float) -> None:
        """Have operations tried again at a time; those on the same documents wait for them."""
        given = tuple(operations)
        if given:
            heapq.heappush(self._again, (due, next(self._numbers), given))

    def halve(self, bulk: Bulk, now: float) -> None:
        """Have the operations of a request sent in two: the second half goes to the head of the line."""
        middle = len(bulk.operations) // 2
        first, second = bulk.operations[:middle], bulk.operations[middle:]
        self.again(first, now)
        kept = {operation.key for operation in first}
        for operation in reversed(second):
            key = operation.key
            if key is not None and (key in kept or key in self._parked):
                self._parked.setdefault(key, deque()).appendleft(operation)
            else:
                self._line.appendleft((now - self._linger, operation))
        for operation in second:
            self.done(operation)

    def forget(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Drop the operations of partitions, or all; what is under way goes on, and its outcome counts for nothing."""
        if partitions is None:
            for waiting in (self._line, self._again, self._held, self._flying, self._parked, self._released):
                waiting.clear()
            return
        gone = set(partitions)
        self._line = deque(each for each in self._line if each[1].record.origin not in gone)
        parked = {key: deque(op for op in ops if op.record.origin not in gone) for key, ops in self._parked.items()}
        self._parked = {key: operations for key, operations in parked.items() if operations}
        self._released = deque(key for key in self._released if key in self._parked)
        again, self._again = self._again, []
        for due, _, operations in again:
            for operation in operations:
                if operation.record.origin in gone:
                    self.done(operation)
            self.again((each for each in operations if each.record.origin not in gone), due)

    def _chosen(self) -> list[Operation]:
        """Take operations that were parked and may go on, and then those in line, in their order."""
        chosen: list[Operation] = []
        size = self._unparked(chosen)
        while self._line and len(chosen) < self._most:
            operation = self._line[0][1]
            key = operation.key
            if key is not None and (key in self._held or key in self._parked):
                self._line.popleft()
                self._parked.setdefault(key, deque()).append(operation)
                continue
            size += len(operation.data)
            if chosen and 0 <= self._most_bytes < size:
                break
            self._line.popleft()
            chosen.append(operation)
        return chosen

    def _unparked(self, chosen: list[Operation]) -> int:
        """Take operations on documents that are free again, as many as fit; return their size in bytes."""
        size = 0
        while self._released and len(chosen) < self._most:
            key = self._released[0]
            operations = self._parked[key]
            while operations and len(chosen) < self._most:
                size += len(operations[0].data)
                if chosen and 0 <= self._most_bytes < size:
                    break
                chosen.append(operations.popleft())
            if not operations:
                del self._parked[key]
            elif not any(each.key == key for each in chosen[-1:]):
                # There was no room for any of them: they are the first next time.
                return size
            self._released.popleft()
        return size

    def _hold(self, operation: Operation) -> None:
        key = operation.key
        if key is not None:
            self._held[key] = self._held.get(key, 0) + 1

    def _launched(self, operations: tuple[Operation, ...]) -> Bulk:
        bulk = Bulk(next(self._numbers), operations)
        self._flying[bulk.number] = bulk
        return bulk

"""The thread that reads and writes source offsets for the tasks of a worker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias, TypeVar

from connect.errors import ConnectError
from worker.messages.messages import (
    Command,
    CommitOffsets,
    OffsetPairs,
    OffsetsCommitted,
    OffsetsRead,
    ReadOffsets,
)
from worker.stores.offset.store import OffsetKey, OffsetStore, offset_key, offset_value, parse_offset, parse_offset_key

__all__ = ["OffsetService"]

logger = logging.getLogger(__name__)
_MOST_AT_ONCE: Final = 1_000

T = TypeVar("T")
_Request: TypeAlias = tuple[ReadOffsets | CommitOffsets, str, Future[Command]]


class OffsetService:
    """Owns an offset store (invariant I6).

    Pending commits are written together, with one sync, and pending reads are answered together, because all source
    tasks of a worker read at its start.
    """

    def __init__(self, store: OffsetStore) -> None:
        self._store = store
        self._inbox: SimpleQueue[_Request | Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="offsets")

    def start(self) -> None:
        """Start serving requests."""
        self._thread.start()

    def close(self) -> None:
        """Serve the requests made so far, and end."""
        self._inbox.put(None)
        self._thread.join()

    def submit(self, request: ReadOffsets | CommitOffsets, connector: str) -> Future[Command]:
        """Queue a request of a connector's process; a request that is cancelled before it has begun is dropped."""
        answer: Future[Command] = Future()
        self._inbox.put((request, connector, answer))
        return answer

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        """Return every source partition of a connector, with its offset."""
        return self._ask(lambda: self._of_connector(connector))

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        """Set offsets of a connector without running tasks; ``None`` deletes one."""
        changed = {offset_key(connector, partition): offset_value(offset) for partition, offset in offsets}
        return self._ask(lambda: self._store.put(changed))

    def _loop(self) -> None:
        open_ = True
        while open_:
            items = [self._inbox.get()]
            while len(items) < _MOST_AT_ONCE:
                try:
                    items.append(self._inbox.get_nowait())
                except Empty:
                    break
            open_ = None not in items
            asked = [item for item in items if isinstance(item, tuple)]
            self._serve([item for item in asked if item[2].set_running_or_notify_cancel()])
            for item in items:
                if callable(item):
                    item()

    def _ask(self, answer: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def attempt() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(answer())
            except Exception as error:
                future.set_exception(error)

        self._inbox.put(attempt)
        return future

    def _of_connector(self, connector: str) -> OffsetPairs:
        keys = {key: parse_offset_key(key) for key in self._store.items()}
        chosen = {key: partition for key, (name, partition) in keys.items() if name == connector}
        values = self._store.get(list(chosen))
        return [(partition, parse_offset(value)) for partition, value in zip(chosen.values(), values, strict=True)]

    def _serve(self, requests: list[_Request]) -> None:
        commits = [item for item in requests if isinstance(item[0], CommitOffsets)]
        error = self._commit(commits) if commits else None
        for request, _, answer in commits:
            answer.set_result(OffsetsCommitted(request.request, error))
        self._read(requests)

    def _commit(self, commits: list[_Request]) -> str | None:
        try:
            self._store.put(
                {
                    offset_key(connector, partition): offset_value(offset)
                    for request, connector, _ in commits
                    if isinstance(request, CommitOffsets)
                    for partition, offset in request.offsets
                }
            )
        except ConnectError as error:
            # The message explains itself; a full disk causes this at every commit.
            logger.error("Source offsets could not be written: %s", error)  # noqa: TRY400 - see above
            return str(error)
        except Exception as error:
            logger.exception("Source offsets could not be written")
            return str(error) or type(error).__name__
        return None

    def _read(self, requests: list[_Request]) -> None:
        """Answer all pending reads with one read of the store, which may be a round trip to the end of a topic."""
        wanted: list[tuple[ReadOffsets, list[OffsetKey], Future[Command]]] = []
        for request, connector, answer in requests:
            if isinstance(request, ReadOffsets):
                try:
                    keys = [offset_key(connector, partition) for partition in request.partitions]
                except Exception as error:
                    answer.set_result(_unread(request, error))
                else:
                    wanted.append((request, keys, answer))
        if not wanted:
            return
        try:
            values = iter(self._store.get([key for _, keys, _ in wanted for key in keys]))
        except Exception as error:
            for request, _, answer in wanted:
                answer.set_result(_unread(request, error))
            return
        for request, keys, answer in wanted:
            answer.set_result(_found(request, list(islice(values, len(keys)))))


def _found(request: ReadOffsets, values: list[bytes | None]) -> OffsetsRead:
    try:
        return OffsetsRead(request.request, [parse_offset(data) for data in values], None)
    except Exception as error:
        return _unread(request, error)


def _unread(request: ReadOffsets, error: Exception) -> OffsetsRead:
    logger.error("Source offsets could not be read", exc_info=error)
    return OffsetsRead(request.request, [], str(error) or type(error).__name__)

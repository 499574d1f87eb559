"""The thread that stores the versions of configurations: it records them while this worker leads, and reads them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from connect.errors import ConnectError
from worker.stores.versions.version import Seen, Version, VersionStore, forgotten, news, rebased, vanished

__all__ = ["VersionService"]

logger = logging.getLogger(__name__)

_MOST_WAITING: Final = 200
_RETRY_SECONDS: Final = (10.0, 600.0)
"""The delay before the first retry of a write, which then doubles, and the maximum delay."""

_Action: TypeAlias = Callable[[], None]


class VersionService:
    """Owns a version store (invariant I6). All methods except :meth:`close` return at once.

    Every worker sees the changes; the leader records them. All workers remember the last ones, so the next leader
    records those that a former leader missed. A version depends only on the change, so two workers that record the same
    change write the same version. While the store cannot be written, the last ``_MOST_WAITING`` changes are kept
    (invariant I9), and the failure is logged.
    """

    def __init__(self, store: VersionStore) -> None:
        self._store = store
        self._inbox: SimpleQueue[_Action | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="config-versions", daemon=True)
        # Everything below belongs to the thread.
        self._waiting: deque[Seen] = deque(maxlen=_MOST_WAITING)
        self._latest: dict[str, Version] | None = None
        self._present: Sequence[Seen] | None = None
        self._complete = False
        self._retry_at: float | None = None
        self._wait = _RETRY_SECONDS[0]

    def start(self) -> None:
        """Start serving requests."""
        self._thread.start()

    def close(self) -> None:
        """Record the changes seen so far, and end."""
        self._inbox.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def saw(self, seen: Seen) -> None:
        """Record a change, or remember it for a while if another worker leads."""
        self._inbox.put(lambda: self._saw(seen))

    def lead(self, present: Sequence[Seen], *, complete: bool) -> None:
        """Record changes from now on, and missed ones; ``present`` are the existing configurations.

        If these are ``complete``, a connector that is missing in them was deleted.
        """
        self._inbox.put(lambda: self._lead(present, complete=complete))

    def follow(self) -> None:
        """Leave recording to another worker."""
        self._inbox.put(self._follow)

    def versions(self, connector: str) -> Future[list[Version]]:
        """Read the versions of a connector, in order; :class:`~connect.errors.ConnectError` if that is impossible."""
        answer: Future[list[Version]] = Future()

        def read() -> None:
            try:
                answer.set_result(self._store.versions(connector))
            except Exception as error:
                answer.set_exception(error)

        self._inbox.put(read)
        return answer

    def _loop(self) -> None:
        while True:
            try:
                action = self._inbox.get(timeout=self._patience())
            except Empty:
                action = self._note
            if action is None:
                break
            try:
                action()
            except Exception:
                logger.exception("The history of configurations could not be kept up to date")
        self._store.close()

    def _patience(self) -> float | None:
        return None if self._retry_at is None else max(0.0, self._retry_at - time.monotonic())

    def _saw(self, seen: Seen) -> None:
        self._waiting.append(seen)
        self._note()

    def _lead(self, present: Sequence[Seen], *, complete: bool) -> None:
        self._present, self._complete, self._latest = present, complete, None
        self._note()

    def _follow(self) -> None:
        self._present, self._latest, self._retry_at = None, None, None

    def _note(self) -> None:
        """Write new versions if this worker leads; failed writes are retried."""
        if self._present is None:
            return
        self._retry_at = None
        try:
            self._write()
        except ConnectError as error:
            logger.warning(
                "Changes of configurations could not be added to their history; the worker will try again: %s", error
            )
            self._retry_at = time.monotonic() + self._wait
            self._wait = min(2 * self._wait, _RETRY_SECONDS[1])
        else:
            self._wait = _RETRY_SECONDS[0]

    def _write(self) -> None:
        assert self._present is not None
        seen = list(self._waiting)
        if self._latest is None:
            latest = rebased(self._store.latest(), self._present)
            seen += self._present
            if self._complete:
                seen += vanished(latest, self._present, time.time_ns() // 1_000_000)
        else:
            latest = self._latest
        found = news(latest, seen)
        latest = latest | {version.seen.connector: version for version in found}
        gone = forgotten(latest)
        if found or gone:
            self._store.append(found, gone)
        for version in gone:
            del latest[version.seen.connector]
        self._latest, self._present = latest, ()
        self._waiting.clear()

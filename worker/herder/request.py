"""A request to the herder, as the thread that made it sees it."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Generic, TypeVar

from connect.errors import ConnectError

__all__ = ["Request"]

T = TypeVar("T")


class Request(Future[T], Generic[T]):
    """The result to come, and what the worker does for it meanwhile, for whoever cannot wait any longer."""

    def __init__(self) -> None:
        super().__init__()
        self._broken_off = False
        self._stage = ("handling the requests before this one", time.time())

    @property
    def stage(self) -> tuple[str, float]:
        """What the worker does for this request, and since when (seconds since 1970)."""
        return self._stage

    def enter(self, stage: str) -> None:
        """Say what is done from now on."""
        self._stage = (stage, time.time())

    def set_result(self, result: T) -> None:
        """Answer, unless it was broken off."""
        if not self._broken_off:
            super().set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail, unless it was broken off."""
        if not self._broken_off:
            super().set_exception(exception)

    def follow(self, future: Future[T]) -> None:
        """Answer with what comes of a future."""

        def done(outcome: Future[T]) -> None:
            if (error := outcome.exception()) is not None:
                self.set_exception(error)
            else:
                self.set_result(outcome.result())

        future.add_done_callback(done)

    def break_off(self, error: ConnectError) -> None:
        """Fail before what is done for it has ended; whatever comes of that is not told any more."""
        if not self.done():
            self._broken_off = True
            super().set_exception(error)

"""A request to the herder, as the thread that made it sees it."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["Request"]

T = TypeVar("T")


class Request(Future[T], Generic[T]):
    """The result to come, and what the worker does for it meanwhile, for whoever cannot wait any longer."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ("handling the requests before this one", time.time())

    @property
    def stage(self) -> tuple[str, float]:
        """What the worker does for this request, and since when (seconds since 1970)."""
        return self._stage

    def enter(self, stage: str) -> None:
        """Say what is done from now on."""
        self._stage = (stage, time.time())

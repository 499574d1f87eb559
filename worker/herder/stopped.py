"""What may be done to a connector only while it is stopped. Used by the herder's thread alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worker.errors import ConflictError
from worker.herder.request import Request
from worker.herder.units import Units

__all__ = ["StoppedConnectors"]


class StoppedConnectors:
    """Keeps connectors from starting while something is done to them.

    ``post`` has something done in the herder's thread; ``reconcile`` is called there when a connector may start again.
    """

    def __init__(self, units: Units, post: Callable[[Callable[[], None]], None], reconcile: Callable[[], None]) -> None:
        self._units = units
        self._post = post
        self._reconcile = reconcile

    def hold(self, request: Request[Any], name: str, begin: Callable[[], None]) -> None:
        """Call ``begin`` once nothing of a connector runs, and start nothing of it until the request is done.

        Its tasks may still be committing their last offsets. Raises :class:`~worker.errors.ConflictError` while
        another request holds it.
        """
        if self._units.holds(name):
            raise ConflictError(f"The offsets of connector {name} are being modified; ask again in a moment")
        request.enter(f"waiting for the tasks of connector {name} to stop")
        request.add_done_callback(lambda _: self._release(name))
        self._units.hold(name, begin)

    def _release(self, name: str) -> None:
        self._units.release(name)
        self._post(self._reconcile)

"""Moves a connector from one cluster of workers to another, with its offsets.

==========================================  ========================================================================
killed here                                 then
==========================================  ========================================================================
after it was created stopped                it runs where it was; the next run goes on
after it was stopped where it was           it runs nowhere; nothing is lost or doubled. The next run says that it is
                                            stopped in both, and how to start it in either
after its offsets were set                  the same
after it was resumed                        it is moved
==========================================  ========================================================================

It never runs in both: it is resumed only after all its tasks have ended in the other, and its offsets have come to
rest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["Cluster", "altered_offsets", "move"]

_STOP_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.5
_REST_SECONDS: Final = 3.0
"""How long offsets must stay the same: a task commits its last ones as it ends."""
_STATES: Final = {"RUNNING": "resume", "PAUSED": "pause"}


class Cluster:
    """A cluster of workers, Java's or ours, by its REST API; ``name`` is what it is called in messages."""

    def __init__(self, client: RestClient, name: str) -> None:
        self.client = client
        self.name = name

    def offsets(self, connector: str) -> list[dict[str, Any]]:
        """Return the offsets of a connector."""
        return list(self.client.get(self.client.connector_path(connector, "offsets"))["offsets"])

    def change(self, connector: str, change: str) -> None:
        """Pause, resume or stop a connector."""
        self.client.put(self.client.connector_path(connector, change))

    def states(self, connector: str) -> tuple[str, int]:
        """Return the state of a connector, and how many tasks it has."""
        status = self.client.get(self.client.connector_path(connector, "status"))
        return str(status["connector"]["state"]), len(status["tasks"])

    def set_offsets(self, connector: str, offsets: list[dict[str, Any]]) -> None:
        """Make the offsets of a stopped connector exactly these."""
        if changes := altered_offsets(self.offsets(connector), offsets):
            self.client.patch(self.client.connector_path(connector, "offsets"), {"offsets": changes})

    def stopped(self, connector: str) -> list[dict[str, Any]]:
        """Stop a connector, and return its offsets once all its tasks have ended and nothing changes any more."""
        self.change(connector, "stop")
        deadline = time.monotonic() + _STOP_SECONDS
        last, since = self.offsets(connector), time.monotonic()
        while True:
            present, now = self.offsets(connector), time.monotonic()
            if present != last or self.states(connector) != ("STOPPED", 0):
                last, since = present, now
            elif now - since >= _REST_SECONDS:
                return present
            if now >= deadline:
                raise click.ClickException(f"{connector} did not stop in {self.name} within {_STOP_SECONDS:g} s.")
            time.sleep(_LOOK_SECONDS)


def altered_offsets(present: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes that make offsets what is wanted: partitions that are not wanted are removed."""
    keep = {_key(item): item for item in wanted}
    known = {_key(item): item for item in present}
    changed = [item for key, item in keep.items() if known.get(key) != item]
    return changed + [
        {"partition": item["partition"], "offset": None} for key, item in known.items() if key not in keep
    ]


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps(item["partition"], sort_keys=True)


def move(connector: str, source: Cluster, target: Cluster, prepare: Callable[[], None]) -> str:
    """Move a connector, and return the state that it has in the target. ``prepare`` makes it exist there, stopped.

    If the target refuses the offsets, the connector is as before in the source. If it does not answer when it is to
    start the connector, the source does not start it again: it may run in the target.
    """
    before, _ = source.states(connector)
    prepare()
    try:
        target.set_offsets(connector, source.stopped(connector))
    except BaseException:
        if before != "STOPPED":
            source.change(connector, _STATES.get(before, "resume"))
        raise
    if before != "STOPPED":
        target.change(connector, _STATES.get(before, "resume"))
    return before

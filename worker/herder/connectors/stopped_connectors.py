"""Keeps connectors stopped while the leader changes offsets or replays records. Used only in the herder's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connect.errors import ConnectError
from worker.errors import ConflictError, UnknownConnectorError
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Action, Inbox
from worker.herder.requests import Request, Steps
from worker.herder.units import Units
from worker.membership.membership import Membership
from worker.stores.config.store import ConfigStore, ConnectorEntry, TargetState

__all__ = ["StoppedConnectors"]

_PATIENCE_SECONDS: Final = 60.0
_LOOK_AGAIN_SECONDS: Final = 0.1


class StoppedConnectors:
    """Keeps connectors from starting on any worker while the leader works on them.

    ``reconcile`` is called in the herder's thread when a connector may start again.
    """

    def __init__(
        self,
        configs: ConfigStore,
        units: Units,
        membership: Membership,
        changes: ChangeQueue,
        inbox: Inbox,
        reconcile: Action,
    ) -> None:
        self._configs = configs
        self._units = units
        self._membership = membership
        self._changes = changes
        self._inbox = inbox
        self._reconcile = reconcile

    def hold(self, request: Request[Any], name: str, refusal: Callable[[str], ConnectError]) -> Steps[ConnectorEntry]:
        """As the leader, wait until no worker runs a task of the connector, and return its entry.

        None starts until ``request`` completes. Refuses a connector that is not stopped. Raises
        :class:`~worker.errors.ConflictError` while another request holds the connector.
        """
        if self._changes.is_held(name):
            raise ConflictError(
                f"The offsets of connector {name} are being modified, or its dead letters replayed; ask again in a "
                "moment"
            )
        yield from self._changes.turn(name, request, exclusive=True)
        entry = self._configs.connectors().get(name)
        if entry is None:
            raise UnknownConnectorError(f"Connector {name} not found")
        if entry.target is not TargetState.STOPPED:
            raise refusal(name)
        request.enter(f"waiting for the tasks of connector {name} to stop")
        request.add_done_callback(lambda _: self._inbox.post(self._reconcile))
        yield self._units.connector_gone(name)
        yield from self._gone_elsewhere(name)
        return entry

    def changed(self, name: str) -> None:
        """Cancel the work on a connector that another writer of the config topic has started or removed."""
        entry = self._configs.connectors().get(name)
        if self._changes.is_held(name) and (entry is None or entry.target is not TargetState.STOPPED):
            self._changes.break_off(name, "the connector was started or removed by another worker")

    def _gone_elsewhere(self, name: str) -> Steps[None]:
        """Wait until no other worker runs a task; that worker's session and lease may have to end first."""
        patience = _PATIENCE_SECONDS
        while self._membership.may_run_tasks(name):
            if patience <= 0:
                raise ConflictError(
                    f"A worker of the cluster has not stopped its tasks of connector {name} within "
                    f"{_PATIENCE_SECONDS:g} s. Nothing was changed; ask again when the cluster is at rest."
                )
            yield self._inbox.pause(_LOOK_AGAIN_SECONDS)
            patience -= _LOOK_AGAIN_SECONDS

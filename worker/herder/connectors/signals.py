"""Signals of users to the tasks of source connectors. Used only in the herder's thread.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
the worker or the task, before the task has it     the request fails, and nothing was done
the task, after it has it, before the answer       the request fails with a message that says so; the task may have
                                                   stored what the signal asks for, so signals have ids
the task, after the answer                         what the task has not stored yet is lost; each connector says when
                                                   it stores it
=================================================  ==================================================================
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from worker.errors import BadRequestError, ConflictError, NotAssignedError, NotLeaderError
from worker.herder.connectors.connectors import Connectors
from worker.herder.inbox import Deferred, Inbox
from worker.herder.requests import Request, Steps
from worker.herder.units import Units
from worker.membership.membership import Membership
from worker.messages.messages import TakeSignal
from worker.stores.config.store import TargetState
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Launched, SignalAnswered
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

__all__ = ["Signals"]

_PATIENCE_SECONDS: Final = 10.0
_LOOK_AGAIN_SECONDS: Final = 0.05
_ENDED: Final = (Phase.FAILED, Phase.STOPPING, Phase.GONE)


class Signals:
    """Hands signals to the first tasks of connectors, if they run here, and refuses others with the worker that can.

    A request fails with :class:`~connect.errors.NotFoundError` for an unknown connector, with
    :class:`~worker.errors.BadRequestError` if the task refuses the signal, and with
    :class:`~worker.errors.ConflictError` if it does not run.
    """

    def __init__(
        self, connectors: Connectors, membership: Membership, units: Units, supervisor: Supervisor, inbox: Inbox
    ) -> None:
        self._connectors = connectors
        self._membership = membership
        self._units = units
        self._supervisor = supervisor
        self._inbox = inbox
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Unit, Deferred[str | None]]] = {}

    def send(self, request: Request[None], name: str, signal_id: str, kind: str, data: dict[str, Any]) -> Steps[None]:
        """Hand a signal to a connector's first task; returns when the task has it."""
        unit = Unit(name, 0)
        yield from self._until_running(request, unit)
        number, answer = next(self._numbers), Deferred[str | None]()
        self._waiting[number] = unit, answer
        self._supervisor.command(unit, TakeSignal(number, signal_id, kind, data))
        request.enter(f"waiting until {unit} has the signal, which it takes between two polls")
        try:
            refused = yield answer
        finally:
            self._waiting.pop(number, None)
        if refused is not None:
            raise BadRequestError(refused)

    def heard(self, notice: Changed | Launched | SignalAnswered) -> None:
        """Pass the answer of a task on, or the end of its process."""
        match notice:
            case SignalAnswered(_, number, refused) if number in self._waiting:
                self._waiting[number][1].set_result(refused)
            case Launched(unit):
                self._give_up(unit, "another process runs it now")
            case Changed(unit, phase) if phase in _ENDED:
                self._give_up(unit, f"it is {phase.name.lower()}")

    def _give_up(self, unit: Unit, why: str) -> None:
        error = ConflictError(
            f"{unit} has not said whether it has the signal, since {why}. It may have it: look at its status and log, "
            "and send the signal again if nothing has come of it."
        )
        for of_unit, answer in list(self._waiting.values()):
            if of_unit == unit and not answer.done():
                answer.set_exception(error)

    def _until_running(self, request: Request[None], unit: Unit) -> Steps[None]:
        """Wait for a while until the task runs here. Raises why it does not."""
        patience = _PATIENCE_SECONDS
        while not self._is_running(unit, patience):
            request.enter(f"waiting until {unit} runs")
            yield self._inbox.pause(_LOOK_AGAIN_SECONDS)
            patience -= _LOOK_AGAIN_SECONDS

    def _is_running(self, unit: Unit, patience: float) -> bool:
        entry = self._connectors.entry(unit.connector)
        if self._connectors.type(unit.connector) == "sink":
            raise BadRequestError(f"Connector {unit.connector} is a sink, which takes no signals.")
        if entry.target is not TargetState.STARTED:
            raise ConflictError(
                f"Connector {unit.connector} is {entry.target.name.lower()}. Resume it, and send the signal again."
            )
        if self._units.assigned(unit):
            phase = self._units.phase(unit)
            if phase is Phase.FAILED:
                raise ConflictError(f"{unit} has failed. Restart it, and send the signal again.")
            if phase is not Phase.RUNNING and patience <= 0:
                raise ConflictError(f"{unit} does not run yet. Send the signal again once it does.")
            return phase is Phase.RUNNING
        if not self._membership.is_leader:
            raise NotLeaderError("Only the leader knows which worker runs what.", self._membership.leader_url)
        if (url := self._membership.owner_url(unit)) is not None or patience <= 0:
            raise NotAssignedError(f"{unit} does not run on this worker.", url)
        return False

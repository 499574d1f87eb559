"""Zombie fencing: with exactly-once, the producers of former source tasks are fenced before new tasks start.

Only the leader fences (KIP-618), and it records for how many tasks; every worker waits for that record before it starts
a task. The record is written in the connector's turn, so it is never attributed to task configs that are being written.
Tasks that keep running, with the same configuration or with a larger share, are not fenced
(:mod:`worker.stores.config.generations`).

Crash points: a leader that is killed between fencing and the record leaves no record, so the next leader fences again;
nothing starts in between. If a worker is killed, or slow, while the config topic has a task's larger share and the task
still runs with the smaller one, its process can only write records of that task. Whoever starts the task next fences it
by the same transactional id and reads what it has committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Request, Requests, Steps
from worker.herder.settings import WorkerSettings
from worker.membership.membership import Membership
from worker.messages import messages
from worker.stores.config.store import ConfigStore, ConnectorEntry
from worker.unit import Unit

__all__ = ["Fencing", "producers_to_fence"]

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 16.0


def producers_to_fence(recorded: int | None, tasks: int, unfenced: frozenset[int] | None) -> Sequence[int]:
    """Return the former tasks whose producers may still write, given their ``recorded`` number and the new number
    ``tasks``.

    Tasks that are not in ``unfenced`` keep running and write no records of other tasks. A single task that remains the
    only one is fenced by its own new producer.
    """
    if recorded is None or (recorded == 1 and tasks == 1):
        return ()
    return [task for task in range(recorded) if unfenced is None or task in unfenced]


class Fencing:
    """Decides which tasks may start, and has the producers of former tasks fenced. Used only in the herder's thread.

    A connector that ``is_sink`` does not know to be a sink may be a source; fencing one without producers does no harm.
    """

    def __init__(
        self,
        worker: WorkerSettings,
        configs: ConfigStore,
        membership: Membership,
        leadership: Leadership,
        inquiries: Inquiries,
        inbox: Inbox,
        changes: ChangeQueue,
        is_sink: Callable[[str], bool],
    ) -> None:
        self._worker_props = dict(worker.props)
        self._configs = configs
        self._membership = membership
        self._leadership = leadership
        self._inquiries = inquiries
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._changes = changes
        self._leader = worker.leader
        self._is_sink = is_sink
        self._enabled = worker.cluster is not None and worker.cluster.exactly_once
        self._asked: set[str] = set()
        self._rounds: dict[str, Request[None]] = {}
        self._fencing: dict[str, Request[None]] = {}
        leadership.when_lost(self._end)

    def may_start(self, unit: Unit) -> bool:
        """Return whether a unit may start. If not, its fencing is under way, and the configs change when it is done."""
        name = unit.connector
        if not (self._enabled and unit.is_task and self._configs.pending_fencing(name)) or self._is_sink(name):
            return True
        if name not in self._asked:
            self._asked.add(name)
            self._requests.start(lambda _: self._have_fenced(name))
        return False

    def former_fenced(self, name: str) -> Future[None]:
        """Return a future that completes when no former task of a stopped connector can commit any more."""
        request: Request[None] = Request()
        if self._enabled:
            self._requests.run(request, self.fence(request, name))
        else:
            request.set_result(None)
        return request

    def fence(self, request: Request[None], name: str) -> Steps[None]:
        """As the leader, fence the former producers of a connector, unless that has been done."""
        yield from self._leadership.lead(request)
        entry = self._configs.connectors().get(name)
        if entry is None or not self._configs.pending_fencing(name):
            return
        fenced = self._rounds.get(name)
        if fenced is None:
            fenced = self._rounds[name] = Request()
            fenced.add_done_callback(lambda _: self._rounds.pop(name))
            self._requests.run(fenced, self._round(fenced, name, entry))
        yield fenced

    # -- as a worker that is about to start tasks --------------------------------------------------------------------

    def _have_fenced(self, name: str) -> Steps[None]:
        wait = _RETRY_SECONDS
        while name in self._configs.connectors() and self._configs.pending_fencing(name):
            fenced = self._fenced_by_leader(name)
            if fenced is None:
                wait = _RETRY_SECONDS
                yield self._inbox.pause(wait)
                continue
            try:
                yield fenced
                break
            except Exception as error:
                logger.warning(
                    "The former tasks of connector %s could not be fenced, so its new tasks wait: %s", name, error
                )
            # Each attempt of the leader is a process.
            yield self._inbox.pause(wait)
            wait = min(wait * 2, _LONGEST_RETRY_SECONDS)
        self._asked.discard(name)

    def _fenced_by_leader(self, name: str) -> Future[None] | None:
        url = self._membership.leader_url
        if self._membership.is_leader:
            return self.former_fenced(name)
        return self._leader.fence(url, name, self._configs.session_key()) if self._leader and url else None

    # -- as the leader -----------------------------------------------------------------------------------------------

    def _round(self, fenced: Request[None], name: str, entry: ConnectorEntry) -> Steps[None]:
        tasks = entry.task_configs
        recorded, unfenced = self._configs.fenced_tasks(name), self._configs.unfenced_tasks(name)
        producers = producers_to_fence(recorded, len(tasks), unfenced)
        if producers:
            inquiry = messages.FenceProducers(dict(entry.config), self._worker_props, list(producers))
            self._fencing[name] = fenced
            try:
                yield from self._inquiries.ask(inquiry, messages.Fenced)
            finally:
                del self._fencing[name]
        fenced.enter(f"recording that the former tasks of connector {name} are fenced")
        yield from self._changes.next_turn(name, fenced)
        now = self._configs.connectors().get(name)
        if now is None or now.task_configs != tasks:
            raise ConnectError(f"The tasks of connector {name} were changed while its former tasks were fenced")
        yield self._configs.put_fenced_tasks(name, len(tasks))

    def _end(self) -> None:
        """Cancel all fencing: the tasks now running may be those for which the next leader has fenced."""
        for name, fenced in list(self._fencing.items()):
            fenced.break_off(
                ConnectError(f"This worker lost the lead of the cluster while it fenced connector {name}. Try again")
            )

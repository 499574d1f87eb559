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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeAlias

from connect.errors import ConnectError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.inbox import Inbox, Request
from worker.herder.inquiries import Inquiries
from worker.herder.settings import WorkerSettings
from worker.membership.membership import Membership
from worker.stores.config.store import ConfigStore
from worker.supervisor.messages import messages
from worker.unit import Unit

__all__ = ["Fencing", "producers_to_fence"]

logger = logging.getLogger(__name__)

TaskConfigs: TypeAlias = tuple[Mapping[str, str], ...]

_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 16.0


def producers_to_fence(recorded: int | None, tasks: int, unfenced: frozenset[int] | None) -> Sequence[int]:
    """The former tasks whose producers may still write, given their ``recorded`` number and the new number ``tasks``.

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
        self._changes = changes
        self._leader = worker.leader
        self._is_sink = is_sink
        self._enabled = worker.cluster is not None and worker.cluster.exactly_once
        self._asked: set[str] = set()
        self._rounds: dict[str, list[Request[None]]] = {}
        self._fencing: dict[str, Request[None]] = {}
        leadership.when_lost(self._end)

    def may_start(self, unit: Unit) -> bool:
        """Whether a unit may start. If not, its fencing is under way, and the configs change when it is done."""
        name = unit.connector
        if not (self._enabled and unit.is_task and self._configs.pending_fencing(name)) or self._is_sink(name):
            return True
        if name not in self._asked:
            self._asked.add(name)
            self._ask(name)
        return False

    def former_fenced(self, name: str) -> Future[None]:
        """Return a future that completes when no former task of a stopped connector can commit any more."""
        fenced: Request[None] = Request()
        if not self._enabled:
            fenced.set_result(None)
            return fenced
        try:
            self.fence(fenced, name)
        except ConnectError as error:
            # Another worker has become the leader.
            fenced.set_exception(error)
        return fenced

    def fence(self, request: Request[None], name: str) -> None:
        """As the leader, fence the former producers of a connector, unless that has been done."""
        self._leadership.as_leader(request, lambda: self._fence(request, name))

    # -- as a worker that is about to start tasks --------------------------------------------------------------------

    def _ask(self, name: str, wait: float = _RETRY) -> None:
        if name not in self._configs.connectors() or not self._configs.pending_fencing(name):
            self._asked.discard(name)
            return
        fenced: Future[None]
        url = self._membership.leader_url
        if self._membership.is_leader:
            fenced = self.former_fenced(name)
        elif self._leader is not None and url is not None:
            fenced = self._leader.fence(url, name, self._configs.session_key())
        else:
            self._inbox.after(_RETRY, lambda: self._ask(name))
            return
        fenced.add_done_callback(lambda done: self._inbox.post(lambda: self._answered(name, done, wait)))

    def _answered(self, name: str, done: Future[None], wait: float) -> None:
        if (error := done.exception()) is not None:
            logger.warning(
                "The former tasks of connector %s could not be fenced, so its new tasks wait: %s", name, error
            )
            # Each attempt of the leader is a process.
            self._inbox.after(wait, lambda: self._ask(name, min(wait * 2, _LONGEST_RETRY)))
        else:
            self._asked.discard(name)

    # -- as the leader -----------------------------------------------------------------------------------------------

    def _fence(self, request: Request[None], name: str) -> None:
        entry = self._configs.connectors().get(name)
        if entry is None or not self._configs.pending_fencing(name):
            request.set_result(None)
            return
        waiting = self._rounds.setdefault(name, [])
        waiting.append(request)
        if len(waiting) > 1:
            return
        tasks = entry.task_configs
        recorded, unfenced = self._configs.fenced_tasks(name), self._configs.unfenced_tasks(name)
        producers = producers_to_fence(recorded, len(tasks), unfenced)
        if not producers:
            self._record(name, tasks)
            return
        fenced: Request[None] = Request()
        self._fencing[name] = fenced
        fenced.add_done_callback(lambda _: self._fenced(name, tasks, fenced))
        inquiry = messages.FenceProducers(dict(entry.config), self._worker_props, list(producers))
        self._inquiries.answer(inquiry, fenced, lambda _: fenced.set_result(None))

    def _fenced(self, name: str, tasks: TaskConfigs, fenced: Request[None]) -> None:
        del self._fencing[name]
        if (error := fenced.exception()) is not None:
            self._round_over(name, error)
        else:
            self._record(name, tasks)

    def _end(self) -> None:
        """Cancel all fencing: the tasks now running may be those for which the next leader has fenced."""
        for name, fenced in list(self._fencing.items()):
            fenced.break_off(
                ConnectError(f"This worker lost the lead of the cluster while it fenced connector {name}. Try again")
            )

    def _record(self, name: str, tasks: TaskConfigs) -> None:
        recorded: Request[None] = Request()
        recorded.add_done_callback(lambda done: self._inbox.post(lambda: self._round_over(name, done.exception())))
        recorded.enter(f"recording that the former tasks of connector {name} are fenced")

        def write() -> None:
            entry = self._configs.connectors().get(name)
            if entry is None or entry.task_configs != tasks:
                raise ConnectError(f"The tasks of connector {name} were changed while its former tasks were fenced")
            recorded.follow(self._configs.put_fenced_tasks(name, len(tasks)))

        self._changes.take_next(name, recorded, write)

    def _round_over(self, name: str, error: BaseException | None) -> None:
        for request in self._rounds.pop(name, []):
            if error is None:
                request.set_result(None)
            else:
                request.set_exception(error)

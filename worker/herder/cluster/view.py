"""Requests about the cluster as this worker sees it: the leader, who runs what, and the last rebalances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from connect.errors import NotFoundError
from worker.errors import NotAssignedError, NotLeaderError
from worker.herder.cluster.rebalancing import Rebalancing, Round
from worker.herder.cluster.standing import Standing, Trouble
from worker.herder.requests import Requests, answered
from worker.membership.membership import Membership
from worker.stores.status.store import State, Status, StatusStore
from worker.unit import Unit

__all__ = ["ClusterView", "cluster_document"]

Document: TypeAlias = dict[str, Any]


class ClusterView:
    """Describes the cluster and drains workers. Methods may be called from any thread."""

    def __init__(
        self,
        requests: Requests,
        worker_id: str,
        membership: Membership,
        statuses: StatusStore,
        rebalancing: Rebalancing,
        standing: Standing,
        troubles: Callable[[], list[Trouble]],
        *,
        distributed: bool,
    ) -> None:
        self._requests = requests
        self._worker_id = worker_id
        self._membership = membership
        self._statuses = statuses
        self._rebalancing = rebalancing
        self._standing = standing
        self._troubles = troubles
        self._distributed = distributed

    @answered
    def drain(self, worker_id: str, *, draining: bool) -> None:
        """Drain a worker: its work goes to the others and it gets no new work; or end that.

        Draining lasts until the worker is restarted. Another worker fails this with
        :class:`~worker.errors.NotAssignedError` or :class:`~worker.errors.NotLeaderError`; an unknown one fails it with
        :class:`~connect.errors.NotFoundError`.
        """
        self._check_at(worker_id)
        self._membership.drain(draining=draining)

    @answered
    def at(self, worker_id: str) -> None:
        """Fail like :meth:`drain` unless this is the given worker."""
        self._check_at(worker_id)

    def _check_at(self, worker_id: str) -> None:
        if worker_id == self._worker_id:
            return
        if not self._membership.is_leader:
            raise NotLeaderError("Only the leader of the cluster knows every worker.", self._membership.leader_url)
        urls = {urlsplit(url).netloc: url for url in self._membership.members}
        if worker_id not in urls:
            known = ", ".join(sorted({self._worker_id, *urls}))
            raise NotFoundError(f"There is no worker {worker_id!r} in this cluster. Its workers are {known}.")
        raise NotAssignedError("Only that worker itself can do this.", urls[worker_id])

    @answered
    def view(self) -> Document:
        """Return the cluster as this worker sees it now."""
        members = self._membership.members
        return {
            "worker_id": self._worker_id,
            "mode": "distributed" if self._distributed else "standalone",
            "leader_url": self._membership.leader_url,
            "is_leader": self._membership.is_leader,
            "generation": self._membership.generation if self._distributed else None,
            "workers": cluster_document(
                self._worker_id,
                self._membership.leader_url,
                members,
                self._standing.shown(self._statuses.statuses()),
                self._membership.draining,
            ),
            "troubles": [trouble.document() for trouble in self._troubles()],
            "complete": bool(members) or not self._distributed,
            "rebalances": [_round(item) for item in self._rebalancing.rounds],
        }


def cluster_document(
    worker_id: str,
    leader_url: str | None,
    members: Iterable[str],
    statuses: Mapping[Unit, Status],
    draining: Iterable[str] = (),
) -> list[Document]:
    """Return every known worker, whether from the leader's last round or from statuses, and the units it runs.

    ``draining`` has the URLs of the workers that are being drained.
    """
    drained = {urlsplit(url).netloc for url in draining}
    urls = {urlsplit(url).netloc: url for url in members}
    if leader_url is not None:
        urls.setdefault(urlsplit(leader_url).netloc, leader_url)
    running = {unit: status for unit, status in statuses.items() if status.worker_id and _is_there(status)}
    names = {worker_id, *urls, *(status.worker_id for status in running.values())}
    leader = urlsplit(leader_url).netloc if leader_url is not None else None
    return [
        _worker(name, urls.get(name), running, leads=name == leader, draining=name in drained) for name in sorted(names)
    ]


def _worker(name: str, url: str | None, running: Mapping[Unit, Status], *, leads: bool, draining: bool) -> Document:
    units = sorted(unit for unit, status in running.items() if status.worker_id == name)
    return {
        "worker_id": name,
        "url": url,
        "leads": leads,
        "draining": draining,
        "connectors": [unit.connector for unit in units if not unit.is_task],
        "tasks": [{"connector": unit.connector, "task": unit.task} for unit in units if unit.is_task],
        "failed": sum(running[unit].state is State.FAILED for unit in units),
    }


def _is_there(status: Status) -> bool:
    return status.state not in (State.UNASSIGNED, State.STOPPED)


def _round(item: Round) -> Document:
    return {
        "at": datetime.fromtimestamp(item.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "generation": item.generation,
        "leader_url": item.leader_url,
        "kept": item.held,
        "given_up": item.revoked,
    }

"""A cluster of real ``sluice distributed`` processes, whose tasks show where they run.

Its connectors are those of ``tests/cluster/plugins``: each task holds a lock on its own file as long as its thread or
process lives, so that two processes that run the same task are detected at any moment.
"""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import requests

from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.processes import child_processes, descendants, runs
from worker.embedded.ports import HOST

__all__ = ["LONG_SESSIONS", "SHORT_SESSIONS", "WATCHED_PLUGINS", "Cluster", "ClusterWorker"]

SHORT_SESSIONS: Final = {"session_timeout_ms": "3000", "heartbeat_interval_ms": "500"}
"""Properties of workers that are to be killed, frozen or cut off: others take over when their session is over."""
LONG_SESSIONS: Final = {"session_timeout_ms": "60000"}
"""Properties of workers that nobody kills: a machine that stalls for some seconds ends no session."""

WATCHED_PLUGINS: Final = Path(__file__).parents[2] / "cluster" / "plugins"
_PATIENCE = 90.0
_SHOWN = 5
_TAIL = 25
_RUNS = re.compile(r"process (\d+) runs (\S+)\|task-(\d+) ")
_TAKEN = re.compile(r"FLOCK .*:(\d+) 0 EOF")


class ClusterWorker(DistributedWorker):
    """One worker. It listens on the same address each time it is started."""

    def __init__(self, folder: Path, bootstrap: str, **props: str) -> None:
        self.address = f"{HOST}:{own_port()}"
        super().__init__(folder, bootstrap, **{"listeners": f"http://{self.address}", **props})

    def url(self) -> str:
        """The URL of the REST API."""
        return f"http://{self.address}/"

    @property
    def lives(self) -> bool:
        """Whether its process is running."""
        return self._process is not None and self._process.poll() is None

    def answers(self) -> bool:
        """Whether the REST API answers."""
        try:
            return self.get("health", 10.0).status_code == 200
        except requests.RequestException:
            return False


class Cluster:
    """The workers of one group; stopped or killed workers may be started again.

    ``bootstrap`` has the brokers, or returns them for the number of a worker. ``folder`` has a unique name: the group
    and its topics are named after it.
    """

    def __init__(
        self, folder: Path, bootstrap: str | Callable[[int], str], workers: int = 3, **props: str | Callable[[int], str]
    ) -> None:
        self.folder = folder
        self.watched = folder / "watched"
        self.watched.mkdir(parents=True)
        group = {f"{kind}_storage_topic": f"{folder.name}-{kind}" for kind in ("config", "offset", "status")}
        group |= {"group_id": folder.name, "plugin_path": str(WATCHED_PLUGINS)}
        self.workers = [
            ClusterWorker(
                folder / f"worker-{number}",
                bootstrap if isinstance(bootstrap, str) else bootstrap(number),
                **group | {key: value if isinstance(value, str) else value(number) for key, value in props.items()},
            )
            for number in range(workers)
        ]
        self._frozen: set[ClusterWorker] = set()
        self._next = itertools.count()
        self.expected: dict[str, int] = {}
        self._unwatched: set[str] = set()

    # -- workers -------------------------------------------------------------------------------------------------------

    def start(self, environ: Mapping[str, str] | None = None) -> Cluster:
        """Start the workers that are not running, and wait until they answer."""
        for worker in self.workers:
            if not worker.lives:
                worker.start(environ)
        for worker in self.workers:
            wait_until(f"{worker.folder.name} answers", worker.answers, _PATIENCE)
        return self

    @property
    def live(self) -> list[ClusterWorker]:
        """The workers whose processes are running and not frozen."""
        return [worker for worker in self.workers if worker.lives and worker not in self._frozen]

    def leader(self) -> ClusterWorker:
        """The leader, according to the logs; if the leader has ended, its successor."""
        return wait_until("a live worker leads", self._leader, _PATIENCE)

    def _leader(self) -> ClusterWorker | None:
        leaders = [re.findall(r"Generation (\d+): (\S+) leads", worker.log())[-1:] for worker in self.live]
        _, url = max(itertools.chain.from_iterable(leaders), key=lambda item: int(item[0]), default=("", ""))
        return next((worker for worker in self.live if worker.url() == url), None)

    def followers(self) -> list[ClusterWorker]:
        """The live workers that do not lead."""
        leader = self.leader()
        return [worker for worker in self.live if worker is not leader]

    def freeze(self, worker: ClusterWorker) -> None:
        """Freeze the process of a worker, but not those of its tasks."""
        worker.signal(signal.SIGSTOP)
        self._frozen.add(worker)

    def thaw(self, worker: ClusterWorker) -> None:
        """Let a frozen worker continue."""
        worker.signal(signal.SIGCONT)
        self._frozen.discard(worker)

    def close(self) -> None:
        """Stop everything that is running."""
        for worker in list(self._frozen):
            self.thaw(worker)
        with ThreadPoolExecutor(len(self.workers)) as pool:
            list(pool.map(lambda worker: worker.close(), self.workers))

    # -- REST ----------------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, worker: ClusterWorker | None = None) -> Any:
        """Send a request to a worker, by default to each in turn; retry while the cluster rebalances (409), or a worker
        is out of it (503)."""

        def answered() -> list[requests.Response]:
            response = self.request(method, path, body, worker)
            if response.status_code in (409, 503):
                return []
            assert response.ok, f"{method} {path}: {response.status_code} {response.text}"
            return [response]

        response = wait_until(f"{method} {path} is answered", answered, _PATIENCE)[0]
        return response.json() if response.content else None

    def request(
        self, method: str, path: str, body: Any = None, worker: ClusterWorker | None = None
    ) -> requests.Response:
        """Send one request to a worker, and return any answer."""
        asked = worker or self.live[next(self._next) % len(self.live)]
        return requests.request(method, asked.url() + path, json=body, timeout=_PATIENCE)

    def create(self, name: str, plugin: str, tasks: int = 1, *, watched: bool = True, **config: str) -> None:
        """Create or change a connector; its tasks show where they run, unless it is not ``watched``."""
        self.ask("PUT", f"connectors/{name}/config", self.config(plugin, tasks, **config))
        self.expected[name] = tasks
        if not watched:
            self._unwatched.add(name)

    def config(self, plugin: str, tasks: int = 1, **config: str) -> dict[str, str]:
        """The configuration of a watched connector."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        return {
            "connector.class": plugin,
            "tasks.max": str(tasks),
            "watch.folder": str(self.watched),
            "consumer.override.auto.offset.reset": "earliest",
            **given,
        }

    def create_all(self, connectors: Mapping[str, tuple[str, int, dict[str, str]]], threads: int = 4) -> None:
        """Create connectors, several at a time."""
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda item: self.create(item[0], item[1][0], item[1][1], **item[1][2]), connectors.items()))

    def delete(self, name: str) -> None:
        """Delete a connector."""
        self.ask("DELETE", f"connectors/{name}")
        del self.expected[name]

    def delete_all(self) -> None:
        """Delete every connector. Asks the leader, since others may list connectors that were just deleted."""
        leader = self.leader()
        for name in self.ask("GET", "connectors", worker=leader):
            self.ask("DELETE", f"connectors/{name}", worker=leader)
        self.expected.clear()

    # -- where tasks run -----------------------------------------------------------------------------------------------

    def wait_until_all_run(self, seconds: float = _PATIENCE) -> None:
        """Wait until every worker reports that all expected tasks run on live workers, and each task has one
        process."""
        seen: list[str] = []

        def wrong() -> bool:
            seen[:] = self._wrong()
            return bool(seen)

        try:
            wait_until("all tasks run", lambda: not wrong(), seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}: {'; '.join(seen)}{self.tails()}") from None
        self.check_overlaps()

    def wait_until_balanced(self, seconds: float = _PATIENCE) -> None:
        """Wait until all tasks run, and the live workers' numbers of tasks differ by at most one."""

        def balanced() -> bool:
            counts = [len(units) for units in self.placed().values()]
            return max(counts) - min(counts) <= 1

        wait_until("the tasks are divided equally", balanced, seconds)
        self.wait_until_all_run(seconds)

    def check_overlaps(self) -> None:
        """Check that no task was ever run by two processes at once."""
        overlaps = self.watched / "overlaps"
        assert not overlaps.exists(), overlaps.read_text() + self.tails()

    def holders(self) -> dict[str, int]:
        """The process that runs each task, by ``NAME-TASK``."""
        taken = set(_TAKEN.findall(Path("/proc/locks").read_text()))
        locks = [lock for lock in self.watched.glob("*.lock") if str(lock.stat().st_ino) in taken]
        found = {lock.stem: int(lock.read_text() or 0) for lock in locks}
        return {unit: pid for unit, pid in found.items() if pid and runs(pid)}

    def placed(self) -> dict[ClusterWorker, set[str]]:
        """The tasks on each live worker, found by their processes."""
        return self._placed(self.holders())

    def starts(self) -> list[str]:
        """Every start of a task so far, as ``NAME-TASK PID TIME``."""
        file = self.watched / "starts"
        return file.read_text().splitlines() if file.exists() else []

    def tails(self) -> str:
        """The end of each worker's log, without its progress lines."""
        logs = {
            worker: [line for line in worker.log().splitlines() if "(worker.metrics.progress)" not in line]
            for worker in self.workers
        }
        return "".join(
            f"\n--- {worker.folder.name} {worker.address}\n" + "\n".join(lines[-_TAIL:])
            for worker, lines in logs.items()
        )

    def _placed(self, holders: Mapping[str, int]) -> dict[ClusterWorker, set[str]]:
        children = child_processes()
        below = {worker: set(descendants(worker.pid, children)) for worker in self.live}
        return {worker: {unit for unit, pid in holders.items() if pid in pids} for worker, pids in below.items()}

    def _wrong(self) -> list[str]:
        """Some of what is wrong. Workers are asked only once all processes are right: answers cost them CPU time."""
        states = itertools.chain.from_iterable(map(self._wrong_states, self.live))
        processes = list(itertools.islice(self._wrong_processes(), _SHOWN))
        return processes or list(itertools.islice(states, _SHOWN))

    def _wrong_states(self, worker: ClusterWorker) -> Iterable[str]:
        response = self.request("GET", "connectors?expand=status", worker=worker)
        if not response.ok:
            yield f"{worker.folder.name} answers {response.status_code} {response.text}"
            return
        statuses = {name: item["status"] for name, item in response.json().items() if "status" in item}
        where = {live.address for live in self.live}
        for name in self.expected.keys() ^ statuses.keys():
            yield f"{worker.folder.name} has {name}: {name in statuses}"
        for name in self.expected.keys() & statuses.keys():
            status = statuses[name]
            if len(status["tasks"]) != self.expected[name]:
                yield f"{name} has {len(status['tasks'])} tasks at {worker.folder.name}"
            for unit in (status["connector"], *status["tasks"]):
                if unit["state"] != "RUNNING" or unit["worker_id"] not in where:
                    yield f"{name} at {worker.folder.name}: {unit}"

    def _wrong_processes(self) -> Iterable[str]:
        watched = {name: tasks for name, tasks in self.expected.items() if name not in self._unwatched}
        wanted = {f"{name}-{task}" for name, tasks in watched.items() for task in range(tasks)}
        holders = self.holders()
        for unit in wanted - set().union(*self._placed(holders).values()):
            yield f"{unit} has no process on a live worker"
        for unit, pid in holders.items():
            if unit not in wanted:
                yield f"{unit} is run by {pid} still"

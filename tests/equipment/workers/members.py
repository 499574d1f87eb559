"""Scripted members of a ``connect`` group, with a dictionary as the store of configurations."""

from __future__ import annotations

import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from worker.config.worker import DistributedConfig
from worker.membership.events import Event, Joined, Lost, Refused
from worker.membership.group import GroupMember
from worker.membership.membership import GroupMembership
from worker.processes.clock import Clock, Moment
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

__all__ = ["Configs", "MemberWorker", "distributed_props", "main"]


class Configs:
    """The configurations, which all members see at once."""

    def __init__(self, tasks: dict[str, int] | None = None) -> None:
        self._snapshot = ConfigSnapshot(0, dict(tasks or {}))

    def put(self, name: str, tasks: int) -> int:
        """Change a connector's tasks; returns the offset."""
        self._snapshot = ConfigSnapshot(self._snapshot.offset + 1, {**self._snapshot.tasks, name: tasks})
        return self._snapshot.offset

    def snapshot(self, _offset: int) -> Future[ConfigSnapshot]:
        """All connectors and tasks."""
        answer: Future[ConfigSnapshot] = Future()
        answer.set_result(self._snapshot)
        return answer


def distributed_props(bootstrap: str, group: str, **keys: str) -> dict[str, str]:
    """A distributed worker's properties with short timeouts; keys have underscores instead of dots."""
    props = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": "0",
    }
    return props | {key.replace("_", "."): value for key, value in keys.items()}


class MemberWorker:
    """A member, and the part of a herder that answers it, in its own thread.

    ``running`` has the units of this member, and changes as the herder's would. ``sessions`` has the reported ends of
    its session, and ``clock`` is its clock.
    """

    def __init__(
        self,
        url: str,
        props: dict[str, str],
        configs: Configs,
        seen: Callable[[Event], None] = lambda _: None,
        clock: Clock = Moment.now,
    ) -> None:
        self.url = url
        self.group = props["group.id"]
        self.instance = props.get("group.instance.id", "")
        self.configs = configs
        self.running: frozenset[Unit] = frozenset()
        self.events: list[Event] = []
        self.sessions: list[Moment] = []
        self.hold_revoked = threading.Event()
        self._seen = seen
        self._inbox: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        config = DistributedConfig.parse(props)
        self.membership = GroupMembership(
            url, lambda tell, snapshot: GroupMember(config, props, url, tell, snapshot, self.sessions.append, clock)
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> MemberWorker:
        """Join the group."""
        self._thread.start()
        self.membership.start(self._inbox.put, self.configs.snapshot)
        return self

    def close(self) -> None:
        """Stop everything and leave."""
        self.running = frozenset()
        self.membership.close()
        self._inbox.put(None)
        if self._thread.ident is not None:
            self._thread.join(10)

    @property
    def joined(self) -> list[Joined]:
        """The rounds that it joined."""
        return [event for event in self.events if isinstance(event, Joined)]

    @property
    def lost(self) -> list[Lost]:
        """The times that it lost the group."""
        return [event for event in self.events if isinstance(event, Lost)]

    @property
    def refused(self) -> list[Refused]:
        """The refusals that it got."""
        return [event for event in self.events if isinstance(event, Refused)]

    def _run(self) -> None:
        while (event := self._inbox.get()) is not None:
            self._take(event)
            self.events.append(event)
            self._seen(event)

    def _take(self, event: Event) -> None:
        match event:
            case Joined():
                self.membership.happened(event)
                self.running = event.held | event.revoked
                if event.revoked and not self.hold_revoked.is_set():
                    self.release(event)
            case Lost(stopped, _):
                self.membership.happened(event)
                self.running = frozenset()
                stopped.set_result(None)
            case Refused():
                self.running = frozenset()

    def release(self, event: Joined) -> None:
        """Stop the revoked units."""
        self.running -= event.revoked
        self.membership.rejoin("what was revoked is stopped")


def main(url: str, bootstrap: str, group: str, connector: str, tasks: int, *keys: str) -> None:
    """Run a member as a process. It prints a line whenever its units have changed: the time and the units."""
    numbers = itertools.count()

    def seen(event: Event) -> None:
        units = ",".join(str(unit.task) for unit in sorted(worker.running))
        print(f"{next(numbers)} {time.monotonic()} {type(event).__name__} {units}", flush=True)

    props = distributed_props(bootstrap, group, **dict(key.split("=") for key in keys))
    worker = MemberWorker(url, props, Configs({connector: tasks}), seen)
    worker.start()
    sys.stdin.read()
    worker.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), *sys.argv[6:])

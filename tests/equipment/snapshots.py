"""An artificial snapshot of a worker, and the scrape of it."""

from __future__ import annotations

from equipment.scrapes import Scrape
from worker.metrics.catalogue import Dialect
from worker.metrics.families import families
from worker.metrics.lifetimes import Life, LifetimesSeen, Starts
from worker.metrics.processes import ProcessUse
from worker.metrics.snapshot import PUT, ClientSeen, ConnectorSeen, GroupSeen, Snapshot, TaskSeen
from worker.metrics.text import exposition
from worker.stores.status.store import Hang, State, Status
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

__all__ = ["HERE", "SINK", "scraped", "snapshot", "use"]

HERE = "here:8083"
GROUP = GroupSeen(
    client_id="connect-here:8083",
    leader_url="http://here:8083/",
    protocol="SESSIONED",
    epoch=4,
    is_rebalancing=False,
    failed_joins=1,
    rebalances=2,
    rebalance_seconds=3.0,
    longest_rebalance=2.5,
    since_rebalance=60.0,
    heartbeats=7,
    since_heartbeat=0.5,
    connection={"connection-count": 2.0, "outgoing-byte-rate": 12.5},
)
SINK = TaskSeen(
    values={
        "sink-record-read-total": 10.0,
        "sink-record-read-rate": 2.5,
        "sink-record-lag": 3.0,
        "partition-count": 2.0,
        "total-record-errors": 4.0,
        "load-time-ms-total": 1500.0,
        "made-up-by-a-plugin": 1.0,
    },
    histograms={PUT: (1.25, 1, 2, 3, 0, 0, 1)},
    clients=(ClientSeen("consumer", "connector-consumer-a-0", {"incoming-byte-total": 99.0}, (("t", 3, 17),)),),
    at=1000.0,
)


def snapshot(name: str = "a", state: State = State.RUNNING, seen: TaskSeen = SINK) -> Snapshot:
    """The snapshot of a worker with a sink of one task, and a source whose task has not reported anything."""
    statuses = {
        Unit(name): Status(state, HERE, 1, version="1.0"),
        Unit(name, 0): Status(state, HERE, 1, restarts=2),
        Unit("s"): Status(State.STOPPED, HERE, 1),
        Unit("f", 1): Status(State.FAILED, HERE, 1, hanging=Hang("poll", "", "", "")),
    }
    began = Life(0.0, pid=43)
    lives = {Unit(name): began, Unit(name, 0): Life(0.0, Phase.RUNNING, 100.0, running=75.0, paused=25.0, pid=42)}
    lifetimes = LifetimesSeen(Starts(3, 1), Starts(), lives, {}, 100.0)
    connectors = {name: ConnectorSeen("FileStreamSink", "sink"), "s": ConnectorSeen("X", "unknown")}
    return Snapshot(1000.0, HERE, True, connectors, statuses, {Unit(name, 0): seen}, lifetimes, GROUP, 5, 900.0)


def use(pid: int) -> ProcessUse | None:
    return None if pid == 43 else ProcessUse(1.5, 4096, 7, 0.0)


def scraped(seen: Snapshot, dialect: Dialect = Dialect.STRIMZI, *, openmetrics: bool = False) -> Scrape:
    found = families(seen, dialect, 1002.0, use, 1, "0.1")
    return Scrape(exposition(found, openmetrics=openmetrics).decode(), openmetrics=openmetrics)

"""Turns a snapshot of a worker into families of metrics. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from connect.internals.kafka.clients.statistics import PRODUCER
from worker.metrics.catalogue import ERRORS, TASK_METRICS, Dialect, Group
from worker.metrics.debezium import debezium_name
from worker.metrics.mirrors import client_name, mirror_name
from worker.metrics.processes import ProcessUse, Use, units_of_processes, with_jvms
from worker.metrics.snapshot import (
    BOUNDS,
    COMMIT,
    LATENCY,
    POLL,
    PUT,
    ClientSeen,
    ConnectorSeen,
    GroupSeen,
    OwnSeries,
    OwnValue,
    Snapshot,
    TaskSeen,
)
from worker.metrics.text import Family, Histogram, Kind, Labels
from worker.stores.status.store import State, Status
from worker.unit import Unit

__all__ = ["API_VERSION", "families"]

API_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose metrics these are."""

_MS: Final = 1000.0
_HISTOGRAMS: Final = {
    POLL: ("sluice_poll_seconds", "How long calls of poll took."),
    PUT: ("sluice_put_seconds", "How long calls of put took, or loads."),
    COMMIT: ("sluice_offset_commit_seconds", "How long commits of offsets took."),
    LATENCY: (
        "sluice_record_latency_seconds",
        "From the timestamp of the first record of a batch until Kafka has acknowledged the batch, or it is put.",
    ),
}
_LOADS: Final = {
    "load-total": ("sluice_loads_total", 1.0, "Loads of a Spark sink that were completed."),
    "load-failure-total": ("sluice_load_failures_total", 1.0, "Loads of a Spark sink that failed."),
    "load-time-ms-total": ("sluice_load_seconds_total", 1 / _MS, "Seconds that completed loads took."),
    "load-row-total": ("sluice_load_rows_total", 1.0, "Rows that loads have written."),
    "load-byte-total": ("sluice_load_bytes_total", 1.0, "Bytes that loads have written."),
    "load-file-total": ("sluice_load_files_total", 1.0, "Files that loads have written."),
}
_AMOUNTS: Final = (
    ("source-remaining-", "sluice_source_remaining", "What the source has left to read."),
    ("source-total-", "sluice_source_total", "What the source has to read in all, done and left."),
)
_MOST_UNITS: Final = 8
_TASK_STATES: Final = {
    "running": State.RUNNING,
    "paused": State.PAUSED,
    "failed": State.FAILED,
    "unassigned": State.UNASSIGNED,
    "restarting": State.RESTARTING,
}
_SHARED: Final = (("connector", ""), ("task", "shared"))
_LIVE: Final = (State.RUNNING, State.PAUSED)
_FETCHED: Final = frozenset(("records-consumed-total", "bytes-consumed-total", "records-lag-max"))
_COORDINATED: Final = frozenset(("assigned-partitions", "rebalance-total"))
_APPS: Final = ("kafka_connect_app", "kafka_connect_app_info")
"""The names that the facts about a worker have with version 1 of the JMX exporter and with earlier ones."""

_CLIENT_HELP: Final = "A statistic of the task's Kafka client, as Java's client has it."


class _Collected:
    """The families collected so far, in the order in which their names first appeared."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.families: dict[str, Family] = {}
        self._once: set[tuple[str, Labels]] = set()

    def add(self, name: str, labels: Labels, value: float, text: str, kind: Kind | None = None) -> None:
        """Add a series with exactly this name; it is a counter if the name ends like one, unless ``kind`` is given."""
        family = self.families.get(name)
        if family is None:
            by_name = Kind.COUNTER if name.endswith("_total") else Kind.GAUGE
            family = self.families[name] = Family(name, kind or by_name, text)
        family.series.append((labels, value))

    def is_first(self, name: str, labels: Labels) -> bool:
        """Return whether this is called for the first time for a series that plugins might add twice."""
        before = len(self._once)
        self._once.add((name, labels))
        return len(self._once) > before

    def of(self, group: Group, attribute: str, labels: Labels, value: float, text: str) -> None:
        """Add a Kafka Connect series, with and without ``_total`` for Confluent's two versions.

        These are gauges, because an OpenMetrics counter cannot have both names.
        """
        name = group.named(self.dialect, attribute)
        if self.dialect is Dialect.STRIMZI:
            self.add(name, labels, value, text)
            return
        self.add(name, labels, value, text, Kind.GAUGE)
        if name.endswith("_total"):
            self.add(name.removesuffix("_total"), labels, value, text, Kind.GAUGE)

    def fact(self, group: Group, attribute: str, labels: Labels, value: str, text: str) -> None:
        """Add a series whose value is text, as a label."""
        label = attribute.replace("-", "_")
        if self.dialect is Dialect.STRIMZI:
            self.add(group.named(self.dialect, attribute), (*labels, (label, value)), 1.0, text)
            return
        self.add(group.value[1], (*labels, (label, value)), 1.0, "What is known in words.")
        # So the Strimzi Metrics Reporter has it, which has the other names of this dialect, too.
        self.add(f"{group.named(self.dialect, attribute)}_info", (*labels, (label, value)), 1.0, text)

    def histogram(self, name: str, labels: Labels, histogram: Histogram, text: str) -> None:
        """Add a histogram."""
        family = self.families.get(name)
        if family is None:
            family = self.families[name] = Family(name, Kind.HISTOGRAM, text)
        family.histograms.append((labels, histogram))

    @property
    def client_label(self) -> str:
        """The label for a client id."""
        return "clientid" if self.dialect is Dialect.STRIMZI else "client_id"


def families(seen: Snapshot, dialect: Dialect, now: float, use: Use, own: int, version: str) -> Iterable[Family]:
    """Return every series of a worker.

    ``use`` returns what a process uses, ``own`` is the worker's own process, ``version`` Sluice's version.
    """
    to = _Collected(dialect)
    _worker(to, seen, now, version)
    _connectors(to, seen)
    for unit in sorted(unit for unit in seen.statuses if unit.is_task):
        task = seen.tasks.get(unit, TaskSeen())
        _task(to, seen, unit, task if seen.statuses[unit].state in _LIVE else task.counts(), now)
    _processes(to, seen, with_jvms(use, seen.lives.jvms), own)
    return to.families.values()


def _worker(to: _Collected, seen: Snapshot, now: float, version: str) -> None:
    labels: Labels = () if to.dialect is Dialect.STRIMZI else (("connector", "aggregate"),)
    counts = {"connector": len(seen.connectors), "task": sum(unit.is_task for unit in seen.statuses)}
    starts = {"connector": seen.lives.connectors, "task": seen.lives.tasks}
    for kind, made in starts.items():
        to.of(Group.WORKER, f"{kind}-count", labels, counts[kind], f"The {kind}s of this worker, in whatever state.")
        attempts = made.succeeded + made.failed
        for attribute, value, text in (
            ("attempts-total", attempts, "were begun and have come to an end"),
            ("success-total", made.succeeded, "succeeded"),
            ("failure-total", made.failed, "failed"),
        ):
            to.of(Group.WORKER, f"{kind}-startup-{attribute}", labels, value, f"Starts of {kind}s that {text}.")
        for attribute, part in (("success", made.succeeded), ("failure", made.failed)):
            share = part / attempts if attempts else 0.0
            to.of(Group.WORKER, f"{kind}-startup-{attribute}-percentage", labels, share, "Their share, from 0 to 1.")
    if seen.group is not None:
        _group(to, seen.group)
    client = ((to.client_label, seen.group.client_id if seen.group is not None else "connect"),)
    _app(to, client, seen.started, version)
    to.add("sluice_build_info", (("version", version),), 1.0, "The version of Sluice.")
    to.add("sluice_worker_leader", (), float(seen.is_leader), "1 in the worker that leads its cluster.")
    to.add("sluice_snapshot_age_seconds", (), max(0.0, now - seen.at), "How old these values are.")
    to.add("sluice_herder_inbox", (), seen.inbox, "Requests and notices that wait for the herder.")


def _app(to: _Collected, client: Labels, started: float, version: str) -> None:
    """Add what Java's ``app-info`` has: template variables of dashboards list workers by it."""
    facts = (
        ("version", API_VERSION, "The version of Kafka Connect."),
        ("commit_id", f"sluice-{version}", "The version of Sluice."),
        ("start_time_ms", str(round(started * _MS)), "When the worker started, in ms since 1970."),
    )
    if to.dialect is Dialect.STRIMZI:
        for fact, known, text in facts[:2]:
            to.add(f"kafka_connect_{fact}", (*client, (fact, known)), 1.0, text)
        to.add("kafka_connect_start_time_seconds", client, started, "When the worker started, in seconds since 1970.")
    for name in ("kafka_connect_app_info",) if to.dialect is Dialect.STRIMZI else _APPS:
        for fact, known, _ in facts:
            to.add(name, (("client_id", client[0][1]), (fact, known)), 1.0, "The versions and the start.")


def _group(to: _Collected, group: GroupSeen) -> None:
    mean = group.rebalance_seconds / group.rebalances * _MS if group.rebalances else 0.0
    for attribute, value, text in (
        ("completed-rebalances-total", group.rebalances, "Rebalances that were completed."),
        ("epoch", group.epoch, "The generation that this worker is in."),
        ("rebalancing", group.is_rebalancing, "1 while this worker waits for a rebalance."),
        ("rebalance-avg-time-ms", mean, "Milliseconds that a rebalance took, the mean since the start."),
        ("rebalance-max-time-ms", group.longest_rebalance * _MS, "Milliseconds that the longest rebalance took."),
    ):
        to.of(Group.REBALANCE, attribute, (), value, text)
    if group.since_rebalance is not None:
        since = group.since_rebalance
        to.of(Group.REBALANCE, "time-since-last-rebalance-ms", (), since * _MS, "Milliseconds since the last one.")
    is_member = group.leader_url is not None
    to.add("sluice_worker_member", (), float(is_member), "1 while this worker is in its cluster; without it, it rests.")
    to.fact(Group.REBALANCE, "leader-name", (), group.leader_url or "", "Where the leader is.")
    to.fact(Group.REBALANCE, "connect-protocol", (), group.protocol, "How the work is divided.")
    client = ((to.client_label, group.client_id),)
    counts = {
        "heartbeat-total": (group.heartbeats, "Heartbeats that the broker has answered."),
        "join-total": (group.rebalances, "Times that this worker has joined its group."),
        "sync-total": (group.rebalances, "Assignments that this worker was given."),
        "rebalance-total": (group.rebalances, "Rebalances that were completed."),
        "failed-rebalance-total": (group.failed_joins, "Attempts to join that failed."),
    }
    for attribute, (count, text) in counts.items():
        to.of(Group.COORDINATOR, attribute, client, count, text)
    for attribute, passed in (
        ("last-heartbeat-seconds-ago", group.since_heartbeat),
        ("last-rebalance-seconds-ago", group.since_rebalance),
    ):
        if passed is not None:
            to.of(Group.COORDINATOR, attribute, client, passed, "Seconds since the last one.")
    for attribute, value in group.connection.items():
        to.of(Group.CONNECT, attribute, client, value, "A statistic of the connections for the group.")
    to.of(Group.CONNECT, "failed-authentication-total", client, 0, "Always 0: a worker that is refused ends.")
    connections = group.connection.get("connection-count", 0.0)
    to.of(Group.ADMIN, "connection-count", client, connections, "Connections of the client for the group.")


def _connectors(to: _Collected, seen: Snapshot) -> None:
    states: dict[str, Counter[State]] = {}
    for unit, status in seen.statuses.items():
        if unit.is_task:
            states.setdefault(unit.connector, Counter())[status.state] += 1
    for name, counts in sorted(states.items()):
        labels = (("connector", name),)
        to.of(Group.WORKER, "connector-total-task-count", labels, counts.total(), "Tasks of the connector here.")
        for word, state in _TASK_STATES.items():
            to.of(Group.WORKER, f"connector-{word}-task-count", labels, counts[state], f"Those that are {word}.")
        to.of(Group.WORKER, "connector-destroyed-task-count", labels, 0, "Always 0: such a task has no status.")
    if seen.group is not None:
        client = ((to.client_label, seen.group.client_id),)
        to.of(Group.COORDINATOR, "assigned-connectors", client, len(seen.connectors), "Connectors of this worker.")
        tasks = sum(unit.is_task for unit in seen.statuses)
        to.of(Group.COORDINATOR, "assigned-tasks", client, tasks, "Tasks of this worker.")
    for name, connector in sorted(seen.connectors.items()):
        _connector(to, name, connector, seen.statuses[Unit(name)])
    for unit, status in sorted(seen.statuses.items()):
        to.add("sluice_restarts", _of(unit), status.restarts, "Restarts by restart.policy that count now.")
        to.add("sluice_hanging", _of(unit), float(status.hanging is not None), "1 while a call of the plugin hangs.")
        failures = seen.lives.failures.get(unit, 0)
        to.add("sluice_failures_total", _of(unit), failures, "How often it has failed on this worker.")


def _connector(to: _Collected, name: str, connector: ConnectorSeen, status: Status) -> None:
    labels = (("connector", name),)
    facts = (
        ("status", status.state.value.lower(), "The state of the connector."),
        ("connector-class", connector.class_name, "The class in its configuration."),
        ("connector-type", connector.type, "Whether it is a source or a sink."),
        ("connector-version", status.version or "undefined", "Its version."),
    )
    for attribute, value, text in facts:
        to.fact(Group.CONNECTOR, attribute, labels, value, text)
    every = tuple((attribute.replace("-", "_"), value) for attribute, value, _ in facts)
    to.add("kafka_connect_connector_info", (*labels, *every), 1.0, "What is known of the connector in words.")


def _task(to: _Collected, seen: Snapshot, unit: Unit, task: TaskSeen, now: float) -> None:
    labels = _of(unit)
    to.fact(Group.TASK, "status", labels, seen.statuses[unit].state.value.lower(), "The state of the task.")
    for name, value in _task_values(seen, unit, task):
        metric = TASK_METRICS[name]
        to.of(metric.group, name, labels, value, metric.help)
    if (lag := task.values.get("sink-record-lag")) is not None:
        to.add("sluice_sink_record_lag", labels, lag, "Records that the sink is behind, in all its partitions.")
    for prefix, metric_name, text in _AMOUNTS:
        for name, value in _by_unit(task.values, prefix):
            to.add(metric_name, (*labels, ("unit", name)), value, text)
    for attribute, (name, factor, text) in _LOADS.items():
        if attribute in task.values:
            to.add(name, labels, task.values[attribute] * factor, text)
    for key, kept in task.histograms.items():
        name, text = _HISTOGRAMS[key]
        to.histogram(name, labels, Histogram(kept[0], BOUNDS[key], kept[1:]), text)
    for series, own in task.own.items():
        _own(to, labels, series, own)
    if task.at:
        to.add("sluice_task_report_age_seconds", labels, max(0.0, now - task.at), "Seconds since it has reported.")
    for client in task.clients:
        _client(to, client)


def _own(to: _Collected, labels: Labels, series: OwnSeries, own: OwnValue) -> None:
    """Add a plugin's measurement, and also under MirrorMaker's name if it has one."""
    name, pairs = series
    own_labels = (*labels, *zip(pairs[::2], pairs[1::2], strict=True))
    to.add(f"sluice_plugin_{name}", own_labels, own.value, own.help)
    if (of_mirror := mirror_name(series)) is not None:
        java, places = of_mirror
        if to.is_first(java.name, places):
            to.add(java.name, places, java.value(own.value), own.help, Kind.GAUGE)
    if (of_debezium := debezium_name(series)) is not None:
        attribute, places = of_debezium
        if to.is_first(attribute.name, places):
            to.add(attribute.name, places, attribute.value(own.value), own.help, Kind.GAUGE)
    if (of_client := client_name(series)) is not None:
        metric, places = of_client
        if to.is_first(metric.attribute, places):
            (_, client), *place = places
            to.of(metric.group, metric.attribute, ((to.client_label, client), *place), own.value, _CLIENT_HELP)


def _task_values(seen: Snapshot, unit: Unit, task: TaskSeen) -> Iterator[tuple[str, float]]:
    if "partition-count" in task.values:
        yield from (("offset-commit-skip-total", 0.0), ("offset-commit-skip-rate", 0.0))
    for name in ERRORS:
        yield name, task.values.get(name, 0.0)
    for name, value in task.values.items():
        if name in TASK_METRICS and name not in ERRORS:
            yield name, value
    if (shares := seen.lives.shares(unit)) is not None:
        yield "running-ratio", shares.running
        yield "pause-ratio", shares.paused


def _by_unit(values: Mapping[str, float], prefix: str) -> list[tuple[str, float]]:
    found = sorted((name, value) for name, value in values.items() if name.startswith(prefix))
    return [(name.removeprefix(prefix), value) for name, value in found[:_MOST_UNITS]]


def _client(to: _Collected, client: ClientSeen) -> None:
    labels = ((to.client_label, client.client_id),)
    usual = Group.PRODUCER if client.kind == PRODUCER else Group.CONSUMER
    for name, value in client.values.items():
        group = Group.FETCH if name in _FETCHED else Group.CONSUMER_COORDINATOR if name in _COORDINATED else usual
        to.of(group, name, labels, value, _CLIENT_HELP)
    for topic, partition, lag in client.lags:
        place = (*labels, ("topic", topic), ("partition", str(partition)))
        to.of(Group.FETCH, "records-lag", place, lag, "Records that the consumer is behind in a partition.")


def _processes(to: _Collected, seen: Snapshot, use: Use, own: int) -> None:
    """Add the worker's process, under the names of every Prometheus client, and the processes of its units."""
    if (found := use(own)) is not None:
        to.add("process_cpu_seconds_total", (), found.cpu_seconds, "CPU seconds of the worker's own process.")
        to.add("process_resident_memory_bytes", (), found.resident_bytes, "Memory of the worker's own process.")
        to.add("process_open_fds", (), found.open_files, "Open files of the worker's own process.")
    for labels, used in _used_by_units(seen, use):
        to.add("sluice_process_cpu_seconds_total", labels, used.cpu_seconds, "CPU seconds of the unit's process.")
        to.add("sluice_process_resident_memory_bytes", labels, used.resident_bytes, "Memory of its process.")
        to.add("sluice_process_open_fds", labels, used.open_files, "Open files of the unit's process.")


def _used_by_units(seen: Snapshot, use: Use) -> Iterator[tuple[Labels, ProcessUse]]:
    """Add the resources used by each unit with its own process, and the total for those in shared processes."""
    shared: list[ProcessUse] = []
    for pid, units in units_of_processes(seen.lives.processes()).items():
        if (found := use(pid)) is not None:
            if len(units) == 1:
                yield _of(units[0]), found
            else:
                shared.append(found)
    if shared:
        cpu, memory = sum(each.cpu_seconds for each in shared), sum(each.resident_bytes for each in shared)
        yield _SHARED, ProcessUse(cpu, memory, sum(each.open_files for each in shared), 0.0)


def _of(unit: Unit) -> Labels:
    """Return the labels of a task. A connector itself is its task ``connector``."""
    return (("connector", unit.connector), ("task", str(unit.task) if unit.is_task else "connector"))

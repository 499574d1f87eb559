"""From a snapshot to the text that is scraped, read by prometheus-client."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equipment.growth import assert_grows_evenly
from equipment.snapshots import HERE, SINK, scraped, snapshot, use
from worker.metrics.catalogue import Dialect
from worker.metrics.families import families
from worker.metrics.snapshot import BOUNDS, PUT, OwnSeries, OwnValue, Snapshot
from worker.metrics.text import exposition
from worker.stores.status.store import State, Status
from worker.unit import Unit

ODD = 'we"ird\\na\nme,=é'


@pytest.mark.parametrize("openmetrics", [False, True], ids=["plain", "openmetrics"])
@pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
def test_every_series_can_be_read_and_is_there_once(dialect: Dialect, openmetrics: bool) -> None:
    scrape = scraped(snapshot(ODD), dialect, openmetrics=openmetrics)
    named = [(name, tuple(sorted(labels.items()))) for name, labels, _ in scrape.series]
    assert len(named) == len(set(named)) > 100
    assert {"connector": ODD, "task": "0"} in [labels for _, labels, _ in scrape.series]
    assert all(family.documentation for family in scrape.families)


def test_names_are_those_of_the_widespread_dashboards() -> None:
    scrape = scraped(snapshot())
    task = {"connector": "a", "task": "0"}
    assert scrape.named("kafka_connect_connector_status", connector="a", status="running") == [1]
    prefix = "kafka_connect_connector_connector"
    assert scrape.named(f"{prefix}_class", connector="a", connector_class="FileStreamSink") == [1]
    assert scrape.named(f"{prefix}_version", connector="s", connector_version="undefined") == [1]
    assert scrape.named("kafka_connect_sink_task_sink_record_read_total", **task) == [10]
    assert scrape.named("kafka_connect_connector_task_running_ratio", **task) == [0.75]
    assert scrape.named("kafka_connect_worker_connector_startup_attempts_total") == [4]
    assert scrape.named("kafka_connect_worker_connector_startup_failure_percentage") == [0.25]
    assert scrape.named("kafka_connect_worker_connector_running_task_count", connector="a") == [1]
    assert scrape.named("kafka_connect_worker_rebalance_rebalance_avg_time_ms") == [1500]
    assert scrape.named("kafka_connect_coordinator_assigned_tasks", clientid="connect-here:8083") == [2]
    assert scrape.named("kafka_consumer_fetch_manager_records_lag", topic="t", partition="3") == [17]
    assert scrape.named("kafka_consumer_incoming_byte_total", clientid="connector-consumer-a-0") == [99]


def test_every_connector_and_task_has_one_state() -> None:
    scrape = scraped(snapshot())
    assert scrape.labels("kafka_connect_connector_status") == [
        {"connector": "a", "status": "running"},
        {"connector": "s", "status": "stopped"},
    ]
    assert scrape.labels("kafka_connect_connector_task_status") == [
        {"connector": "a", "task": "0", "status": "running"},
        {"connector": "f", "task": "1", "status": "failed"},
    ]


def test_confluents_names_stand_alone_and_with_both_endings() -> None:
    scrape = scraped(snapshot(), Dialect.CONFLUENT)
    for ending in ("", "_total"):
        name = f"kafka_connect_sink_task_metrics_sink_record_read{ending}"
        assert scrape.named(name, connector="a", task="0") == [10]
    assert scrape.named("kafka_connect_connector_metrics", connector="a", status="running") == [1]
    assert scrape.named("kafka_connect_connect_worker_metrics_connector_count", connector="aggregate") == [2]
    assert scrape.named("kafka_connect_connector_status") == []


def test_errors_are_zero_from_the_start_and_a_task_adds_no_names_of_its_own() -> None:
    scrape = scraped(snapshot())
    assert scrape.named("kafka_connect_task_error_total_record_errors", connector="a") == [4]
    assert scrape.named("kafka_connect_task_error_total_record_errors", connector="f", task="1") == [0]
    assert not [name for name, *_ in scrape.series if "made_up" in name]


def test_what_a_plugin_measures_is_shown_with_its_labels() -> None:
    seen = snapshot()
    own = {
        ("mirror_lag_records", ("topic", ODD, "partition", "3")): OwnValue(17, "Records behind."),
        ("mirror_records_total", ()): OwnValue(5, "Records."),
    }
    scrape = scraped(replace(seen, tasks={**seen.tasks, Unit("a", 0): replace(SINK, own=own)}))
    assert scrape.labels("sluice_plugin_mirror_lag_records") == [
        {"connector": "a", "task": "0", "topic": ODD, "partition": "3"}
    ]
    assert scrape.named("sluice_plugin_mirror_records_total", connector="a") == [5]


def test_the_facts_that_dashboards_choose_workers_by() -> None:
    facts = [{"version": "4.3.1"}, {"commit_id": "sluice-0.1"}, {"start_time_ms": "900000"}]
    expected = [{"client_id": "connect-here:8083", **fact} for fact in facts]
    for dialect in Dialect:
        assert scraped(snapshot(), dialect).labels("kafka_connect_app_info") == expected
    assert scraped(snapshot(), Dialect.CONFLUENT).labels("kafka_connect_app") == expected
    assert scraped(snapshot()).named("kafka_connect_start_time_seconds", clientid="connect-here:8083") == [900]


def test_a_connector_is_described_by_one_series_or_by_one_for_each_fact() -> None:
    stopped = {
        "status": "stopped",
        "connector_class": "X",
        "connector_type": "unknown",
        "connector_version": "undefined",
    }
    for dialect in Dialect:
        scrape = scraped(snapshot(), dialect)
        assert scrape.labels("kafka_connect_connector_info", connector="s") == [{"connector": "s", **stopped}]
    scrape = scraped(snapshot(), Dialect.CONFLUENT)
    for fact, value in stopped.items():
        name = f"kafka_connect_connector_metrics_{fact}_info"
        assert scrape.labels(name, connector="s") == [{"connector": "s", fact: value}]
    assert scrape.labels("kafka_connect_connector_task_metrics_status_info") == [
        {"connector": "a", "task": "0", "status": "running"},
        {"connector": "f", "task": "1", "status": "failed"},
    ]


def _measured(name: str, value: float, /, **labels: str) -> tuple[OwnSeries, OwnValue]:
    return (name, tuple(part for pair in labels.items() for part in pair)), OwnValue(value, "A number.")


@pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
def test_mirrors_have_mirrormakers_names(dialect: Dialect) -> None:
    place = {"source": "A", "target": "B", "topic": "A.orders", "partition": "3"}
    of_group = {"source": "A", "target": "B", "group": "g", "topic": "A.orders", "partition": "3"}
    own = dict(
        [
            _measured("mirror_records_total", 5, **place),
            _measured("mirror_record_rate", 0.5, **place),
            _measured("mirror_bytes_total", 70, **place),
            _measured("mirror_byte_rate", 7.5, **place),
            _measured("mirror_record_age_seconds", 0.029, **place),
            _measured("mirror_replication_latency_max_seconds", 1.001, **place),
            _measured("mirror_checkpoint_latency_avg_seconds", 0.25, **of_group),
            _measured("mirror_checkpoint_latency_seconds", 0.25, **place),
            _measured("mirror_lag_records", 9, **place),
        ]
    )
    seen = snapshot()
    twice = {unit: replace(SINK, own=own) for unit in (Unit("a", 0), Unit("f", 1))}
    scrape = scraped(replace(seen, tasks=twice), dialect)
    found = {name: (value, labels) for name, labels, value in scrape.series if name.startswith("kafka_connect_mirror_")}
    source, checkpoint = (f"kafka_connect_mirror_mirror{kind}connector_" for kind in ("source", "checkpoint"))
    assert found == {
        f"{source}record_count": (5, place),
        f"{source}record_rate": (0.5, place),
        f"{source}byte_count": (70, place),
        f"{source}byte_rate": (7.5, place),
        f"{source}record_age_ms": (29, place),
        f"{source}replication_latency_ms_max": (1001, place),
        f"{checkpoint}checkpoint_latency_ms_avg": (250, of_group),
    }
    assert len([name for name, *_ in scrape.series if name in found]) == len(found), "each is there once"


def test_the_consumer_of_a_mirror_has_the_names_of_consumers() -> None:
    client = "A->B|m-0|replication-consumer"
    own = dict(
        [
            _measured("mirror_consumer_records_lag", 9, client_id=client, topic="orders", partition="3"),
            _measured("mirror_consumer_incoming_byte_total", 70, client_id=client),
            _measured("mirror_consumer_made_up", 1, client_id=client),
        ]
    )
    seen = replace(snapshot(), tasks={Unit("a", 0): replace(SINK, own=own)})
    place = {"topic": "orders", "partition": "3"}
    scrape = scraped(seen)
    assert scrape.named("kafka_consumer_fetch_manager_records_lag", clientid=client, **place) == [9]
    assert scrape.named("kafka_consumer_incoming_byte_total", clientid=client) == [70]
    scrape = scraped(seen, Dialect.CONFLUENT)
    assert scrape.named("kafka_consumer_consumer_fetch_manager_metrics_records_lag", client_id=client, **place) == [9]
    assert scrape.named("kafka_consumer_consumer_metrics_incoming_byte", client_id=client) == [70]
    assert not [name for name, *_ in scrape.series if "made_up" in name and not name.startswith("sluice_plugin_")]


def test_a_task_that_does_not_run_has_counts_and_no_rate_or_lag() -> None:
    assert scraped(snapshot()).named("kafka_connect_sink_task_sink_record_read_rate") == [2.5]
    failed = scraped(snapshot(state=State.FAILED))
    assert failed.named("kafka_connect_sink_task_sink_record_read_rate") == []
    assert failed.named("sluice_sink_record_lag", connector="a") == []
    assert failed.named("sluice_load_seconds_total", connector="a") == [1.5]


def test_a_histogram_counts_up_to_each_bound() -> None:
    scrape = scraped(snapshot())
    counts = [scrape.named("sluice_put_seconds_bucket", task="0", le=str(bound)) for bound in BOUNDS[PUT]]
    assert counts == [[1], [3], [6], [6], [6]]
    assert scrape.named("sluice_put_seconds_bucket", le="+Inf") == [7]
    assert (scrape.named("sluice_put_seconds_sum"), scrape.named("sluice_put_seconds_count")) == ([1.25], [7])


def test_what_java_cannot_tell_is_there_too() -> None:
    scrape = scraped(snapshot())
    assert scrape.named("sluice_sink_record_lag", connector="a") == [3]
    assert scrape.named("sluice_load_seconds_total", connector="a") == [1.5]
    assert scrape.named("sluice_restarts", connector="a", task="0") == [2]
    assert scrape.named("sluice_hanging", connector="f", task="1") == [1]
    assert scrape.labels("sluice_process_open_fds") == [{"connector": "a", "task": "0"}], "the other one is gone"
    assert scrape.named("sluice_snapshot_age_seconds") == [2]
    assert scrape.named("sluice_task_report_age_seconds") == [2]


def test_a_worker_that_stands_alone_has_no_group() -> None:
    scrape = scraped(replace(snapshot(), group=None))
    assert not [name for name, *_ in scrape.series if "rebalance" in name or "coordinator" in name]
    assert scrape.named("kafka_connect_version", clientid="connect", version="4.3.1") == [1]


@pytest.mark.growth
def test_the_time_of_a_scrape_grows_with_the_tasks() -> None:
    def made(size: int) -> Snapshot:
        units = [Unit(f"c{number}", 0) for number in range(size)]
        statuses = dict.fromkeys(units, Status(State.RUNNING, HERE, 1))
        return replace(snapshot(), statuses=statuses, tasks=dict.fromkeys(units, SINK), connectors={})

    def scrape(seen: Snapshot) -> None:
        exposition(families(seen, Dialect.STRIMZI, 1002.0, use, 1, "0.1"), openmetrics=True)

    assert_grows_evenly(scrape, made, 500)


def test_change_data_capture_has_debeziums_names() -> None:
    streaming = {"plugin": "postgres", "name": "shop", "context": "streaming"}
    snapshot_of = {"plugin": "postgres", "name": "shop", "context": "snapshot"}
    own = dict(
        [
            _measured("cdc_lag_seconds", 1.25, **streaming),
            _measured("cdc_since_last_event_seconds", -1, **streaming),
            _measured("cdc_events_total", 7, **streaming),
            _measured("cdc_snapshot_remaining_tables", 2, **snapshot_of),
            _measured("cdc_snapshot_rows_total", 40, **snapshot_of, table="public.orders"),
            _measured("cdc_snapshot_rows_total", 41, **snapshot_of),
            # Debezium's own connector, in a JVM.
            _measured("debezium_queue_remaining_capacity", 8192, **streaming),
            _measured("debezium_rows_scanned", 3, **snapshot_of, table="public.items"),
        ]
    )
    seen = replace(snapshot(), tasks={Unit("a", 0): replace(SINK, own=own)})
    scrape = scraped(seen)
    found = [(name, value, labels) for name, labels, value in scrape.series if name.startswith("debezium_metrics_")]
    assert sorted(found) == [
        ("debezium_metrics_MilliSecondsBehindSource", 1250, streaming),
        ("debezium_metrics_MilliSecondsSinceLastEvent", -1, streaming),
        ("debezium_metrics_QueueRemainingCapacity", 8192, streaming),
        ("debezium_metrics_RemainingTableCount", 2, snapshot_of),
        ("debezium_metrics_RowsScanned", 3, {**snapshot_of, "table": "public.items"}),
        ("debezium_metrics_RowsScanned", 40, {**snapshot_of, "table": "public.orders"}),
        ("debezium_metrics_TotalNumberOfEventsSeen", 7, streaming),
    ]

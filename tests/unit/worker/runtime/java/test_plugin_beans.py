"""The MBeans of a Java plugin as measurements of its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any, cast

import pytest

from connect.errors import ConnectError
from connect.measurement import Measurement
from worker.runtime.java.mbeans import MBean
from worker.runtime.java.plugin_beans import PluginBeans, measurement_name

VALUES = {"QueueTotalCapacity": 8192.0}


class Server:
    """MBeans with these names, all of them with the same attributes."""

    def __init__(self, *names: str, values: Mapping[str, float] = VALUES, table: Mapping[str, float] = {}) -> None:
        self._names = names
        self._values = values
        self._table = dict(table)

    def quoted(self, value: str) -> str:
        return value

    def always_quoted(self, value: str) -> str:
        return f'"{value}"'

    def found(self, pattern: str, attributes: Sequence[str] | None = None) -> Iterator[MBean]:
        domain, properties = self._split(pattern.removesuffix(",*"))
        for name in self._names:
            own_domain, own = self._split(name)
            if fnmatchcase(own_domain, domain) and properties.items() <= own.items():
                plain = {key: value.strip('"') for key, value in own.items()}
                yield MBean(name, own_domain, plain, attributes, ("RowsScanned",) if self._table else ())

    def values(self, bean: MBean) -> dict[str, float]:
        if "gone" in bean.properties.values():
            raise ConnectError("InstanceNotFoundException")
        return dict(self._values)

    def table(self, _bean: MBean, _attribute: str) -> dict[str, float]:
        return self._table

    def _split(self, name: str) -> tuple[str, dict[str, str]]:
        domain, _, properties = name.partition(":")
        return domain, dict(each.split("=") for each in properties.split(","))


def measured(server: Server, task: int = 0, **props: str) -> list[tuple[str, float, dict[str, str]]]:
    """What is measured of a task of the connector ``orders``."""
    given = {key.replace("_", "."): value for key, value in props.items()}
    beans = PluginBeans(cast(Any, server), "orders", task, given, nullcontext)
    beans.look()
    found: list[Measurement] = list(beans.measurements())
    return [(each.name, each.value, dict(each.labels)) for each in found]


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("MilliSecondsBehindSource", "milli_seconds_behind_source"),
        ("record-age-ms-max", "record_age_ms_max"),
        ("URLCount", "urlcount"),
        ("95thPercentile", "n_95th_percentile"),
    ],
)
def test_names_are_those_of_measurements(attribute: str, name: str) -> None:
    assert measurement_name(attribute) == name


def test_those_of_debezium_belong_to_the_task_with_their_prefix() -> None:
    server = Server(
        "debezium.postgres:type=connector-metrics,context=streaming,server=shop",
        "debezium.sql_server:type=connector-metrics,context=streaming,server=shop,task=1,database=inventory",
        "debezium.postgres:type=connector-metrics,context=streaming,server=other",
    )
    at = {"plugin": "postgres", "name": "shop", "context": "streaming"}
    assert measured(server, topic_prefix="shop") == [("debezium_queue_total_capacity", 8192.0, at)]
    of_second = {"plugin": "sql_server", "name": "shop", "context": "streaming", "database": "inventory"}
    assert measured(server, 1, topic_prefix="shop") == [("debezium_queue_total_capacity", 8192.0, of_second)]
    assert measured(server) == []


def test_rows_by_table_are_a_measurement_of_each_table() -> None:
    name = "debezium.mysql:type=connector-metrics,context=snapshot,server=shop"
    server = Server(name, values={}, table={"db.items": 3.0})
    at = {"plugin": "mysql", "name": "shop", "context": "snapshot", "table": "db.items"}
    assert measured(server, topic_prefix="shop") == [("debezium_rows_scanned", 3.0, at)]


def test_those_that_name_the_connector_belong_to_the_task_that_they_name() -> None:
    server = Server(
        "com.mongodb:type=sink-task-metrics,connector=orders,task=sink-task-1",
        'acme:type=meter,connector="orders",task=0',
        "kafka.connect:type=plugins,connector=orders,task=0,converter=key",
        "kafka.connect:type=source-task-metrics,connector=orders,task=0",
        "acme:type=meter,connector=others",
    )
    assert measured(server) == [
        ("queue_total_capacity", 8192.0, {"type": "plugins", "converter": "key"}),
        ("queue_total_capacity", 8192.0, {"type": "meter"}),
    ]
    assert measured(server, 1) == [("queue_total_capacity", 8192.0, {"type": "sink-task-metrics"})]


def test_those_of_mirrors_belong_to_the_task_with_their_partition_and_have_the_names_of_other_mirrors() -> None:
    of = "kafka.connect.mirror:type=MirrorSourceConnector,source=a,target=b"
    values = {"record-count": 5.0, "record-age-ms-max": 1500.0, "unknown": 1.0}
    server = Server(f"{of},topic=a.t,partition=0", f"{of},topic=a.t,partition=1", values=values)
    found = measured(server, source_cluster_alias="a", target_cluster_alias="b", task_assigned_partitions="t-1,u-0")
    at = {"source": "a", "target": "b", "topic": "a.t", "partition": "1"}
    assert found == [("mirror_records_total", 5.0, at), ("mirror_record_age_max_seconds", 1.5, at)]


def test_one_that_cannot_be_read_keeps_no_other_from_being_read(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("acme:type=gone,connector=orders", "acme:type=meter,connector=orders")
    assert measured(server) == [("queue_total_capacity", 8192.0, {"type": "meter"})]
    assert "An MBean of the plugin cannot be read, and perhaps others: InstanceNotFoundException" in caplog.text

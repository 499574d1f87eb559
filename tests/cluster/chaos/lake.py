"""A topic that Spark loads into a table, a few records at a time."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds

from cluster.chaos.requests_in_outages import put_config
from cluster.chaos.workload import RESTARTS
from equipment.brokers.topics import create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.cluster import Cluster
from equipment.workers.small_spark import SMALL_SPARK

__all__ = ["Lake"]

_TOPIC: Final = "flights"
_PARTITIONS: Final = 2
_LOADED: Final = 300.0
_IDS: Final = pa.schema([("id", pa.int64())])


class Lake:
    """``records`` records on a topic, and the Spark sink that loads them."""

    def __init__(self, folder: Path, bootstrap: str, cluster: Cluster, records: int) -> None:
        self._store = folder
        self._bootstrap = bootstrap
        self._cluster = cluster
        self._records = records
        self._few = itertools.cycle(("20", "30"))

    def create(self) -> None:
        """Fill the topic, create the connector, and wait until it runs."""
        create_topic(self._bootstrap, _TOPIC, _PARTITIONS)
        for partition in range(_PARTITIONS):
            numbers = range(partition, self._records, _PARTITIONS)
            produce(self._bootstrap, _TOPIC, [json.dumps({"id": number}).encode() for number in numbers], partition)
        self._cluster.create("lake", "Lake", **self._config(next(self._few)))
        self._cluster.wait_until_all_run()

    def reconfigure(self) -> None:
        """Have another number of records loaded at a time."""
        put_config(self._cluster, "lake", self._cluster.config("Lake", **self._config(next(self._few))))

    def wait_for_loads(self, count: int) -> None:
        """Wait until so many loads more are committed."""
        wanted = self._number() + count
        wait_until(f"{count} loads more are committed", lambda: self._number() >= wanted, _LOADED)

    def check(self) -> None:
        """See that whoever reads the table now finds no record twice."""
        doubled = [number for number, count in Counter(self._rows()).items() if count > 1]
        assert not doubled, f"the table has {len(doubled)} records twice: {doubled[:10]}{self._cluster.tails()}"

    def account(self) -> list[str]:
        """Have all the rest loaded, and see that each record is in the table once."""
        on_the_way = len(self._rows())
        self._cluster.create("lake", "Lake", **self._config(str(self._records)))
        try:
            wait_until("all is loaded", lambda: len(self._rows()) >= self._records, _LOADED)
        except AssertionError as error:
            raise AssertionError(f"{error}: {len(self._rows())} of {self._records}{self._cluster.tails()}") from None
        assert sorted(self._rows()) == list(range(self._records))
        return [f"{self._records} records, {on_the_way} of them loaded while processes were killed"]

    def _config(self, at_a_time: str) -> dict[str, str]:
        return {
            "topics": _TOPIC,
            "store_url": str(self._store),
            "flush_size": at_a_time,
            "rotate_interval_ms": "0",
            "key_converter": "ByteArrayConverter",
            "value_converter": "JsonConverter",
            "value_converter_schemas_enable": "false",
            **SMALL_SPARK,
            "spark.master": "local[1]",
            **RESTARTS,
        }

    def _number(self) -> int:
        """How many manifests were made so far."""
        manifests = self._store / "_sluice/lake/manifests"
        return max((int(file.stem) for file in manifests.glob("*.json")), default=0)

    def _rows(self) -> list[int]:
        table = self._store / "topics" / _TOPIC
        if not table.exists():
            return []
        found: list[int] = ds.dataset(table, schema=_IDS).to_table()["id"].to_pylist()
        return found

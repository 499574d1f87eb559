"""Fixtures of the cluster tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.format_session import format_session
from connectors.spark.options.store import StoreOptions
from connectors.spark.sources.jdbc.drivers import jdbc_driver
from connectors.spark.stores.access import store_access
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.workers.cluster import Cluster
from equipment.workers.small_spark import sink_props, spark_java_for


@pytest.fixture(scope="session")
def spark_java() -> Iterator[Mapping[str, str]]:
    """The environment of drivers that are killed one after the other: they share a Java, which can do all that they do.

    It has the jars of both table formats, of S3, of Google Cloud Storage, of Azure and of SQLite, but no settings
    of theirs: those are each driver's own.
    """
    formats = [format_session({"table.format": name}) for name in ("delta", "iceberg")]
    sqlite = jdbc_driver("jdbc:sqlite:/none")
    urls = ("gs://none/lake", "abfss://none@none.dfs.core.windows.net/lake")
    stores = [store_access(StoreOptions.parse({"store.url": url})).lock for url in urls]
    assert sqlite is not None
    locks = [*(lock for each in formats for lock in each.jars), sqlite.jars, *filter(None, stores)]
    locked = [jar for lock in locks for jar in read_lock(lock)]
    jars = [*resolve_jars(locked, home=sluice_home()), *(jar for each in formats for jar in each.own_jars)]
    with spark_java_for(sink_props({"store.url": "s3://none/lake", "spark.jars": ",".join(map(str, jars))})) as java:
        yield java


@pytest.fixture
def mortal(tmp_path: Path, broker_jars: tuple[Path, ...]) -> Iterator[ProxiedBroker]:
    """A broker that may be killed."""
    with ProxiedBroker.running(tmp_path / "broker", broker_jars, 0) as broker:
        yield broker


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory, bootstrap: str) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters on the run's broker that live as long as the tests of one file."""
    made: list[Cluster] = []

    def make(workers: int = 3, **props: str | Callable[[int], str]) -> Cluster:
        folder = tmp_path_factory.mktemp("cluster") / f"cluster-{uuid4().hex[:12]}"
        made.append(Cluster(folder, bootstrap, workers, **props))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def cluster(tmp_path: Path, bootstrap: str) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters on the run's broker for one test."""
    made: list[Cluster] = []

    def make(workers: int = 2, **props: str | Callable[[int], str]) -> Cluster:
        made.append(Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", bootstrap, workers, **props))
        return made[-1]

    yield make
    for each in made:
        each.close()

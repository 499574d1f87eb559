"""A Spark sink whose brokers ask who it is: its Java clients have the same login and rights as all others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from rights import create, every_client, failure, named, names_of

from equipment.brokers.key_stores import PASSWORD
from equipment.brokers.secured import SecuredBroker, User
from equipment.brokers.topics import create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.small_spark import sink_props
from equipment.workers.standalone import StandaloneWorker

parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyspark.sql")

pytestmark = [pytest.mark.thorough, pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.fixture
def user(secured: SecuredBroker) -> User:
    return secured.new_user("SCRAM-SHA-512")


@pytest.fixture
def names(secured: SecuredBroker, user: User) -> Mapping[str, str]:
    """A topic, and all rights that a Spark sink needs on it."""
    found = names_of(f"group-{uuid4().hex[:12]}", WORKER=user.name, PRODUCER=user.name, CONSUMER=user.name)
    secured.allow(named(found, "A sink", "A Spark sink"))
    create_topic(secured.bootstrap, found["TOPIC"])
    return found


@pytest.fixture
def worker(secured: SecuredBroker, user: User, tmp_path: Path) -> Iterator[StandaloneWorker]:
    trust = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(secured.folder / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
    }
    keys = every_client(user.login | trust)
    policy = {"connector.spark.config.override.policy": "All"}
    made = StandaloneWorker(tmp_path / "worker", secured.addresses["SASL_SSL"], **keys, **policy)
    yield made.start()
    made.close()


def test_a_spark_sink_logs_in_and_says_which_right_it_lacks(
    secured: SecuredBroker, worker: StandaloneWorker, names: Mapping[str, str], user: User, tmp_path: Path
) -> None:
    def load(*ids: int) -> None:
        produce(secured.bootstrap, names["TOPIC"], [json.dumps({"id": number}).encode() for number in ids])

    def rows() -> list[int]:
        files = sorted((tmp_path / "lake" / "topics").rglob("[!._]*.parquet"))
        return sorted(number for file in files for number in parquet.read_table(file)["id"].to_pylist())

    load(1, 2)
    config = {
        "connector.class": "SparkSink",
        "topics": names["TOPIC"],
        "poll.interval.ms": "50",
        "rotate.interval.ms": "0",
    }
    create(worker, names["SINK"], {**sink_props({"store.url": str(tmp_path / "lake")}), **config})
    wait_until("the records are in the table", lambda: rows() == [1, 2], 200)
    secured.forbid(acl for acl in named(names, "A sink") if acl.resource == "topic")
    load(3)
    assert f"the right Read on topic {names['TOPIC']}: kafka-acls.sh" in failure(worker, names["SINK"])
    for secret in (user.password, PASSWORD):
        assert secret not in worker.log()

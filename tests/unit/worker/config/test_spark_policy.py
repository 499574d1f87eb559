"""What a connector may say of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.config.errors import keys_of
from connect.config.properties import read_properties
from connect.errors import ConfigError
from connectors.jdbc.sink.config import JdbcSinkConfig
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.sink.config import SparkSinkConfig
from worker.config.spark_policy import TUNING as ALLOWED
from worker.config.spark_policy import refused_spark_keys
from worker.config.worker import WorkerConfig
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.validation import validate
from worker.runtime.log import Redaction

POLICY, ALLOWLIST = (f"connector.spark.config.override.{what}" for what in ("policy", "allowlist"))
WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
SINK = {"name": "c", "connector.class": "SparkSink", "topics": "t", "store.url": "/data/lake"}
TUNING = {
    "spark.app.name": "lake",
    "spark.driver.memory": "2g",
    "spark.executor.memoryOverheadFactor": "0.2",
    "spark.master": "local[4]",
    "spark.memory.fraction": "0.6",
    "spark.network.timeout": "120s",
    "spark.sql.adaptive.enabled": "TRUE",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.shuffle.partitions": "7",
}
LOADING = {
    "spark.jars": "http://example.com/evil.jar",
    "spark.jars.packages": "com.example:evil:1",
    "spark.plugins": "com.example.Evil",
    "spark.extraListeners": "com.example.Evil",
    "spark.driver.extraJavaOptions": "-javaagent:/tmp/evil.jar",
    "spark.driver.extraClassPath": "/tmp",
    "spark.executor.extraClassPath": "/tmp",
    "spark.driver.defaultJavaOptions": "-javaagent:/tmp/evil.jar",
    "spark.pyspark.python": "/tmp/evil",
    "spark.pyspark.driver.python": "/tmp/evil",
    "spark.submit.pyFiles": "/tmp/evil.py",
    "spark.files": "/etc/passwd",
    "spark.archives": "/tmp/evil.zip",
    "spark.serializer": "com.example.Evil",
    "spark.io.compression.codec": "com.example.Evil",
    "spark.sql.extensions": "com.example.Evil",
    "spark.sql.catalog.evil": "com.example.Evil",
    "spark.sql.adaptive.customCostEvaluatorClass": "com.example.Evil",
    "spark.sql.warehouse.dir": "/etc",
    "spark.eventLog.dir": "/etc",
    "spark.local.dir": "/etc",
    "spark.hadoop.fs.file.impl": "com.example.Evil",
    "spark.executorEnv.LD_PRELOAD": "/tmp/evil.so",
    "spark.kubernetes.authenticate.oauthTokenFile": "/etc/token",
    "spark.redaction.regex": "none",
    "spark.driver.bindAddress": "0.0.0.0",
    "spark.remote": "sc://example.com",
}


def refused(worker: dict[str, str], props: dict[str, str]) -> set[str]:
    return {key for error in refused_spark_keys(worker, props) for key in keys_of(error)}


def test_by_default_spark_may_be_tuned_and_nothing_else() -> None:
    assert refused({}, SINK | TUNING | LOADING) == LOADING.keys()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.master", "spark://example.com:7077"),
        ("spark.master", "local-cluster[1,1,1024]"),
        ("spark.master", "yarn"),
        ("spark.master", "localhost"),
        ("spark.driver.memory", "1g -javaagent:/tmp/evil.jar"),
        ("spark.driver.memory", "1g\n-javaagent:/tmp/evil.jar"),
        ("spark.app.name", "${env:SECRET}"),
        ("spark.sql.adaptive.enabled", "${env:SECRET}"),
    ],
)
def test_a_value_has_to_be_of_the_form_that_tuning_needs(key: str, value: str) -> None:
    (error,) = refused_spark_keys({}, {key: value})
    assert str(error) == (
        f"The 'Tuning' policy for Spark does not allow this value of '{key}' in the connector configuration. "
        "Remove it, or allow the key with connector.spark.config.override.allowlist in the worker's file."
    )
    assert refused({ALLOWLIST: f"other, {key}"}, {key: value}) == set()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Tuning", LOADING.keys() - {"spark.jars", "spark.hadoop.fs.file.impl"}),
        ("Allowlist", (LOADING | TUNING).keys() - {"spark.jars", "spark.hadoop.fs.file.impl"}),
        ("None", (LOADING | TUNING).keys()),
        ("All", set()),
    ],
)
def test_a_policy_refuses_what_it_does_not_allow(policy: str, expected: set[str]) -> None:
    worker = {POLICY: policy, ALLOWLIST: "spark.jars, spark.hadoop.*"}
    assert refused(worker, SINK | TUNING | LOADING) == expected


def test_a_policy_that_there_is_not_is_refused_when_the_worker_starts() -> None:
    with pytest.raises(ConfigError, match="String must be one of: Tuning, Allowlist, All, None"):
        WorkerConfig.parse(WORKER | {POLICY: "Some"})
    with pytest.raises(ConfigError, match="String must be one of: All, None, Principal, Allowlist"):
        WorkerConfig.parse(WORKER | {"connector.client.config.override.policy": "Some"})


def test_a_validation_shows_each_key_that_is_refused() -> None:
    infos = validate(messages.ValidateConfig({**SINK, **TUNING, **LOADING}, WORKER), Redaction()).infos
    errors = {item["value"]["name"]: item["value"]["errors"] for item in infos["configs"] if item["value"]["errors"]}
    assert errors.keys() == LOADING.keys()
    assert errors["spark.jars"] == [
        "The 'Tuning' policy for Spark does not allow 'spark.jars' to be set in the connector configuration. "
        "Remove it, or allow the key with connector.spark.config.override.allowlist in the worker's file."
    ]


@pytest.mark.parametrize("where", ["connector", "task"])
def test_a_task_is_not_made_of_a_stored_configuration_that_is_refused(where: str) -> None:
    evil = {"spark.jars": "evil.jar"}
    for worker, allowed in ((WORKER, False), (WORKER | {POLICY: "All"}, True)):
        assembly = Assembly.resolve(worker, SINK | (evil if where == "connector" else {}), Redaction())
        task = SINK | (evil if where == "task" else {})
        if allowed:
            assert assembly.task_config(task).originals.get("spark.jars") == task.get("spark.jars")
        else:
            with pytest.raises(ConfigError, match=r"does not allow 'spark\.jars' to be set"):
                assembly.task_config(task)


def test_the_documentation_names_the_keys_that_tuning_allows() -> None:
    page = (Path(__file__).parents[4] / "docs" / "spark" / "cluster.md").read_text()
    assert [key for key in ALLOWED if f"`{key}`" not in page] == []


@pytest.mark.parametrize("cluster", ["standalone", "yarn", "kubernetes"])
def test_the_examples_for_clusters_set_what_their_worker_allows(cluster: str) -> None:
    folder = Path(__file__).parents[4] / "examples" / "spark-cluster"
    props = read_properties(folder / f"{cluster}.properties")
    assert list(refused_spark_keys(read_properties(folder / "worker.properties"), props)) == []
    SparkSinkConfig.parse(props)


@pytest.mark.parametrize("cluster", ["engine", "kubernetes/engine"])
def test_the_examples_of_an_engine_set_what_their_worker_allows(cluster: str) -> None:
    folder = Path(__file__).parents[4] / "examples" / "spark-cluster"
    props = read_properties(folder / f"{cluster}.properties")
    worker = read_properties((folder / cluster).with_name("worker.properties"))
    assert list(refused_spark_keys(worker, props)) == []
    SparkSinkEngineConfig.parse(props)
    JdbcSinkConfig.parse(props)

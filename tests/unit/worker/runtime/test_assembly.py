"""Where the plugins of a process come from: from the worker's file, whatever a connector's configuration says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from connect.errors import ConfigError, PluginError
from connect.hosts import HostDeniedError, HostsConfig
from connectors.spark.decoding.plugins import chain_properties, executor_plugins
from worker.runtime.assembly import Assembly
from worker.runtime.log import Redaction
from worker.runtime.providers import providers_of

WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "/f"}
pytestmark = pytest.mark.usefixtures("import_path")

TELLING = "import sys\nsys.modules['told'] = sys\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of plugins that tell when they are imported."""
    (tmp_path / "of_a_connector.py").write_text(
        f"{TELLING}from converters.string import StringConverter\nclass Mine(StringConverter): pass\n"
    )
    (tmp_path / "plugins.toml").write_text('[[converter]]\nclass = "of_a_connector.Mine"\n')
    return tmp_path


def test_plugins_do_not_come_from_where_a_connector_says(mine: Path) -> None:
    own = {"plugin.path": str(mine), "plugin.import.allowlist": "*", "value.converter": "of_a_connector.Mine"}
    sys.path.insert(0, str(mine))
    props = Assembly.resolve(WORKER, SINK | own, Redaction()).effective_props()
    assert props.keys().isdisjoint({"plugin.path", "plugin.import.allowlist"})
    with pytest.raises(PluginError, match=r"plugin\.import\.allowlist does not allow it"):
        executor_plugins(chain_properties(props), with_keys=False)
    assert "told" not in sys.modules


def test_an_executor_finds_the_plugins_of_the_worker(mine: Path) -> None:
    own = {"value.converter": "Mine"}
    for where in ({"plugin.path": str(mine)}, {"plugin.import.allowlist": "of_a_connector.*"}):
        name = "Mine" if "plugin.path" in where else "of_a_connector.Mine"
        props = Assembly.resolve(WORKER | where, SINK | own | {"value.converter": name}, Redaction()).effective_props()
        assert type(executor_plugins(chain_properties(props), with_keys=False).converters.value).__name__ == "Mine"


def test_a_config_provider_has_to_be_listed_or_allowed(tmp_path: Path) -> None:
    (tmp_path / "of_a_worker.py").write_text(
        f"{TELLING}from connect.providers import EnvVarConfigProvider\nclass Mine(EnvVarConfigProvider): pass\n"
    )
    sys.path.insert(0, str(tmp_path))
    worker = {"config.providers": "mine", "config.providers.mine.class": "of_a_worker.Mine"}
    with pytest.raises(PluginError, match=r"Class of_a_worker\.Mine is not listed in any plugins\.toml"):
        providers_of(worker, Redaction())
    assert "told" not in sys.modules
    assert providers_of(worker | {"plugin.import.allowlist": "other.*, of_a_worker.Mine"}, Redaction()).keys() == {
        "mine"
    }


def test_hosts_are_those_of_the_worker_s_file() -> None:
    own = {"http.allowed.hosts": "169.254.169.254", "http.denied.hosts": "nothing.example"}
    sink = {"name": "c", "connector.class": "HttpSink", "topics": "t", "http.url": "http://api.example/"}
    worker = WORKER | {"http.denied.hosts": "10.0.0.0/8,bad.example"}
    assembly = Assembly.resolve(worker, sink | own, Redaction())
    for config in (assembly.task_config(sink | own), assembly.connector_config):
        assert isinstance(config, HostsConfig)
        assert config.http_allowed_hosts == ()
        assert config.http_denied_hosts == ("10.0.0.0/8", "bad.example")
    # What is of no concern to a connector is left as it is.
    assert Assembly.resolve(worker, SINK | own, Redaction()).connector_config.originals == SINK | own


JDBC = {"name": "c", "connector.class": "JdbcSource", "mode": "bulk", "connection.url": "jdbc:sqlite:/a.db"}


@pytest.mark.parametrize(
    ("worker", "drivers"),
    [
        ({}, ("sqlite", "postgresql", "mysql", "mariadb")),
        ({"jdbc.allowed.drivers": "sqlite", "jdbc.allowed.options": ""}, ("sqlite",)),
    ],
)
def test_what_connectors_may_do_is_for_the_worker_to_say(worker: dict[str, str], drivers: tuple[str, ...]) -> None:
    own = {"jdbc.allowed.drivers": "oracle", "jdbc.allowed.options": "service"}
    assembly = Assembly.resolve(WORKER | worker, JDBC | own, Redaction())
    for config in (assembly.connector_config, assembly.task_config(JDBC | own)):
        assert (config.jdbc_allowed_drivers, config.jdbc_allowed_options) == (drivers, ())


def test_a_rule_that_was_tightened_fails_a_stored_task() -> None:
    assembly = Assembly.resolve(WORKER | {"jdbc.allowed.drivers": "mysql"}, JDBC, Redaction())
    with pytest.raises(ConfigError, match=r"the driver sqlite\+pysqlite is not allowed on this worker"):
        assembly.task_config(JDBC)


@pytest.mark.parametrize(
    "props",
    [
        JDBC | {"connection.url": "jdbc:postgresql://good.example,10.0.0.7:5432/d"},
        {"name": "c", "connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:mysql://10.0.0.7/d"},
        {
            "name": "c", "connector.class": "SparkJdbcSource", "topic": "t", "query": "SELECT 1",
            "connection.url": "jdbc:mariadb://good.example,10.0.0.7:3306/d",
        },
    ],
)  # fmt: skip
def test_the_hosts_of_databases_obey_the_worker_s_rules(props: dict[str, str]) -> None:
    if props["connector.class"].startswith("Spark"):
        pytest.importorskip("pyspark")
    own = {"http.denied.hosts": "", "http.allowed.hosts": "10.0.0.7"}
    denying = Assembly.resolve(WORKER | {"http.denied.hosts": "10.0.0.0/8"}, props | own, Redaction())
    expected = (
        "connection.url: Connecting to 10.0.0.7 is not allowed: http.denied.hosts in the worker's file denies it."
    )
    with pytest.raises(ConfigError) as refused:
        _ = denying.connector_config
    assert str(refused.value) == expected
    # One that was stored before the rule.
    with pytest.raises(ConfigError) as refused:
        denying.task_config(props | own)
    assert str(refused.value) == expected
    assert Assembly.resolve(WORKER, props, Redaction()).connector_config.originals == props


def test_a_sink_that_spark_has_itself_is_that_of_spark() -> None:
    pytest.importorskip("pyspark")
    props = {"name": "c", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t"}
    props |= {"s3.bucket.name": "b", "format.class": "JsonFormat", "flush.size": "100000"}
    assembly = Assembly.resolve(WORKER, props, Redaction())
    assert assembly.connector_entry.class_name == "connectors.objects.S3SinkConnector"
    assembly = Assembly.resolve(WORKER, props | {"engine": "spark"}, Redaction())
    assert assembly.connector_entry.class_name == "connectors.spark.SparkSinkConnector"
    assert assembly.engine_class is None, "its task is its own engine"
    assert getattr(assembly.connector_config, "flush_size", None) == 100000


def test_the_engine_s_task_has_the_configuration_of_the_connector_s() -> None:
    pytest.importorskip("pyspark")
    props = {"name": "c", "connector.class": "HttpSink", "topics": "t", "http.url": "http://api.example/"}
    worker = WORKER | {"http.denied.hosts": "10.0.0.0/8"}
    assembly = Assembly.resolve(worker, props | {"engine": "spark", "engine.flush.size": "7"}, Redaction())
    assert assembly.engine_class is not None
    assert assembly.engine_class.__name__ == "SparkSinkEngine"
    config = assembly.engine_config(assembly.props | {"flush.size": "8"})
    assert getattr(config, "flush_size", None) == 7
    assert (config.originals["flush.size"], config.originals["http.denied.hosts"]) == ("8", "10.0.0.0/8")
    with pytest.raises(ConfigError, match=r"http\.url"):
        assembly.engine_config({key: value for key, value in assembly.props.items() if key != "http.url"})
    assert Assembly.resolve(worker, props, Redaction()).engine_class is None


AVRO = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://127.0.0.5:1"}


@pytest.mark.parametrize(
    "own", [{}, {"value.converter.http.denied.hosts": "", "value.converter.http.allowed.hosts": "*"}]
)
def test_the_converters_of_a_connector_obey_the_worker_s_rules_for_hosts(own: dict[str, str]) -> None:
    assembly = Assembly.resolve(WORKER | {"http.denied.hosts": "127.0.0.5"}, SINK | AVRO | own, Redaction())
    converter = assembly.converters().value
    with pytest.raises(HostDeniedError, match=r"127\.0\.0\.5 is not allowed: http\.denied\.hosts"):
        converter.to_connect("t", b"\0\0\0\0\1x")
    assert "value.converter.http.denied.hosts" in chain_properties(assembly.effective_props())


def test_the_converters_of_the_worker_go_where_its_file_says() -> None:
    worker = WORKER | AVRO | {"http.denied.hosts": "127.0.0.5"}
    assert "value.converter.http.denied.hosts" not in Assembly.resolve(worker, SINK, Redaction()).effective_props()
    # Unless the connector has a say in where they go.
    mixed = Assembly.resolve(worker, SINK | {"value.converter.proxy.host": "x"}, Redaction()).effective_props()
    assert mixed["value.converter.http.denied.hosts"] == "127.0.0.5"


@pytest.mark.parametrize(
    "store",
    [
        {"store.url": "s3://bucket/x", "s3.endpoint": "http://169.254.169.254"},
        {"store.url": "gs://bucket/x", "gcs.endpoint": "http://10.0.0.7:4443"},
        {"store.url": "http://169.254.169.254", "s3.bucket.name": "bucket"},
        {"store.url": "http://bad.example", "s3.bucket.name": "bucket", "http.denied.hosts": ""},
    ],
)
def test_the_stores_of_the_spark_sink_obey_the_worker_s_rules_for_hosts(store: dict[str, str]) -> None:
    pytest.importorskip("pyspark")
    worker = WORKER | {"http.denied.hosts": "10.0.0.0/8,bad.example"}
    props = {"name": "c", "connector.class": "SparkSink", "topics": "t", **store}
    assembly = Assembly.resolve(worker, props, Redaction())
    with pytest.raises(ConfigError, match=r"Connecting to .* is not allowed"):
        _ = assembly.connector_config

"""Where the plugins of a process come from: from the worker's file, whatever a connector's configuration says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from connect.errors import ConfigError, PluginError
from connect.hosts import HostsConfig
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

"""Extras that are missing are told when a configuration is checked, with the commands that install them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from connect.internals.extras import missing_extra

COMMANDS = "pip install 'sluice-connect[{0}]', or in a clone of Sluice pip install -e '.[{0}]'"

VALIDATE = """
import sys

for module in ("pyspark", "pyarrow", "jsonpath", "sqlalchemy", "psycopg"):
    sys.modules[module] = None  # as if it was not installed

from connect.transforms.filters import JsonPathFilter
from connectors.directory import DirectorySourceConnector
from connectors.jdbc import JdbcSinkConnector, JdbcSourceConnector
from connectors.spark import SparkSinkConnector

for plugin, props in (
    (SparkSinkConnector, {"store.url": "/tmp/store", "topics": "t"}),
    (JdbcSourceConnector, {"connection.url": "jdbc:postgresql://h/d", "mode": "bulk", "topic.prefix": "t"}),
    (JdbcSinkConnector, {"connection.url": "jdbc:postgresql://h/d", "topics": "t"}),
    (JsonPathFilter.Value, {"filter.condition": "$.a", "filter.type": "include"}),
):
    for value in plugin.config_class.validate(props):
        for error in value.errors:
            print(value.name, error, sep=": ")
"""


def test_what_is_installed_is_not_missing() -> None:
    assert missing_extra("spark", "json", "pathlib") is None


def test_what_is_missing_is_named_with_the_commands_that_install_it() -> None:
    told = missing_extra("spark", "json", "no_such_module")
    assert told == f"It needs no_such_module, which this worker does not have: {COMMANDS.format('spark')}"


def test_several_that_are_missing_are_an_enumeration() -> None:
    told = missing_extra("spark", "no_such_one", "no_such_two", "no_such_three")
    assert told is not None
    assert told.startswith("It needs no_such_one, no_such_two and no_such_three, which")


def test_plugins_without_their_extras_are_refused_when_their_configuration_is_checked(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", VALIDATE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spark, source, sink, json_path = done.stdout.splitlines()
    assert spark.startswith("connector.class: The Spark sink cannot run here. It needs pyspark and pyarrow, which")
    assert spark.endswith(COMMANDS.format("spark"))
    for database in (source, sink):
        assert database.startswith("connection.url: Invalid value [hidden]")
        assert "sqlalchemy" in database
        assert "pip install 'sluice-connect[jdbc]'" in database
    assert json_path.endswith(COMMANDS.format("jsonpath"))

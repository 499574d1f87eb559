"""What a connector's system tells of the values that a key can name, while a configuration is being filled in."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from multiprocessing.connection import Pipe
from pathlib import Path

import pytest

from connect.errors import ConnectError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry, load_class
from connectors.jdbc.checks import CheckedSourceConfig
from worker.messages import messages
from worker.runtime.inquiries.choices import find_choices
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Line, Link
from worker.security.redaction import Redaction

WORKER = {"bootstrap.servers": "127.0.0.1:1", "key.converter": "StringConverter", "value.converter": "JsonConverter"}


def ask(inquiry: messages.Inquiry) -> messages.Report:
    ours, theirs = Pipe()
    with ours, theirs:
        return answer(inquiry, Link(Line(theirs)), Redaction())


def found(key: str, **config: str) -> list[str]:
    report = ask(messages.FindChoices(written(config), WORKER, key))
    assert isinstance(report, messages.ChoicesFound), report
    assert report.total == len(report.values)
    return report.values


def refused(key: str, **config: str) -> messages.Refused:
    report = ask(messages.FindChoices(written(config), WORKER, key))
    assert isinstance(report, messages.Refused), report
    return report


def written(config: dict[str, str]) -> dict[str, str]:
    return {"connector.class": "JdbcSource", **{key.replace("__", "."): value for key, value in config.items()}}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with some tables."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database:
        for table in ("orders", "a.b", "with,comma", "cash($)"):
            database.execute(f'CREATE TABLE "{table}" (id INTEGER PRIMARY KEY, changed TIMESTAMP)')
        database.execute("CREATE TABLE other (number INTEGER)")
    return f"jdbc:sqlite:{file}"


def test_tables_are_found_although_the_configuration_is_not_finished(url: str) -> None:
    assert found("table.whitelist", connection__url=url) == ['"a.b"', "cash($)", "orders", "other"]


def test_names_become_expressions_where_the_key_has_such(url: str) -> None:
    assert found("table.include.list", connection__url=url) == [
        "a.b",
        r"cash\(\$\)",
        "orders",
        "other",
        "with.comma",
    ]


def test_what_is_chosen_is_what_is_read(url: str) -> None:
    for key in ("table.whitelist", "table.include.list"):
        config = CheckedSourceConfig.parse(
            {
                "connection.url": url,
                "mode": "bulk",
                "topic.prefix": "x",
                key: ",".join(found(key, connection__url=url)),
            }
        )
        assert list(config.check_system()) == []


def test_columns_are_those_of_the_chosen_tables(url: str) -> None:
    assert found("incrementing.column.name", connection__url=url, table__whitelist="orders") == ["changed", "id"]
    assert found("timestamp.column.name", connection__url=url, table__whitelist="other") == ["number"]


def test_what_is_needed_to_ask_is_named() -> None:
    report = refused("table.whitelist", mode="bulk")
    assert (report.invalid, report.message) == (
        True,
        "Enter a valid connection.url first: it is needed to ask the system.",
    )


def test_a_system_that_refuses_says_why_without_secrets(tmp_path: Path) -> None:
    report = refused("table.whitelist", connection__url=f"jdbc:sqlite:{tmp_path}/none.db", connection__password="pw-5")
    assert not report.invalid
    assert "none.db" in report.message
    assert "pw-5" not in report.message


def test_a_key_without_choices_says_which_have_some() -> None:
    report = refused("topic.prefix", connection__url="jdbc:sqlite:/x")
    assert report.message.startswith("What topic.prefix can name is not known; there are choices for table.whitelist, ")


def test_a_system_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = {
            "connector.class": "PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(silent.getsockname()[1]),
            "database.user": "ann",
            "database.password": "pw-5",
            "database.dbname": "shop",
        }
        with pytest.raises(ConnectError, match=r"did not answer within 0\.2 s"):
            find_choices(messages.FindChoices(asked, WORKER, "table.include.list"), Redaction(), most_seconds=0.2)


def test_the_topics_of_a_sink_are_asked_of_its_brokers() -> None:
    report = refused("topics", connector__class="FileStreamSink", file="/tmp/f")
    assert not report.invalid
    assert report.message.startswith("No broker of 127.0.0.1:1 lists its topics: ")


def test_a_validation_tells_which_keys_have_choices() -> None:
    def told(name: str) -> dict[str, str]:
        report = ask(messages.ValidateConfig({"connector.class": name}, WORKER))
        assert isinstance(report, messages.Validated)
        return report.choices

    assert told("FileStreamSource") == {}
    assert told("JdbcSink") == {"topics": "topics"}
    assert told("MySqlConnector")["database.include.list"] == "databases"


@pytest.mark.parametrize(
    "entry", PluginRegistry.discover([]).entries(PluginKind.CONNECTOR), ids=lambda one: one.class_name
)
def test_every_key_with_choices_is_a_key_of_the_class(entry: PluginEntry) -> None:
    config_class = load_class(entry).config_class
    assert config_class.choices.keys() <= {key.name for key in config_class.definitions()}

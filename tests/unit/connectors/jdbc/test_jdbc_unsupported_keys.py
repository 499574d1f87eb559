"""Configurations of the JDBC connectors for Java: what there is not here is refused or told, never passed over."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connectors.jdbc import JdbcSinkConfig, JdbcSourceConfig

SOURCE = {"connection.url": "jdbc:sqlite:/tmp/a.db", "mode": "bulk", "topic.prefix": "a-"}
SINK = {"connection.url": "jdbc:sqlite:/tmp/a.db"}


@pytest.mark.parametrize("kind", [JdbcSourceConfig, JdbcSinkConfig])
@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("jdbc.credentials.provider.class", "acme.Vault", "set connection.user and connection.password"),
        ("sql.quote.identifiers", "false", "Set quote.sql.identifiers=never"),
        ("table.names.qualify", "FALSE", "remove the key"),
        ("timestamp.initial.ms", "1700000000000", "Set timestamp.initial"),
        ("incrementing.initial", "1000", "PATCH /connectors/NAME/offsets"),
    ],
)
def test_a_key_that_would_change_rows_is_refused(
    kind: type[JdbcSourceConfig | JdbcSinkConfig], key: str, value: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        kind.parse({**SOURCE, key: value})
    assert f"Invalid value {value} for configuration {key}: " in str(refused.value)
    assert remedy in str(refused.value)


def test_keys_that_do_less_are_warned_of() -> None:
    config = JdbcSinkConfig.parse(
        SINK | {"date.timezone": "DB_TIMEZONE", "date.calendar.system": "LEGACY", "trim.sensitive.log": "true"}
    )
    assert list(config.warnings()) == [
        "The key date.timezone has no effect: dates are written as they are, whatever db.timezone is.",
        "The key date.calendar.system has no effect: dates follow the Gregorian calendar, even before 1582.",
        "The key trim.sensitive.log has no effect: the database's message about a refused row is shown, and may "
        "contain values of the row.",
    ]


def test_defaults_of_java_that_are_written_out_say_nothing() -> None:
    written = {
        "jdbc.credentials.provider.class": "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider",
        "sql.quote.identifiers": "true",
        "timestamp.initial.ms": "0",
        "incrementing.initial": "-1",
        "date.timezone": "UTC",
        "date.calendar.system": "PROLEPTIC_GREGORIAN",
        "trim.sensitive.log": "false",
        "max.buffer.size": "0",
        "poll.linger.ms": "5000",
    }
    assert not list(JdbcSourceConfig.parse(SOURCE | written).warnings())


def test_modes_are_taken_in_capitals_too() -> None:
    sink = JdbcSinkConfig.parse(SINK | {"insert.mode": "UPSERT", "pk.mode": "RECORD_KEY"})
    assert (sink.insert_mode, sink.pk_mode) == ("upsert", "record_key")
    assert JdbcSourceConfig.parse(SOURCE | {"numeric.mapping": "BEST_FIT"}).numeric_mapping == "best_fit"

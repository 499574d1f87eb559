"""The options of the JDBC source: rules over several of them, and what is never shown."""

from __future__ import annotations

import pytest

from connect.config import InvalidConfigError
from connect.errors import ConfigError
from connect.kits.sql.column import TableId
from connect.kits.sql.databases.mysql.dialect import MysqlDialect
from connect.kits.sql.databases.postgresql.dialect import PostgresqlDialect
from connect.kits.sql.dialect import Dialect
from connectors.jdbc import JdbcSourceConfig, JdbcSourceConnector, JdbcTaskConfig
from connectors.jdbc.source.tables import TableFilter

BASE = {"connection.url": "jdbc:sqlite:/tmp/a.db", "mode": "bulk", "topic.prefix": "a-"}


def errors(**options: str) -> str:
    props = {**BASE, **{name.replace("_", "."): value for name, value in options.items()}}
    try:
        JdbcSourceConfig.parse(props)
    except InvalidConfigError as several:
        return "\n".join(map(str, several.errors))
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mode": ""}, "mode"),
        ({"mode": "timestamp"}, "mode=timestamp needs timestamp.column.name or timestamp.columns.mapping"),
        ({"table_whitelist": "a", "table_blacklist": "b"}, "Set table.whitelist or table.blacklist, not both"),
        ({"table_whitelist": "a", "table_include_list": "b"}, "not both kinds"),
        ({"table_exclude_list": "b"}, "table.exclude.list takes tables from table.include.list"),
        ({"table_include_list": "("}, "is not a regular expression"),
        ({"query": "SELECT 1", "query_masked": "SELECT 2"}, "Set query or query.masked, not both"),
        ({"query": "DELETE FROM t"}, "query must begin with SELECT or WITH"),
        ({"query": "SELECT 1", "table_whitelist": "a"}, "Do not set table.whitelist with query"),
        ({"query": "SELECT 1", "topic_prefix": ""}, "topic.prefix is the name of the topic"),
        ({"query": "SELECT 1", "key_columns": "auto"}, "A query has no primary key"),
        ({"query": "SELECT 1", "mode": "incrementing"}, "name it in incrementing.column.name"),
        ({"topic_prefix": "a b"}, "Topic names consist of at most 249"),
        ({"db_timezone": "Mars"}, "Mars is not a time zone"),
        ({"timestamp_granularity": "millis"}, "timestamp.granularity"),
        ({"timestamp_columns_mapping": "a"}, "write it as REGEX:COLUMN"),
        ({"connection_url": "jdbc:oracle:thin:@h:1:o"}, "the driver oracle is not allowed on this worker"),
        ({"dialect_name": "Other"}, "Unknown dialect Other; available are mariadb, mysql, postgresql, sqlite"),
        ({"connection_init": "1", "connection_url": "jdbc:mysql://h/d"}, "the option init of mysql+pymysql is not"),
    ],
)
def test_a_rule_that_is_broken_is_told(options: dict[str, str], reason: str) -> None:
    assert reason in errors(**options)


def test_modes_and_drop_in_keys_are_accepted() -> None:
    assert not errors(
        mode="timestamp+incrementing",
        timestamp_column_name="a,b",
        incrementing_column_name="id",
        numeric_mapping="best_fit",
        timestamp_granularity="CONNECT_LOGICAL",
        transaction_isolation_mode="repeatable_read",
        catalog_pattern="a%",
        table_types="TABLE,VIEW",
        query_suffix="",
    )


def test_a_url_is_shown_nowhere() -> None:
    config = JdbcSourceConfig.parse(
        {**BASE, "connection.url": "jdbc:mysql://u:s3cret@h/d", "query.masked": "SELECT 'x'"}
    )
    assert "s3cret" not in repr(config)
    assert "'x'" not in repr(config)
    shown = {
        value.name: value
        for value in JdbcSourceConfig.validate({**BASE, "connection.url": "jdbc:mysql://u:s3 cret@h:a/d"})
    }
    (error,) = shown["connection.url"].errors
    assert "s3" not in error
    assert "host or port is invalid" in error


@pytest.mark.parametrize(
    ("dialect", "tables", "expected"),
    [
        (PostgresqlDialect(), '"db"."public"."a,b","public"."c"', [TableId("a,b", "public"), TableId("c", "public")]),
        (MysqlDialect(), "`db`.`a`,`db`.`b`", [TableId("a", catalog="db"), TableId("b", catalog="db")]),
        (PostgresqlDialect(), "", []),
        (PostgresqlDialect(), '[["a", "s", ""]]', [TableId("a", "s")]),
    ],
)
def test_the_tables_of_a_task_of_java_are_read(dialect: Dialect, tables: str, expected: list[TableId]) -> None:
    assert JdbcTaskConfig.parse({**BASE, "tables": tables}).table_ids(dialect) == expected


@pytest.mark.parametrize("offset", [{}, {"incrementing": "a"}, {"timestamp": 1}])
def test_offsets_without_what_the_mode_needs_are_refused(offset: dict[str, object]) -> None:
    config = JdbcSourceConfig.parse({**BASE, "mode": "incrementing"})
    with pytest.raises(Exception, match=r"incrementing|timestamp"):
        JdbcSourceConnector.alter_offsets(config, {'{"protocol": "1", "table": "t"}': offset})
    with pytest.raises(Exception, match="Partition objects"):
        JdbcSourceConnector.alter_offsets(config, {'{"file": "t"}': {"incrementing": 1}})


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ('"My.Schema"."Order"', TableId("Order", schema="My.Schema")),
        ('"Order"', TableId("Order", schema="My.Schema")),
        ("My.Schema.Order", TableId("Order", schema="My.Schema")),
        ('public . "say ""hi"""', TableId('say "hi"', schema="public")),
        ("`a.b`.`c``d`", TableId("c`d", catalog="a.b")),
    ],
)
def test_a_table_may_be_named_in_quotes(name: str, table: TableId) -> None:
    assert TableFilter(whitelist=[name]).chosen([table, TableId("other")]) == [table]
    assert TableFilter(blacklist=[name]).chosen([table, TableId("other")]) == [TableId("other")]

"""The configuration of the JDBC source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from connect.bulk_source import BulkSourceConfig
from connect.config import HIDDEN, HIGH, LOW, MEDIUM, ConfigRuleError, Long, Password, at_least, non_empty, option
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.internals.extras import missing_extra
from connectors.spark.sources.jdbc.drivers import JdbcDriver, driver_url, jdbc_driver, url_hosts
from connectors.spark.sources.options import RowOptions

__all__ = ["SparkJdbcSourceConfig"]

_DATABASE: Final = "Database"
_NEVER: Final = -1


class SparkJdbcSourceConfig(BulkSourceConfig, RowOptions, HostsConfig):
    """The options of the JDBC source. Keys that begin with ``spark.`` are Spark's own and are passed to its session."""

    connection_url: Password = option(
        importance=HIGH,
        group=_DATABASE,
        doc=(
            "The URL of the database: jdbc:postgresql://HOST:PORT/DATABASE, jdbc:mariadb://..., "
            "jdbc:mysql://..., or jdbc:sqlite:/PATH. Set the user and the password by their own keys."
        ),
    )
    connection_user: str | None = option(default=None, importance=HIGH, group=_DATABASE, doc="The user to log in as.")
    connection_password: Password | None = option(
        default=None, importance=HIGH, group=_DATABASE, doc="The password of the user."
    )
    tables: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        group=_DATABASE,
        doc="The tables to read, by their names in the database, qualified by their schema: public.orders.",
    )
    query: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_DATABASE,
        doc="A query to read instead of tables: a SELECT without ORDER BY.",
    )
    partition_column: str | None = option(
        default=None,
        importance=HIGH,
        validator=non_empty,
        group=_DATABASE,
        doc=(
            "The column to divide a table (or the query's result) by: of numbers, dates or times, ideally "
            "with an index. Its minimum and maximum are queried. Without it, a single Spark task reads "
            "everything."
        ),
    )
    partition_count: int = option(
        default=16,
        importance=MEDIUM,
        validator=at_least(1),
        group=_DATABASE,
        doc="The number of partitions to divide a table into, all of the same width between the bounds.",
    )
    load_max_partitions: int = option(
        default=16,
        importance=LOW,
        validator=at_least(1),
        group=_DATABASE,
        doc=(
            "The maximum number of partitions in one load, after which the offset is committed. As many as "
            "Spark has cores are read at once, each over its own connection."
        ),
    )
    fetch_size: int = option(
        default=10_000,
        importance=LOW,
        validator=at_least(1),
        group=_DATABASE,
        doc="The number of rows that the driver fetches from the database at a time.",
    )
    schema: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        group=_DATABASE,
        doc=(
            "The types of columns that Spark should read differently from its default, as in CREATE TABLE: id "
            "DECIMAL(38, 0), name STRING."
        ),
    )
    snapshot_interval_ms: Long = option(
        default=_NEVER,
        importance=MEDIUM,
        validator=at_least(_NEVER),
        group=_DATABASE,
        doc=(
            "The time from the start of one snapshot to the start of the next, in which all rows are sent "
            "again; -1 means a single snapshot."
        ),
    )

    @property
    def driver(self) -> JdbcDriver:
        """The JDBC driver for the database."""
        driver = jdbc_driver(self.connection_url.value)
        assert driver is not None, "a configuration without a driver is refused"
        return driver

    @property
    def interval(self) -> int | None:
        """``snapshot.interval.ms``; ``None`` means a single snapshot."""
        return None if self.snapshot_interval_ms == _NEVER else self.snapshot_interval_ms

    @property
    def sources(self) -> Mapping[str, str]:
        """What to read, in the form that follows FROM in SQL, by table name; the query has no name."""
        if self.query is not None:
            return {"": f"({self.query}) sluice_query"}
        return {name: self.driver.quoted_table(name) for name in self.tables}

    def check_hosts(self) -> None:
        """Raise :class:`~connect.hosts.HostDeniedError` if a host of the URL, or any of its addresses, is denied.

        The driver resolves the names again.
        """
        try:
            for host in self._hosts:
                self.host_rules.check_all(host)
        except HostDeniedError as error:
            raise HostDeniedError(f"connection.url: {error}") from error

    def hide(self, text: str) -> str:
        """Return the text without the password."""
        password = self.connection_password
        return text if password is None or not password.value else text.replace(password.value, HIDDEN)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"The source of databases cannot run here. {reason}", "connector.class")
        try:
            driver_url(self.connection_url.value)
        except ValueError as error:
            yield ConfigError("connection.url", HIDDEN, f"The URL of the database is not valid: {error}.")
        else:
            yield from self._host_mistakes()
        if bool(self.tables) == (self.query is not None):
            yield ConfigRuleError("Name the tables to read, or give a query: one of the two.", "tables", "query")
        if self.query is not None:
            yield from self.topic_mistakes()
            return
        yield from self.topic_mistakes("table")
        if len(self.tables) > 1 and "${table}" not in self.topic:
            reason = "The rows of several tables would be mixed: write ${table} for the name of the table."
            yield ConfigError("topic", self.topic, reason)

    @property
    def _hosts(self) -> Sequence[str]:
        return () if self.driver.is_file else url_hosts(self.connection_url.value)

    def _host_mistakes(self) -> Iterable[ConfigError]:
        for host in self._hosts:
            try:
                self.host_rules.check_name(host)
            except HostDeniedError as error:
                yield ConfigRuleError(f"connection.url: {error}", "connection.url")

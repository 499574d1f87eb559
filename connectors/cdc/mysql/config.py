"""The options of the MySQL and MariaDB connectors, under Debezium's keys."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    option,
)
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.kits.cdc.filters import NameFilter, java_regex_list
from connect.kits.cdc.notifications import NotificationOptions
from connect.kits.cdc.options import RelationalConfig
from connect.kits.cdc.signals.channels import SignalOptions
from connect.kits.cdc.tables import TableId
from connect.kits.cdc.temporal import TimePrecisionMode
from connectors.cdc.mysql.dialect import MySqlDialect, UnsignedBigintMode
from connectors.cdc.mysql.history import SchemaHistory

__all__ = ["BUILT_IN", "BinlogConfig", "LockingMode", "TableFilter"]

_MOST_SERVER_ID: Final = 2**32 - 1
_NO_CLASSES: Final = "Java classes cannot run here: remove the key."
_HISTORY_PRODUCER: Final = "schema.history.internal.producer."
_REFUSED: Final = {
    "event.deserialization.failure.handling.mode": UnsupportedKey(
        "An event that cannot be read fails the task, so that none is lost: remove the key.", ("", "fail")
    ),
    "inconsistent.schema.handling.mode": UnsupportedKey(
        "Rows of a table whose columns are not known fail the task, so that none is lost: remove the key.", ("", "fail")
    ),
    "gtid.ignore.on.recovery": UnsupportedKey(
        "Without its GTIDs an offset does not tell what was read on another server: remove the key.", ("", "false")
    ),
    "sourceinfo.struct.maker": UnsupportedKey(
        _NO_CLASSES,
        (
            "",
            "io.debezium.connector.mysql.mysqlsourceinfostructmaker",
            "io.debezium.connector.mariadb.mariadbsourceinfostructmaker",
        ),
    ),
    "enable.time.adjuster": UnsupportedKey(
        "The server itself completes years of two digits, so none are in its log: remove the key.", ("", "true")
    ),
}
_WITHOUT_EFFECT: Final = {
    "schema.history.internal": UnsupportedKey(
        "the structure of tables comes from the log, and the topic of schema.history.internal.kafka.topic is all that "
        "is written beside",
        ("", "io.debezium.storage.kafka.history.kafkaschemahistory"),
    ),
    "binlog.buffer.size": UnsupportedKey("rows are read from the log when the server has committed them", ("", "0")),
    "binlog.net.read.timeout": UnsupportedKey("the server's heartbeats show that the connection is alive", ("", "0")),
    "binlog.net.write.timeout": UnsupportedKey("the server waits ten minutes for this reader", ("", "0")),
    "connect.keep.alive": UnsupportedKey("a lost connection is always made again", ("", "true")),
    "connect.keep.alive.interval.ms": UnsupportedKey("the server's heartbeats show that the connection is alive"),
    "database.jdbc.driver": UnsupportedKey("the driver is PyMySQL"),
    "database.protocol": UnsupportedKey("the driver is PyMySQL"),
    "ddl.parser.type": UnsupportedKey("statements are not parsed"),
    "min.row.count.to.stream.results": UnsupportedKey("the rows of a snapshot are always streamed"),
    "use.nongraceful.disconnect": UnsupportedKey("connections are closed at once"),
    "database.query.timeout.ms": UnsupportedKey("statements of a snapshot take as long as they take"),
    "database.server.id.offset": UnsupportedKey("snapshots do not read the log"),
    "connection.validation.timeout.ms": UnsupportedKey("connect.timeout.ms applies"),
    "schema.history.internal.store.only.captured.tables.ddl": UnsupportedKey(
        "the schema history has the captured databases", ("", "false")
    ),
    "schema.history.internal.store.only.captured.databases.ddl": UnsupportedKey(
        "the schema history has the captured databases", ("", "true")
    ),
    "legacy.snapshot.max.threads": UnsupportedKey("large tables are always divided into pieces", ("", "false")),
    "schema.history.internal.skip.unparseable.ddl": UnsupportedKey("statements are not parsed"),
    "custom.sanitize.pattern": UnsupportedKey("secrets are never shown"),
}


_EXCLUSIVE: Final = (
    ("database.include.list", "database.exclude.list"),
    ("gtid.source.includes", "gtid.source.excludes"),
)


BUILT_IN: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
"""The server's own databases."""


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Which tables are captured."""

    databases: NameFilter
    tables: NameFilter

    def __call__(self, table: TableId) -> bool:
        return table.catalog.lower() not in BUILT_IN and self.databases(table.catalog) and self.tables(str(table))


class LockingMode(StrEnum):
    """The values of ``snapshot.locking.mode``, without that of Java classes."""

    MINIMAL = "minimal"
    MINIMAL_PERCONA = "minimal_percona"
    MINIMAL_PERCONA_NO_TABLE_LOCKS = "minimal_percona_no_table_locks"
    EXTENDED = "extended"
    NONE = "none"


class BinlogConfig(RelationalConfig, SignalOptions, NotificationOptions, HostsConfig):
    """The options of both connectors."""

    passed_keys = (*RelationalConfig.passed_keys, _HISTORY_PRODUCER, *_REFUSED, *_WITHOUT_EFFECT)
    is_mariadb: ClassVar[bool] = False

    database_port: int = option(
        default=3306, importance=HIGH, validator=between(1, 65_535), doc="Port of the database."
    )
    database_server_id: Long = option(
        importance=HIGH,
        validator=between(1, _MOST_SERVER_ID),
        doc="The number by which the server knows this connector, as if it were a replica: any that no other server, "
        "replica or connector of the cluster has, since a second one with the same number ends the first.",
    )
    database_include_list: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=java_regex_list,
        doc="Regular expressions for the databases to capture; by default all but the server's own.",
    )
    database_exclude_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for databases not to capture.",
    )
    database_initial_statements: str = option(
        default="",
        importance=LOW,
        doc="SQL statements to run on each connection for questions, separated by semicolons; ;; is a semicolon.",
    )
    database_ssl_mode: Literal[
        "disabled",
        "disable",
        "preferred",
        "required",
        "trust",
        "verify_ca",
        "verify-ca",
        "verify_identity",
        "verify-full",
    ] = option(
        default="preferred",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether connections are encrypted: disabled, preferred (if the server can), required, verify_ca (and the "
        "certificate is checked), verify_identity (and it is the host's). MariaDB's names for these are disable, "
        "trust, verify-ca and verify-full.",
    )
    database_ssl_truststore: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the certificates of the trusted authorities: PEM, JKS or PKCS12. By default those of the "
        "system are trusted.",
    )
    database_ssl_truststore_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password of the truststore file; PEM has none."
    )
    database_ssl_keystore: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="A file with the connector's own private key and certificates: PEM, JKS or PKCS12.",
    )
    database_ssl_keystore_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password of the keystore file; PEM has none."
    )
    connect_timeout_ms: int = option(
        default=30_000, importance=MEDIUM, validator=at_least(1), doc="Milliseconds to wait for a connection."
    )
    time_precision_mode: TimePrecisionMode = option(
        default=TimePrecisionMode.ADAPTIVE_TIME_MICROSECONDS,
        importance=MEDIUM,
        ignore_case=True,
        doc="How dates and times are sent: adaptive_time_microseconds in the column's precision, but times of day in "
        "microseconds; connect as Connect's types in milliseconds; isostring as text; microseconds and nanoseconds in "
        "these.",
    )
    bigint_unsigned_handling_mode: UnsignedBigintMode = option(
        default=UnsignedBigintMode.LONG,
        importance=MEDIUM,
        ignore_case=True,
        doc="How BIGINT UNSIGNED is sent: long as a 64-bit number, in which numbers from 2^63 on become negative, or "
        "precise as a Decimal.",
    )
    include_query: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether events tell the statement that made the change. Needs binlog_rows_query_log_events=ON on MySQL, "
        "binlog_annotate_row_events=ON on MariaDB.",
    )
    include_schema_changes: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether changes of captured tables' definitions are sent to the topic that is called as topic.prefix.",
    )
    gtid_source_includes: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=java_regex_list,
        doc="Regular expressions for the UUIDs of the servers (for MariaDB: the domains) whose transactions are read; "
        "by default all.",
    )
    gtid_source_excludes: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=java_regex_list, doc="Regular expressions for those that are not."
    )
    gtid_source_filter_dml_events: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether changes of servers that gtid.source.includes and gtid.source.excludes leave out are not sent.",
    )
    schema_history_internal_kafka_topic: str = option(
        default="",
        importance=LOW,
        doc="Topic to which changes of the schema are written in the form of Debezium's schema history, so that "
        "Debezium can take the connector over. It is not read here, and not needed otherwise. Create it with one "
        "partition and retention.ms=-1.",
    )
    schema_history_internal_kafka_bootstrap_servers: str = option(
        default="",
        importance=LOW,
        doc="Brokers of that topic. Further settings of the client begin with schema.history.internal.producer.",
    )
    heartbeat_action_query: str = option(
        default="", importance=LOW, doc="A statement to run on the database with each heartbeat."
    )
    snapshot_mode: Literal[
        "always",
        "initial",
        "initial_only",
        "no_data",
        "schema_only",
        "never",
        "recovery",
        "schema_only_recovery",
        "when_needed",
    ] = option(
        default="initial",
        importance=LOW,
        ignore_case=True,
        doc="Whether the rows that exist are read first: initial (unless that was done), always (at each start), "
        "initial_only (and then no changes), no_data (changes from now on; schema_only is its older name), when_needed "
        "(also if the log no longer reaches back to the offset), recovery and never (never).",
    )
    snapshot_locking_mode: LockingMode = option(
        default=LockingMode.MINIMAL,
        importance=LOW,
        ignore_case=True,
        doc="How the snapshot gets a place in the log that is exactly its own: minimal locks all tables against "
        "writing for a moment (FLUSH TABLES WITH READ LOCK), extended until its rows are read, the minimal_percona "
        "ones by LOCK TABLES FOR BACKUP; none takes no lock, and finds a moment without a write by itself.",
    )
    snapshot_lock_timeout_ms: Long = option(
        default=10_000, importance=MEDIUM, validator=at_least(0), doc="Milliseconds to wait for the lock."
    )
    log_check_interval_ms: Long = option(
        name="offset.activity.monitor.interval.ms",
        default=600_000,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds between two checks, while nothing arrives, that the server still has its log from the "
        "position on; 0 for none.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each key that cannot be honoured, and for values that contradict each other."""
        yield from super().check()
        for key, value, told in given_keys(_REFUSED, self.originals):
            yield ConfigRuleError(f"{key}={value} is not supported. {told}", key)
        if self.time_precision_mode is TimePrecisionMode.ADAPTIVE:
            yield ConfigError(
                "time.precision.mode", "adaptive", "MySQL's TIME exceeds a day: set adaptive_time_microseconds"
            )
        for first, second in _EXCLUSIVE:
            if self.originals.get(first) and self.originals.get(second):
                yield ConfigRuleError(f"Set {first} or {second}, not both.", first, second)
        yield from self._unreachable()

    def _unreachable(self) -> Iterator[ConfigError]:
        try:
            self.host_rules.check_name(self.database_hostname)
        except HostDeniedError as error:
            yield ConfigRuleError(f"database.hostname: {error}", "database.hostname")
        if self.tls_mode not in ("disabled", "preferred"):
            try:
                self.tls_context()
            except ConfigError as error:
                yield error

    def warnings(self) -> Iterable[str]:
        """Yield a warning for each key that has no effect."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    @property
    def signal_table(self) -> str:
        """The name of the signal table, empty if there is none."""
        return self.signal_data_collection.strip() if "source" in self.signal_enabled_channels else ""

    @property
    def tls_mode(self) -> str:
        """The mode of encryption, by MySQL's name."""
        mode = self.database_ssl_mode.replace("-", "_")
        return {"disable": "disabled", "trust": "required", "verify_full": "verify_identity"}.get(mode, mode)

    def tls_context(self) -> ssl.SSLContext:
        """Return the context of encrypted connections. Raises a ``ConfigError`` if a store cannot be read."""
        from connect.internals.tls.client import client_context  # noqa: PLC0415 - loaded where TLS is used

        props = {}
        for name in ("truststore", "keystore"):
            if location := getattr(self, f"database_ssl_{name}"):
                props[f"database.ssl.{name}.location"] = location
            if password := getattr(self, f"database_ssl_{name}_password"):
                props[f"database.ssl.{name}.password"] = password.value
        return client_context(props, "database.")

    @property
    def replica_name(self) -> str:
        """The name in the server's list of replicas (``SHOW REPLICAS``)."""
        return f"sluice-{self.topic_prefix}"

    def initial_statements(self) -> list[str]:
        """Return the statements to run on each connection for questions."""
        parts = re.split(r"(?<!;);(?!;)", self.database_initial_statements)
        return [text for part in parts if (text := part.replace(";;", ";").strip())]

    def wanted(self) -> TableFilter:
        """Return which tables are captured."""
        databases = NameFilter.of(self.database_include_list, self.database_exclude_list)
        return TableFilter(databases, self.table_filter())

    def source_filter(self) -> NameFilter:
        """Return the servers whose transactions are read, by UUID or, for MariaDB, domain."""
        return NameFilter.of(self.gtid_source_includes, self.gtid_source_excludes)

    def schema_history(self) -> SchemaHistory | None:
        """Return the schema history topic, if there is one."""
        topic, servers = self.schema_history_internal_kafka_topic, self.schema_history_internal_kafka_bootstrap_servers
        if not topic.strip() or not servers.strip():
            return None
        own = self.originals_with_prefix(_HISTORY_PRODUCER)
        settings = {key: value for key, value in own.items() if value is not None}
        return SchemaHistory(topic.strip(), self.topic_prefix, {**settings, "bootstrap.servers": servers.strip()})

    def dialect(self) -> MySqlDialect:
        """Return how columns are converted."""
        return MySqlDialect(
            self.time_precision_mode,
            self.decimal_handling_mode,
            self.binary_handling_mode,
            self.bigint_unsigned_handling_mode,
        )

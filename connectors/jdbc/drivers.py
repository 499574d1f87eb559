"""The drivers that a worker allows, and the options of each that a connector may set.

Anyone who can reach the REST API can write a connector's configuration. Drivers have options that load code, run SQL or
name files of the worker, and new versions bring more, so this is a list of what is allowed, not of what is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from connect.extras import missing_extra

__all__ = [
    "ALLOWED_DRIVERS_KEY",
    "ALLOWED_OPTIONS_KEY",
    "DEFAULT_DRIVERS",
    "DRIVERS",
    "Driver",
    "UnknownOptionError",
    "driver_name",
    "missing_package",
]

ALLOWED_DRIVERS_KEY: Final = "jdbc.allowed.drivers"
ALLOWED_OPTIONS_KEY: Final = "jdbc.allowed.options"

Options = Mapping[str, str]
Change = Callable[[str], Options]
"""Returns the driver's options for a user's value. Raises ``ValueError`` with the allowed values."""


class UnknownOptionError(ValueError):
    """An option that is not in the driver's list."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A SQLAlchemy driver: how to install it, and its options.

    ``options`` maps each option, including those of the JDBC driver, to the driver's own. ``ignored`` are settings of
    the JDBC driver that have no meaning here.
    """

    name: str
    package: str
    module: str
    options: Mapping[str, Change] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    def translate(self, name: str, value: str, allowed: Sequence[str]) -> Options:
        """Return the driver's options for an option; ``allowed`` are those that the worker's configuration adds."""
        if name in allowed:
            return {name: value}
        if name in self.ignored:
            return {}
        change = self.options.get(name)
        if change is None:
            raise UnknownOptionError(name)
        return change(value)


def _same(name: str, form: str) -> Change:
    pattern = re.compile(form)

    def change(value: str) -> Options:
        if not pattern.fullmatch(value):
            raise ValueError(f"must match {form}")
        return {name: value}

    return change


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0", ""):
        raise ValueError("must be true or false")
    return value.lower() in ("true", "1", "")


def _when(then: Options, otherwise: Options | None = None) -> Change:
    return lambda value: then if _flag(value) else otherwise or {}


def _milliseconds(name: str) -> Change:
    def change(value: str) -> Options:
        if not value.isascii() or not value.isdecimal():
            raise ValueError("must be milliseconds")
        return {name: str(max(1, -(-int(value) // 1000)))} if int(value) else {}

    return change


def _search_path(value: str) -> Options:
    if not re.fullmatch(r"[\w$]+(,[\w$]+)*", value):
        raise ValueError("must be a comma-separated list of schema names consisting of letters, digits, _ and $")
    return {"options": f"-csearch_path={value}"}


def _one_of(values: Mapping[str, Options]) -> Change:
    def change(value: str) -> Options:
        if value.lower() not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return values[value.lower()]

    return change


_NUMBER: Final = r"\d{1,9}"
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_POSTGRESQL: Final[Mapping[str, Change]] = {
    "application_name": _same("application_name", r"[^\x00-\x1f]{1,63}"),
    "ApplicationName": _same("application_name", r"[^\x00-\x1f]{1,63}"),
    "channel_binding": _same("channel_binding", "disable|prefer|require"),
    "channelBinding": _same("channel_binding", "disable|prefer|require"),
    "connect_timeout": _same("connect_timeout", _NUMBER),
    "connectTimeout": _same("connect_timeout", _NUMBER),
    "loginTimeout": _same("connect_timeout", _NUMBER),
    "currentSchema": _search_path,
    "gssencmode": _same("gssencmode", "disable|prefer|require"),
    "gssEncMode": _same("gssencmode", "disable|prefer|require"),
    "keepalives": _same("keepalives", "[01]"),
    "keepalives_count": _same("keepalives_count", _NUMBER),
    "keepalives_idle": _same("keepalives_idle", _NUMBER),
    "keepalives_interval": _same("keepalives_interval", _NUMBER),
    "tcp_user_timeout": _same("tcp_user_timeout", _NUMBER),
    "tcpKeepAlive": _when({"keepalives": "1"}, {"keepalives": "0"}),
    "ssl": _when({"sslmode": "require"}),
    "sslmode": _same("sslmode", "|".join(_SSL_MODES)),
    "sslrootcert": _same("sslrootcert", "system"),
    "target_session_attrs": _same("target_session_attrs", "any|read-write|read-only|primary|standby|prefer-standby"),
    "targetServerType": _one_of(
        {
            "any": {"target_session_attrs": "any"},
            "primary": {"target_session_attrs": "primary"},
            "master": {"target_session_attrs": "primary"},
            "secondary": {"target_session_attrs": "standby"},
            "slave": {"target_session_attrs": "standby"},
            "prefersecondary": {"target_session_attrs": "prefer-standby"},
            "preferslave": {"target_session_attrs": "prefer-standby"},
        }
    ),
}
_POSTGRESQL_IGNORED: Final = frozenset(
    {
        "adaptiveFetch",
        "assumeMinServerVersion",
        "autosave",
        "binaryTransfer",
        "cancelSignalTimeout",
        "cleanupSavepoints",
        "databaseMetadataCacheFields",
        "databaseMetadataCacheFieldsMiB",
        "defaultRowFetchSize",
        "disableColumnSanitiser",
        "escapeSyntaxCallMode",
        "hostRecheckSeconds",
        "loadBalanceHosts",
        "logUnclosedConnections",
        "maxResultBuffer",
        "preferQueryMode",
        "preparedStatementCacheQueries",
        "preparedStatementCacheSizeMiB",
        "prepareThreshold",
        "readOnlyMode",
        "receiveBufferSize",
        "reWriteBatchedInserts",
        "sendBufferSize",
        "socketTimeout",
        "stringtype",
        "tcpNoDelay",
        "unknownLength",
    }
)
_MYSQL: Final[Mapping[str, Change]] = {
    "charset": _same("charset", "utf8mb4|utf8mb3|utf8"),
    "connect_timeout": _same("connect_timeout", _NUMBER),
    "connectTimeout": _milliseconds("connect_timeout"),
    "read_timeout": _same("read_timeout", _NUMBER),
    "socketTimeout": _milliseconds("read_timeout"),
    "write_timeout": _same("write_timeout", _NUMBER),
    "useSSL": _when({"ssl": "require"}, {"ssl": "disable"}),
    "requireSSL": _when({"ssl": "require"}),
    "verifyServerCertificate": _when({"ssl": "verify-ca"}),
    "sslMode": _one_of(
        {
            "disable": {"ssl": "disable"},
            "disabled": {"ssl": "disable"},
            "preferred": {},
            "required": {"ssl": "require"},
            "trust": {"ssl": "require"},
            "verify_ca": {"ssl": "verify-ca"},
            "verify-ca": {"ssl": "verify-ca"},
            "verify_identity": {"ssl": "verify-full"},
            "verify-full": {"ssl": "verify-full"},
        }
    ),
    "ssl": _one_of({"true": {"ssl": "require"}, "false": {"ssl": "disable"}}),
}
_MYSQL_IGNORED: Final = frozenset(
    {
        "allowPublicKeyRetrieval",
        "autoReconnect",
        "cachePrepStmts",
        "characterEncoding",
        "connectionTimeZone",
        "dontTrackOpenResources",
        "forceConnectionTimeZoneToSession",
        "jdbcCompliantTruncation",
        "maxReconnects",
        "noAccessToProcedureBodies",
        "nullCatalogMeansCurrent",
        "permitMysqlScheme",
        "prepStmtCacheSize",
        "prepStmtCacheSqlLimit",
        "rewriteBatchedStatements",
        "serverTimezone",
        "tcpKeepAlive",
        "tinyInt1isBit",
        "useCursorFetch",
        "defaultFetchSize",
        "useInformationSchema",
        "useJDBCCompliantTimezoneShift",
        "useLegacyDatetimeCode",
        "useServerPrepStmts",
        "useUnicode",
        "yearIsDateType",
        "zeroDateTimeBehavior",
    }
)
_SQLITE: Final[Mapping[str, Change]] = {
    "busy_timeout": lambda value: {"timeout": _seconds(value)},
    "timeout": _same("timeout", r"\d{1,6}(\.\d+)?"),
}
_SQLITE_IGNORED: Final = frozenset({"cache_size", "foreign_keys", "journal_mode", "synchronous", "date_class"})


def _seconds(milliseconds: str) -> str:
    if not re.fullmatch(_NUMBER, milliseconds):
        raise ValueError("must be milliseconds")
    return str(int(milliseconds) / 1000)


DRIVERS: Final[Mapping[str, Driver]] = MappingProxyType(
    {
        driver.name: driver
        for driver in (
            Driver("sqlite+pysqlite", "", "sqlite3", _SQLITE, _SQLITE_IGNORED),
            Driver("postgresql+psycopg", "sluice-connect[jdbc]", "psycopg", _POSTGRESQL, _POSTGRESQL_IGNORED),
            Driver("mysql+pymysql", "sluice-connect[jdbc]", "pymysql", _MYSQL, _MYSQL_IGNORED),
            Driver("mariadb+pymysql", "sluice-connect[jdbc]", "pymysql", _MYSQL, _MYSQL_IGNORED),
        )
    }
)
"""The drivers that are known here. Others are taken by SQLAlchemy's name for them, with no options."""

DEFAULT_DRIVERS: Final = ("sqlite", "postgresql", "mysql", "mariadb")
_BACKENDS: Final = {name.partition("+")[0]: name for name in DRIVERS}


def driver_name(name: str) -> str:
    """Return SQLAlchemy's full name of a driver, such as ``postgresql+psycopg``; a short name means our default."""
    name = name.strip().lower()
    return _BACKENDS.get({"postgres": "postgresql"}.get(name, name), name)


def missing_package(driver: str) -> str | None:
    """Return how to install what a driver needs; ``None`` if everything is installed."""
    known = DRIVERS.get(driver)
    return missing_extra("jdbc", "sqlalchemy", *([known.module] if known is not None else []))

"""The JDBC drivers available to Spark, by the URLs they accept.

A connector's configuration comes from whoever can reach the REST API, and drivers have options that load code or name
files of the worker. So a URL may contain a host, a database, and the options listed here, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode

from connect.kits.sql.registry import backend_driver

__all__ = ["JdbcDriver", "driver_url", "jdbc_driver", "url_hosts"]

_HERE: Final = Path(__file__).parent
_ICEBERG: Final = _HERE.parent.parent / "iceberg"
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.\-]+)(:[0-9]{1,5})?")
_DATABASE: Final = re.compile(r"[A-Za-z0-9_.\-$%]+")
_FILE: Final = re.compile(r"/[^?#\x00-\x1f]+")
_VALUE: Final = re.compile(r"[A-Za-z0-9_.,\-]{1,100}")


@dataclass(frozen=True, slots=True)
class JdbcDriver:
    """A driver: its class, the list of its jars, and the options a URL may set."""

    name: str
    class_name: str
    jars: Path
    options: frozenset[str] = frozenset()
    quote: str = '"'
    """The quote character for names in SQL."""
    is_file: bool = False
    scheme: str = ""
    """The URL scheme by which Spark recognizes the dialect."""
    always: tuple[tuple[str, str], ...] = ()
    """Options added to every URL."""

    def is_transient(self, state: str, number: int, text: str) -> bool:
        """Return whether what the driver reports may pass by itself: by SQLSTATE, or by the database's number."""
        return bool(backend_driver(self.scheme).is_transient_report(state, number, text))

    def quoted(self, name: str) -> str:
        """Return a name quoted for the database's SQL."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def quoted_table(self, name: str) -> str:
        """Return a quoted table name, whose parts are separated by dots."""
        return ".".join(map(self.quoted, name.split(".")))


_MARIADB: Final = JdbcDriver(
    "MariaDB and MySQL",
    "org.mariadb.jdbc.Driver",
    _HERE / "mariadb.jars",
    frozenset({"connectTimeout", "socketTimeout", "sslMode", "tcpKeepAlive", "useCompression"}),
    "`",
    scheme="mysql",
    # Spark recognizes the dialect by MySQL's scheme, which this driver otherwise leaves to MySQL's own.
    # Of a prepared statement the server sends the bytes of a FLOAT, otherwise only six of its digits.
    # A server could redirect the driver to a host that the worker's rules deny.
    always=(("permitMysqlScheme", "true"), ("useServerPrepStmts", "true"), ("permitRedirect", "false")),
)
_DRIVERS: Final[Mapping[str, JdbcDriver]] = {
    "postgresql": JdbcDriver(
        "PostgreSQL",
        "org.postgresql.Driver",
        _ICEBERG / "postgresql.jars",
        frozenset(
            {
                "ApplicationName",
                "connectTimeout",
                "currentSchema",
                "loginTimeout",
                "socketTimeout",
                "ssl",
                "sslmode",
                "targetServerType",
                "tcpKeepAlive",
            }
        ),
        scheme="postgresql",
    ),
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
    "sqlite": JdbcDriver("SQLite", "org.sqlite.JDBC", _ICEBERG / "sqlite.jars", is_file=True, scheme="sqlite"),
}


def jdbc_driver(url: str) -> JdbcDriver | None:
    """Return the JDBC driver for a URL, if one of the supported drivers accepts its prefix."""
    head, _, rest = url.strip().partition(":")
    return _DRIVERS.get(rest.partition(":")[0].lower()) if head.lower() == "jdbc" else None


def url_hosts(url: str) -> list[str]:
    """Return the hosts in a URL that :func:`driver_url` accepts."""
    place = driver_url(url).split(":", 2)[2]
    hosts, _, _ = place.removeprefix("//").partition("/")
    return [match[1].strip("[]") for match in map(_HOST.fullmatch, hosts.split(",")) if match is not None]


def driver_url(url: str) -> str:
    """Return the URL to give to Spark. Raises ``ValueError``, which reveals no part of the URL but option names."""
    driver = jdbc_driver(url)
    if driver is None:
        known = ", ".join(f"jdbc:{name}:" for name in _DRIVERS)
        raise ValueError(f"it must begin with one of {known}")
    rest = url.strip().split(":", 2)[2]
    if driver.is_file:
        if not _FILE.fullmatch(rest):
            raise ValueError("name the file of the database by its absolute path, without options")
        return f"jdbc:{driver.scheme}:{rest}"
    place, _, query = rest.partition("?")
    if "@" in rest:
        raise ValueError(
            "it must not contain a user or a password: set connection.user and connection.password instead"
        )
    hosts, _, database = place.removeprefix("//").partition("/")
    if not (place.startswith("//") and all(map(_HOST.fullmatch, hosts.split(","))) and _DATABASE.fullmatch(database)):
        raise ValueError("after the scheme it needs //HOST:PORT/DATABASE")
    options = parse_qsl(query, keep_blank_values=True)
    for name, value in options:
        if name not in driver.options:
            allowed = ", ".join(sorted(driver.options))
            raise ValueError(f"the option {name!r} is not allowed; allowed are {allowed}")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the option {name} has a value with characters other than letters, digits, _ . , and -")
    given = [*options, *driver.always]
    return f"jdbc:{driver.scheme}:{place}" + (f"?{urlencode(given)}" if given else "")

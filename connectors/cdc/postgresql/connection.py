"""Connections to PostgreSQL, as the configuration asks for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostRules
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.text import SETTINGS

if TYPE_CHECKING:
    import psycopg

__all__ = ["conninfo", "money_digits", "open_session", "retriable_if_lost"]

_RETRY_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 15
_REFUSED: Final = re.compile(
    r"password authentication failed|no password supplied|(role|database) \"[^\"]*\" does not exist"
    r"|no pg_hba.conf entry|is not permitted to log in|authentication failed|permission denied for database"
    r"|certificate verify failed|server does not support SSL"
)
"""What the server or libpq says when trying again does not help."""


def conninfo(config: PostgresConfig, *, replication: bool = False, keeps_locale: bool = False) -> str:
    """Return the connection string; with several hosts the one that accepts writes is chosen."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415 - psycopg is loaded only where it is used

    hosts, addresses = _places(config.database_hostname, config.database_port, config.host_rules)
    left_out = {"client_encoding", "lc_monetary"} if keeps_locale else {"client_encoding"}
    given = {
        "host": ",".join(hosts),
        "hostaddr": ",".join(addresses) if any(addresses) else None,
        "port": str(config.database_port),
        "dbname": config.database_dbname,
        "user": config.database_user,
        "password": config.database_password.value if config.database_password else None,
        "sslmode": config.database_sslmode,
        "sslcert": config.database_sslcert or None,
        "sslkey": config.database_sslkey or None,
        "sslpassword": config.database_sslpassword.value if config.database_sslpassword else None,
        "sslrootcert": config.database_sslrootcert or None,
        "keepalives": "1" if config.database_tcp_keep_alive else "0",
        "connect_timeout": str(_CONNECT_TIMEOUT_S),
        "application_name": "sluice",
        "target_session_attrs": "read-write" if len(set(hosts)) > 1 else None,
        "options": " ".join(f"-c {name}={value}" for name, value in SETTINGS.items() if name not in left_out),
        "client_encoding": SETTINGS["client_encoding"],
        "replication": "database" if replication else None,
    }
    return make_conninfo("", **{name: value for name, value in given.items() if value is not None})


def _places(hostname: str, port: int, rules: HostRules) -> tuple[list[str], list[str]]:
    """Return the hosts, and the address of each that the worker's rules permit."""
    hosts, addresses = [], []
    for host in filter(None, map(str.strip, hostname.split(","))):
        if host.startswith("/"):
            rules.check_name("localhost")
            hosts.append(host)
            addresses.append("")
            continue
        try:
            found = rules.reachable(host, port)
        except OSError as error:
            raise RetriableError(f"The host {host} of database.hostname cannot be found: {error}", _RETRY_S) from error
        hosts += [host] * len(found)
        addresses += found
    return hosts, addresses


def open_session(config: PostgresConfig, *, keeps_locale: bool = False) -> psycopg.Connection[Any]:
    """Open a session for queries, in autocommit; by default money is shown as in the locale C."""
    import psycopg  # noqa: PLC0415 - as above

    try:
        session = psycopg.connect(conninfo(config, keeps_locale=keeps_locale), autocommit=True)
    except psycopg.OperationalError as error:
        told = str(error).strip()
        text = f"PostgreSQL at {config.database_hostname}:{config.database_port} cannot be reached: {told}"
        if _REFUSED.search(told):
            raise ConnectError(
                f"{text}. Check database.user, database.password and database.dbname, and pg_hba.conf on the server."
            ) from error
        raise RetriableError(text, _RETRY_S) from error
    session.execute(f"SET statement_timeout = {config.database_query_timeout_ms}")
    for statement in _statements(config.database_initial_statements):
        session.execute(statement.encode())
    return session


def money_digits(config: PostgresConfig) -> int:
    """Return the digits after the point of the database's currency, which its own locale shows."""
    with open_session(config, keeps_locale=True) as session:
        row = session.execute("SELECT '1'::money::text").fetchone()
    digits = re.search(r"1[.,](\d+)", row[0] if row else "")
    return len(digits[1]) if digits else 0


def _statements(text: str) -> list[str]:
    parts = re.split(r"(?<!;);(?!;)", text)
    return [part.replace(";;", ";").strip() for part in parts if part.strip()]


def retriable_if_lost(error: Exception, what: str) -> ConnectError:
    """Return the error for a query that failed: to be tried again if the connection was lost or the server is busy."""
    import psycopg  # noqa: PLC0415 - as above

    text = f"{what}: {str(error).strip()}"
    passing = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected)
    if isinstance(error, passing) or (isinstance(error, psycopg.OperationalError) and not _REFUSED.search(str(error))):
        return RetriableError(text, _RETRY_S)
    return ConnectError(text)

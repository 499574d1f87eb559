"""The connection to a database: made with SQLAlchemy, in several attempts, with errors that hide the password."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError, RetriableError
from connectors.jdbc.config import ConnectionConfig
from connectors.jdbc.dialects.dialect import Dialect
from connectors.jdbc.dialects.registry import dialect_class
from connectors.jdbc.dialects.values import TypeOptions
from connectors.jdbc.drivers import missing_package
from connectors.jdbc.urls import Address

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Database", "dialect_of"]

logger = logging.getLogger(__name__)

_TIMEOUT: Final = "10"
_SQLITE_MAY_PASS: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_FULL")

Wait = Callable[[float], bool]
"""Waits so many seconds, and answers ``False`` as soon as the caller is to stop."""


def dialect_of(config: ConnectionConfig, options: TypeOptions | None = None) -> Dialect:
    """Return the dialect of a configuration. Raises ``LookupError`` if there is none for its database."""
    return dialect_class(config.dialect_name or config.address.backend)(options, quote=config.quotes_names)


class Database:
    """A database with one connection at a time, opened on demand. Used by one thread."""

    def __init__(
        self,
        config: ConnectionConfig,
        wait: Wait,
        options: TypeOptions | None = None,
        *,
        reads: bool = False,
        isolation: str | None = None,
    ) -> None:
        self.address = config.address
        if (missing := missing_package(self.address.driver)) is not None:
            raise ConnectError(f"Cannot connect to the database. {missing}")
        self.dialect = dialect_of(config, options)
        self._attempts = config.connection_attempts
        self._backoff = config.connection_backoff_ms / 1000
        self._wait = wait
        self._reads = reads
        self._engine = _engine(self.address, isolation)
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return the connection, opening it if necessary; the first statement begins a transaction.

        Raises :class:`~connect.errors.RetriableError` if the database cannot be reached in ``connection.attempts``.
        """
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turn transient database errors into a ``RetriableError``, and others into a ``ConnectError``.

        ``doing`` describes the operation, such as ``read table accounts``. Any error closes the connection.
        """
        try:
            yield
        except Exception as error:
            self.close()
            if (failure := self.failure(error, doing)) is None:
                raise
            raise failure from error

    def failure(self, error: BaseException, doing: str) -> ConnectError | None:
        """Return the plugin API's error for a driver's error; ``None`` for errors of other origin."""
        from sqlalchemy import exc  # noqa: PLC0415 - SQLAlchemy is loaded only where it is used

        cause: BaseException = error
        if isinstance(error, exc.DBAPIError) and error.orig is not None:
            cause = error.orig
        elif not isinstance(error, self._engine.dialect.loaded_dbapi.Error):
            return None
        text = f"Cannot {doing} in {self.address}: {self.address.hide(str(cause)).strip()}"
        return RetriableError(text) if self._may_pass(error, cause) else ConnectError(text)

    def close(self) -> None:
        """Close the connection; uncommitted changes are rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # The next one is to be new: this one may be broken, or in the middle of a result.
            connection.invalidate()
            connection.close()

    def dispose(self) -> None:
        """Close for good."""
        self.close()
        self._engine.dispose()

    def _connected(self) -> Connection:
        for attempt in range(1, self._attempts + 1):
            if self._reads and self.address.is_file and not Path(self.address.database).is_file():
                raise ConnectError(
                    f"File {self.address.database} does not exist. Correct connection.url, or create the file."
                )
            try:
                connection = self._engine.connect()
            except Exception as error:
                failure = self.failure(error, "connect")
                if failure is None:
                    raise
                if attempt == self._attempts:
                    raise RetriableError(f"{failure} (attempt {attempt} of {self._attempts})") from error
                logger.warning("%s (attempt %s of %s; retrying)", failure, attempt, self._attempts)
                if not self._wait(self._backoff):
                    raise RetriableError(f"{failure} (the task was stopped while retrying)") from error
            else:
                self._set_up(connection)
                return connection
        raise AssertionError("there is at least one attempt")

    def _set_up(self, connection: Connection) -> None:
        self.dialect.prepare(connection, reads=self._reads)
        connection.commit()

    def _may_pass(self, error: BaseException, cause: BaseException) -> bool:
        """Whether the error is transient: a lost connection, a lock, a server that is starting."""
        dbapi = self._engine.dialect.loaded_dbapi
        if getattr(error, "connection_invalidated", False):
            return True
        if (name := getattr(cause, "sqlite_errorname", None)) is not None:
            return str(name).startswith(_SQLITE_MAY_PASS)
        return isinstance(cause, dbapi.OperationalError | dbapi.InterfaceError)


def _engine(address: Address, isolation: str | None) -> Engine:
    from sqlalchemy import create_engine, event, pool  # noqa: PLC0415 - as above

    engine = create_engine(
        _url(address),
        connect_args=_arguments(address),
        hide_parameters=True,
        poolclass=pool.NullPool,
        **({} if isolation is None or address.is_file else {"isolation_level": isolation}),
    )
    if address.is_file:
        # Python's own handling of transactions would begin them late, and commit before DDL.
        event.listen(engine, "connect", lambda driver, _: setattr(driver, "isolation_level", None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _url(address: Address) -> Any:
    from sqlalchemy import URL  # noqa: PLC0415 - as above

    query: Mapping[str, Any] = {}
    hosts = address.hosts
    if len(hosts) > 1 and address.backend == "postgresql":
        query = {"host": [host if port is None else f"{host}:{port}" for host, port in hosts]}
        hosts = ()
    host, port = hosts[0] if hosts else (None, None)
    return URL.create(
        address.driver,
        address.user,
        None if address.password is None else address.password.value,
        host,
        port,
        address.database or None,
        query,
    )


def _arguments(address: Address) -> dict[str, Any]:
    """Return the driver's arguments: options in the form that it takes."""
    options: dict[str, Any] = dict(address.options)
    if address.is_file:
        return {"timeout": float(options.get("timeout", _TIMEOUT))}
    if address.backend in ("mysql", "mariadb"):
        mode = options.pop("ssl", None)
        arguments = {name: int(value) if value.isdecimal() else value for name, value in options.items()}
        return {
            "connect_timeout": int(_TIMEOUT),
            "charset": "utf8mb4",
            "local_infile": False,
            **arguments,
            **_tls(mode),
        }
    if address.backend == "postgresql":
        return {"connect_timeout": _TIMEOUT, "fallback_application_name": "sluice-connect", **options}
    return options


def _tls(mode: str | None) -> dict[str, Any]:
    if mode is None:
        return {}
    if mode == "disable":
        return {"ssl_disabled": True}
    context = ssl.create_default_context()
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}

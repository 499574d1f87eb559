"""The connection to a database: made with SQLAlchemy, in several attempts, with errors that hide the password."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connect.errors import ConnectError, RetriableError
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.driver import Driver
from connect.kits.sql.hosts import Address, HostGuard
from connect.kits.sql.registry import backend_driver, driver_of, missing_package

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Database", "Wait"]

logger = logging.getLogger(__name__)

Wait = Callable[[float], bool]
"""Waits so many seconds, and answers ``False`` as soon as the caller is to stop."""


class Database:
    """A database with one connection at a time, opened on demand. Used by one thread."""

    def __init__(
        self,
        guard: HostGuard,
        dialect: Dialect,
        wait: Wait,
        *,
        attempts: int,
        backoff: float,
        reads: bool = False,
        isolation: str | None = None,
    ) -> None:
        self.address = guard.address
        if (missing := missing_package(self.address.driver)) is not None:
            raise ConnectError(f"Cannot connect to the database. {missing}")
        self.dialect = dialect
        self._attempts = attempts
        self._backoff = backoff
        self._wait = wait
        self._reads = reads
        self._driver = backend_driver(self.address.backend)
        self._engine = _engine(self._driver, guard, isolation)
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return the connection, opening it if necessary; the first statement begins a transaction.

        Raises :class:`~connect.errors.RetriableError` if the database cannot be reached in ``connection.attempts``,
        and :class:`~connect.errors.ConnectError` at once if it refuses the user, the password or the name.
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
            # Open a new connection next time: this one may be broken, or in the middle of a result.
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
                if not isinstance(failure, RetriableError):
                    raise failure from error
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
        """Return whether the error is transient: a lost connection, a lock, a server that is starting."""
        if getattr(error, "connection_invalidated", False):
            return True
        passes = self._driver.is_transient(cause)
        if passes is not None:
            return passes
        dbapi = self._engine.dialect.loaded_dbapi
        return isinstance(cause, dbapi.OperationalError | dbapi.InterfaceError)


def _engine(known: Driver, guard: HostGuard, isolation: str | None) -> Engine:
    from sqlalchemy import create_engine, pool  # noqa: PLC0415 - as above

    address = guard.address
    driver = driver_of(address.driver)
    engine = create_engine(
        _url(address),
        connect_args=known.arguments(address),
        hide_parameters=True,
        poolclass=pool.NullPool,
        **driver.engine_options,
        **({} if isolation is None or address.is_file else {"isolation_level": isolation}),
    )
    driver.listen(engine, guard)
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

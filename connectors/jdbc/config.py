"""The options of the JDBC source and of the JDBC sink: where the database is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal

from connect.config import HIDDEN, HIGH, LOW, MEDIUM, Config, ConfigRuleError, Long, Password, at_least, option
from connect.errors import ConfigError
from connectors.jdbc.dialects.registry import dialect_class
from connectors.jdbc.drivers import ALLOWED_DRIVERS_KEY, ALLOWED_OPTIONS_KEY, DEFAULT_DRIVERS, missing_package
from connectors.jdbc.unsupported_keys import unsupported_key_errors, unsupported_key_warnings
from connectors.jdbc.urls import Address, Allowed, parse_url

__all__ = ["ConnectionConfig"]

_PREFIX: Final = "connection."
_OWN: Final = frozenset({"url", "user", "password", "attempts", "backoff.ms"})


class ConnectionConfig(Config):
    """Where the database is, how to log in, and how names are written."""

    _own_keys: ClassVar[frozenset[str]] = _OWN

    connection_url: Password = option(
        importance=HIGH,
        doc="Where the database is: jdbc:postgresql://host:5432/database, jdbc:mysql://..., jdbc:mariadb://..., "
        "jdbc:sqlite:/path/file.db, or SQLAlchemy's form of it, such as postgresql+psycopg://... It is shown nowhere, "
        "because it may hold a password.",
    )
    connection_user: str | None = option(
        default=None, importance=HIGH, doc="The user to log in as, instead of one in the URL."
    )
    connection_password: Password | None = option(
        default=None, importance=HIGH, doc="The password to log in with, instead of one in the URL."
    )
    connection_attempts: int = option(
        default=3,
        importance=LOW,
        validator=at_least(1),
        doc="How many times to try to connect before the attempt counts as failed.",
    )
    connection_backoff_ms: Long = option(
        default=10_000, importance=LOW, validator=at_least(0), doc="How long to wait before the next of these attempts."
    )
    dialect_name: str = option(
        default="",
        importance=LOW,
        doc="The dialect to use instead of the one that the URL stands for: its name, such as postgresql, or that "
        "of the Java class, such as PostgreSqlDatabaseDialect.",
    )
    quote_sql_identifiers: Literal["always", "never"] = option(
        default="always",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether names of tables and columns are quoted in SQL. Unquoted, the database may change their case.",
    )
    jdbc_allowed_drivers: tuple[str, ...] = option(
        name=ALLOWED_DRIVERS_KEY,
        default=DEFAULT_DRIVERS,
        importance=LOW,
        internal=True,
        doc="Set in the worker's file: the drivers that URLs may name.",
    )
    jdbc_allowed_options: tuple[str, ...] = option(
        name=ALLOWED_OPTIONS_KEY,
        default=(),
        importance=LOW,
        internal=True,
        doc="Set in the worker's file: options of drivers that URLs may have besides those known to be harmless.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each unsupported key, and for a URL that cannot be used, without showing the URL."""
        yield from unsupported_key_errors(self.originals)
        try:
            wrong = missing_package(self.address.driver)
        except ValueError as error:
            wrong = str(error)
        if wrong is not None:
            yield ConfigRuleError(f"Invalid value {HIDDEN} for configuration connection.url: {wrong}", "connection.url")
            return
        try:
            dialect_class(self.dialect_name or self.address.backend)
        except LookupError as error:
            yield ConfigRuleError(str(error), "dialect.name")

    def warnings(self) -> Iterable[str]:
        """What has no effect, unlike in the connectors of Java."""
        return unsupported_key_warnings(self.originals)

    @property
    def address(self) -> Address:
        """Where the database is; a ``ValueError`` says what is wrong with the URL."""
        return parse_url(
            self.connection_url.value,
            allowed=Allowed(self.jdbc_allowed_drivers, self.jdbc_allowed_options),
            user=self.connection_user,
            password=self.connection_password,
            options=self._driver_options(),
        )

    @property
    def quotes_names(self) -> bool:
        """Whether names are quoted."""
        return self.quote_sql_identifiers == "always"

    def _driver_options(self) -> Mapping[str, str]:
        """The further keys below ``connection.``, which go to the driver."""
        given = self.originals_with_prefix(_PREFIX)
        return {name: value for name, value in given.items() if name not in self._own_keys and value is not None}

"""The options shared by the JDBC source and sink: the database connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal

from connect.config import HIDDEN, HIGH, LOW, MEDIUM, ConfigRuleError, Long, Password, at_least, invalid_value, option
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.kits.sql.connection import Database, Wait
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.hosts import Address, HostGuard, named_hosts
from connect.kits.sql.registry import DEFAULT_DRIVERS, dialect_class, missing_package
from connect.kits.sql.urls import ALLOWED_DRIVERS_KEY, ALLOWED_OPTIONS_KEY, Allowed, parse_url
from connect.kits.sql.values import TypeOptions, parse_zone
from connectors.jdbc.unsupported_keys import JAVA_KEYS, unsupported_key_errors, unsupported_key_warnings

__all__ = ["ConnectionConfig", "check_zone"]

_PREFIX: Final = "connection."
_OWN: Final = frozenset({"url", "user", "password", "attempts", "backoff.ms"})


def check_zone(key: str, value: str) -> None:
    """Refuse what is no time zone."""
    try:
        parse_zone(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


class ConnectionConfig(HostsConfig):
    """Where the database is, how to log in, and how to write names."""

    passed_keys = (_PREFIX, *JAVA_KEYS)

    _own_keys: ClassVar[frozenset[str]] = _OWN

    connection_url: Password = option(
        importance=HIGH,
        doc="URL of the database: jdbc:postgresql://host:5432/database, jdbc:mysql://..., jdbc:mariadb://..., "
        "jdbc:sqlite:/path/file.db, or a SQLAlchemy URL such as postgresql+psycopg://... It is never shown, "
        "because it may contain a password.",
    )
    connection_user: str | None = option(
        default=None, importance=HIGH, doc="The user to log in as; takes precedence over one in the URL."
    )
    connection_password: Password | None = option(
        default=None, importance=HIGH, doc="The password to log in with; takes precedence over one in the URL."
    )
    connection_attempts: int = option(
        default=3,
        importance=LOW,
        validator=at_least(1),
        doc="How many times to try to connect before giving up.",
    )
    connection_backoff_ms: Long = option(
        default=10_000,
        importance=LOW,
        validator=at_least(0),
        doc="How long to wait between these attempts, in milliseconds.",
    )
    dialect_name: str = option(
        default="",
        importance=LOW,
        doc="The dialect to use in place of the one that the URL implies: its name, such as postgresql, or that of "
        "the Java class, such as PostgreSqlDatabaseDialect.",
    )
    quote_sql_identifiers: Literal["always", "never"] = option(
        default="always",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether to quote table and column names in SQL. The database may change the case of unquoted names.",
    )
    jdbc_allowed_drivers: tuple[str, ...] = option(
        name=ALLOWED_DRIVERS_KEY,
        default=DEFAULT_DRIVERS,
        importance=LOW,
        internal=True,
        doc="Set in the worker's configuration: the drivers that URLs may name.",
    )
    jdbc_allowed_options: tuple[str, ...] = option(
        name=ALLOWED_OPTIONS_KEY,
        default=(),
        importance=LOW,
        internal=True,
        doc="Set in the worker's configuration: driver options that URLs may contain in addition to those known to be "
        "harmless.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each unsupported key, and for an unusable URL, without showing the URL."""
        yield from unsupported_key_errors(self.originals)
        try:
            wrong = missing_package(self.address.driver)
        except ValueError as error:
            wrong = str(error)
        if wrong is not None:
            yield ConfigRuleError(f"Invalid value {HIDDEN} for configuration connection.url: {wrong}", "connection.url")
            return
        for key, reason in self.host_guard.denied():
            yield ConfigRuleError(f"{key}: {reason}", key)
        try:
            dialect_class(self.dialect_name or self.address.backend)
        except LookupError as error:
            yield ConfigRuleError(str(error), "dialect.name")

    def warnings(self) -> Iterable[str]:
        """Return a warning for each key that has no effect here, unlike in the Java connectors."""
        return unsupported_key_warnings(self.originals)

    @property
    def address(self) -> Address:
        """The address of the database. Raises ``ValueError`` with what is wrong with the URL."""
        return parse_url(
            self.connection_url.value,
            allowed=Allowed(self.jdbc_allowed_drivers, self.jdbc_allowed_options),
            user=self.connection_user,
            password=self.connection_password,
            options=self._driver_options(),
        )

    @property
    def host_guard(self) -> HostGuard:
        """The worker's rules for the hosts of the database."""
        address, own = self.address, self._driver_options()
        keys = {option: f"{_PREFIX}{option}" for option, _ in named_hosts(address) if option in own}
        return HostGuard(address, self.host_rules, keys)

    @property
    def quotes_names(self) -> bool:
        """Whether names are quoted."""
        return self.quote_sql_identifiers == "always"

    def dialect(self, options: TypeOptions | None = None) -> Dialect:
        """Return the dialect of the database. Raises ``LookupError`` if there is none."""
        return dialect_class(self.dialect_name or self.address.backend)(options, quote=self.quotes_names)

    def database(
        self, wait: Wait, options: TypeOptions | None = None, *, reads: bool = False, isolation: str | None = None
    ) -> Database:
        """Return the database, which is connected to on demand."""
        return Database(
            self.host_guard,
            self.dialect(options),
            wait,
            attempts=self.connection_attempts,
            backoff=self.connection_backoff_ms / 1000,
            reads=reads,
            isolation=isolation,
        )

    def _driver_options(self) -> Mapping[str, str]:
        """Return the other keys below ``connection.``, which are passed to the driver."""
        given = self.originals_with_prefix(_PREFIX)
        return {name: value for name, value in given.items() if name not in self._own_keys and value is not None}

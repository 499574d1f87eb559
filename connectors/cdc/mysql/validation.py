"""The configurations of the two connectors: a validation connects, and looks for what would later fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from connect.config import MEDIUM, ConfigRuleError, option
from connect.errors import ConfigError, ConnectError
from connect.internals.java.regex import regex_of_name
from connect.kits.cdc.filters import NameFilter
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.checks import server_errors
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.session import connected

__all__ = ["MariaDbConfig", "MySqlConfig"]


class MySqlConfig(BinlogConfig):
    """The options of the MySQL connector."""

    always_checks_system = True
    choices: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("table.include.list", "table.exclude.list"), "tables"),
        **dict.fromkeys(("database.include.list", "database.exclude.list"), "databases"),
    }

    def choices_of(self, key: str) -> Iterator[str]:
        """Yield the tables in the chosen databases, or the databases that have tables."""
        session = connected(self)
        try:
            tables = [table for table, _ in Catalog(session).tables()]
        finally:
            session.close()
        if key.startswith("database."):
            yield from (regex_of_name(table.catalog) for table in tables)
            return
        databases = NameFilter.of(self.database_include_list, self.database_exclude_list)
        yield from (regex_of_name(str(table)) for table in tables if databases(table.catalog))

    def check_system(self) -> Iterator[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        try:
            session = connected(self)
        except ConnectError as error:
            yield ConfigRuleError(str(error), "database.hostname")
            return
        try:
            yield from server_errors(self, session)
        except ConnectError as error:
            yield ConfigRuleError(str(error), "database.hostname")
        finally:
            session.close()


class MariaDbConfig(MySqlConfig):
    """The options of the MariaDB connector."""

    is_mariadb: ClassVar[bool] = True

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
        default="disable",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether connections are encrypted: disable, trust (yes), verify-ca (and the certificate is checked), "
        "verify-full (and it is the host's), or one of MySQL's names for these.",
    )

"""The configurations of the two connectors: a validation connects, and looks for what would later fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from connect.config import MEDIUM, ConfigRuleError, option
from connect.errors import ConfigError, ConnectError
from connectors.cdc.mysql.checks import server_errors
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.session import connected

__all__ = ["MariaDbConfig", "MySqlConfig"]


class MySqlConfig(BinlogConfig):
    """The options of the MySQL connector."""

    always_checks_system = True

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

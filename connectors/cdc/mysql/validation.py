"""The configurations of the two connectors: a validation connects, and looks for what would later fail."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, Literal

from connect.config import MEDIUM, ConfigRuleError, ConfigValue, option
from connect.config.errors import keys_of
from connect.errors import ConfigError, ConnectError
from connectors.cdc.mysql.checks import server_errors
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.session import connected

__all__ = ["MariaDbConfig", "MySqlConfig"]


class MySqlConfig(BinlogConfig):
    """The options of the MySQL connector."""

    @classmethod
    def validate(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> tuple[ConfigValue, ...]:
        """Validate ``props``; where nothing is wrong with them, connect, and look for what would later fail."""
        values = super().validate(props, secret_keys=secret_keys)
        if any(value.errors for value in values):
            return values
        described = {value.name: value for value in values}
        for error in cls.parse(props, secret_keys=secret_keys)._live_errors():
            for key in keys_of(error):
                described[key] = described.get(key, ConfigValue(key)).with_errors(str(error))
        return tuple(described.values())

    def _live_errors(self) -> Iterator[ConfigError]:
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

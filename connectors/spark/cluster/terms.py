"""What the connectors of a shared Spark application must agree on, and what each has for itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from connect.errors import ConfigError

__all__ = ["SESSION_KEY", "Terms", "agree", "session_name", "split_settings"]

SESSION_KEY: Final = "spark.session"
"""The key of a connector that names the application which it shares with others."""

_NAME: Final = re.compile(r"[\w.-]{1,100}")
_OWN: Final = ("spark.sql.", "spark.databricks.delta.")
_STATIC: Final = frozenset(
    {
        "spark.sql.catalogImplementation",
        "spark.sql.extensions",
        "spark.sql.warehouse.dir",
    }
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings of an application, as digests, and the connector for which it was started."""

    connector: str
    salt: str
    digests: Mapping[str, str]

    @classmethod
    def of(cls, connector: str, salt: str, settings: Mapping[str, str]) -> Terms:
        """The terms of these settings; the values, among which there may be secrets, cannot be read from them."""
        return cls(connector, salt, {key: _digest(salt, value) for key, value in settings.items()})


def session_name(props: Mapping[str, str]) -> str | None:
    """The application that a connector shares, if it shares one."""
    name = props.get(SESSION_KEY)
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigError(SESSION_KEY, name, "Name it with letters, digits, dots, underscores and dashes.")
    return name


def split_settings(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of the whole application, and those of the connector's own session in it."""
    own = {key: value for key, value in settings.items() if key.startswith(_OWN) and key not in _STATIC}
    return {key: value for key, value in settings.items() if key not in own}, own


def agree(terms: Terms, session: str, connector: str, settings: Mapping[str, str]) -> None:
    """Raise :class:`~connect.errors.ConfigError` if a connector's settings are not those of the application."""
    mine = Terms.of(connector, terms.salt, settings).digests
    keys = {*mine, *terms.digests}
    if differing := sorted(key for key in keys if mine.get(key) != terms.digests.get(key)):
        raise ConfigError(
            SESSION_KEY,
            session,
            f"Connectors {terms.connector} and {connector} cannot share a Spark application: they disagree on "
            f"{', '.join(differing)}, which the whole application has. Make them agree, or give one of them another "
            f"{SESSION_KEY}.",
        )


def _digest(salt: str, value: str) -> str:
    return hashlib.sha256(f"{salt}\n{value}".encode()).hexdigest()

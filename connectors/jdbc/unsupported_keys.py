"""Keys of the Java JDBC connectors that are not supported here.

A key that would change which rows are read or written, or who logs in, is an error; any other gives a warning. A value
that means what this connector does anyway gives neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.config import ConfigRuleError
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError

__all__ = ["JAVA_KEYS", "unsupported_key_errors", "unsupported_key_warnings"]

_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "jdbc.credentials.provider.class": UnsupportedKey(
        "Java classes cannot run here: remove the key, and set connection.user and connection.password, with a config "
        "provider if they are stored elsewhere.",
        ("", "io.confluent.connect.jdbc.util.defaultjdbccredentialsprovider"),
    ),
    "sql.quote.identifiers": UnsupportedKey("Set quote.sql.identifiers=never, and remove the key.", ("", "true")),
    "table.names.qualify": UnsupportedKey(
        "Tables are always read by their qualified names: remove the key.", ("", "true")
    ),
    "timestamp.initial.ms": UnsupportedKey("Set timestamp.initial, and remove the key.", ("", "0")),
    "incrementing.initial": UnsupportedKey(
        "Create the connector with the initial_state STOPPED, set its offsets by PATCH /connectors/NAME/offsets, and "
        "remove the key.",
        ("", "-1"),
    ),
}
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "date.timezone": UnsupportedKey("dates are written as they are, whatever db.timezone is", ("", "utc")),
    "date.calendar.system": UnsupportedKey(
        "dates follow the Gregorian calendar, even before 1582", ("", "proleptic_gregorian")
    ),
    "trim.sensitive.log": UnsupportedKey(
        "the database's message about a refused row is shown, and may contain values of the row", ("", "false")
    ),
    "mssql.use.merge.holdlock": UnsupportedKey("there is no dialect for SQL Server"),
    "max.buffer.size": UnsupportedKey("rows are read on demand, batch.max.rows at a time", ("", "0")),
    "poll.linger.ms": UnsupportedKey("a poll does not wait for rows", ("", "5000")),
}


JAVA_KEYS: Final = (*_REFUSED, *_WITHOUT_EFFECT)
"""Keys of the Java connectors of which these functions tell what they mean here, where they mean anything else."""


def unsupported_key_errors(props: Mapping[str, str | None]) -> Iterator[ConfigError]:
    """Yield an error for each key whose effect is not supported."""
    for key, value, instead in given_keys(_REFUSED, props):
        yield ConfigRuleError(f"Invalid value {value} for configuration {key}: {instead}", key)


def unsupported_key_warnings(props: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a warning for each key that has no effect."""
    return without_effect(_WITHOUT_EFFECT, props)

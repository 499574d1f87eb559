"""How SQLite's files are opened, and which of its errors pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.kits.sql.driver import NUMBER, SECONDS, Change, Driver, same
from connect.kits.sql.hosts import Address, HostGuard

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["SqliteDriver"]

_IGNORED: Final = frozenset({"cache_size", "foreign_keys", "journal_mode", "synchronous", "date_class"})
_TRANSIENT: Final = (
    "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_PROTOCOL",
)  # fmt: skip
_NUMBERS: Final = frozenset({5, 6, 10, 13, 14, 15})
"""The result codes of these names."""
_RESULT_CODE: Final = 0xFF
"""What an extended result code has of the one it extends."""


class SqliteDriver(Driver):
    """Python's own driver."""

    options: ClassVar[Mapping[str, Change]] = {
        "busy_timeout": lambda value: {"timeout": _seconds(value)},
        "timeout": same("timeout", r"\d{1,6}(\.\d+)?"),
    }
    ignored: ClassVar[frozenset[str]] = _IGNORED
    modules: ClassVar[tuple[str, ...]] = ("sqlite3",)

    def arguments(self, address: Address) -> dict[str, Any]:
        return {"timeout": float(address.options.get("timeout", SECONDS))}

    def listen(self, engine: Engine, guard: HostGuard) -> None:  # noqa: ARG002 - a file has no host
        """Begin transactions here: Python would begin them late, and commit before DDL."""
        from sqlalchemy import event  # noqa: PLC0415 - SQLAlchemy is loaded only where it is used

        event.listen(engine, "connect", lambda driver, _: setattr(driver, "isolation_level", None))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))

    def is_transient(self, error: BaseException) -> bool:
        return str(getattr(error, "sqlite_errorname", "")).startswith(_TRANSIENT)

    def is_transient_report(self, state: str, number: int, text: str) -> bool:  # noqa: ARG002
        return number & _RESULT_CODE in _NUMBERS


def _seconds(milliseconds: str) -> str:
    if not re.fullmatch(NUMBER, milliseconds):
        raise ValueError("must be milliseconds")
    return str(int(milliseconds) / 1000)

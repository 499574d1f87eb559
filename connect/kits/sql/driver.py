"""Drivers, and the options of each that a connector may set.

Anyone who can reach the REST API can write a connector's configuration. Drivers have options that load code, run SQL or
name files of the worker, and new versions bring more, so these are lists of what is allowed, not of what is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.kits.sql.hosts import Address, HostGuard

if TYPE_CHECKING:
    from sqlalchemy import Dialect, Engine

__all__ = ["NUMBER", "SECONDS", "Change", "Driver", "Options", "milliseconds", "one_of", "same", "when"]

SECONDS: Final = "10"
"""The longest wait for a connection, or for the lock of a file, unless an option says otherwise."""
NUMBER: Final = r"\d{1,9}"

Options = Mapping[str, str]
Change = Callable[[str], Options]
"""Returns the driver's options for a user's value. Raises ``ValueError`` with the allowed values."""


class Driver:
    """A driver by SQLAlchemy's full name, such as ``postgresql+psycopg``; one that is not known here has no options."""

    options: ClassVar[Mapping[str, Change]] = {}
    """Each option that may be set, including those of the JDBC driver, and what makes the driver's own of it."""
    ignored: ClassVar[frozenset[str]] = frozenset()
    """The settings of the JDBC driver that have no meaning here."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What it needs besides SQLAlchemy."""
    engine_options: ClassVar[Mapping[str, Any]] = {}
    """What SQLAlchemy is to do otherwise than it would."""

    def __init__(self, name: str) -> None:
        self.name = name

    def translate(self, name: str, value: str, allowed: Sequence[str]) -> Options:
        """Return the driver's options for an option; ``allowed`` are those that the worker's configuration adds.

        Raises ``KeyError`` for an option that is not in the list, and ``ValueError`` for a value.
        """
        if name in allowed:
            return {name: value}
        return {} if name in self.ignored else self.options[name](value)

    def arguments(self, address: Address) -> dict[str, Any]:
        """Return the options of an address in the form that the driver takes."""
        return dict(address.options)

    def listen(self, engine: Engine, guard: HostGuard) -> None:
        """Have an engine connect by :meth:`connect`."""
        from sqlalchemy import event  # noqa: PLC0415 - SQLAlchemy is loaded only where it is used

        event.listen(
            engine, "do_connect", lambda dialect, _record, _, arguments: self.connect(guard, dialect, arguments)
        )

    def connect(self, guard: HostGuard, dialect: Dialect, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """Check the hosts in the driver's arguments, and return a connection to one of their permitted addresses.

        ``None`` leaves it to SQLAlchemy to connect. Raises :class:`~connect.hosts.HostDeniedError` for a denied host.
        """
        guard.check_addresses()
        return None

    def is_transient(self, error: BaseException) -> bool | None:  # noqa: ARG002
        """Return whether an error may pass by itself: a lost connection, a lock, a server that is starting.

        All others are permanent. ``None`` for a database whose errors are not known.
        """
        return None

    def is_transient_report(self, state: str, number: int, text: str) -> bool | None:  # noqa: ARG002
        """Return the same of what a JDBC driver reports: its SQLSTATE, the database's number of it, and its text."""
        return None


def same(name: str, form: str) -> Change:
    """Take a value as it is if it has a form."""
    pattern = re.compile(form)

    def change(value: str) -> Options:
        if not pattern.fullmatch(value):
            raise ValueError(f"must match {form}")
        return {name: value}

    return change


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0", ""):
        raise ValueError("must be true or false")
    return value.lower() in ("true", "1", "")


def when(then: Options, otherwise: Options | None = None) -> Change:
    """Take true or false."""
    return lambda value: then if _flag(value) else otherwise or {}


def milliseconds(name: str) -> Change:
    """Take milliseconds, rounded up to seconds; 0 means none."""

    def change(value: str) -> Options:
        if not value.isascii() or not value.isdecimal():
            raise ValueError("must be milliseconds")
        return {name: str(max(1, -(-int(value) // 1000)))} if int(value) else {}

    return change


def one_of(values: Mapping[str, Options]) -> Change:
    """Take one of these values, in any case."""

    def change(value: str) -> Options:
        if value.lower() not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return values[value.lower()]

    return change

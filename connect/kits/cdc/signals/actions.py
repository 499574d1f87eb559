"""Actions: what signals ask for, parsed once where they come in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.data.excerpt import excerpt
from connect.errors import ConnectError
from connect.internals.java.regex import regex_from_java
from connect.kits.cdc.incremental_state import Collection
from connect.source import Signal

__all__ = [
    "BLOCKING",
    "Action",
    "ExecuteSnapshot",
    "LogMessage",
    "PauseSnapshot",
    "ResumeSnapshot",
    "SnapshotKind",
    "StopSnapshot",
    "WindowMark",
    "action_of",
    "data_of",
]

SnapshotKind: TypeAlias = str
INCREMENTAL: Final = "incremental"
BLOCKING: Final = "blocking"
_KINDS: Final = (INCREMENTAL, BLOCKING)
_WINDOWS: Final = ("snapshot-window-open", "snapshot-window-close")


@dataclass(frozen=True, slots=True)
class ExecuteSnapshot:
    """Read tables whose names match one of ``tables``, in chunks beside the stream or while it waits."""

    tables: tuple[str, ...]
    kind: SnapshotKind = INCREMENTAL
    conditions: tuple[tuple[str, str], ...] = ()
    surrogate: str = ""

    def collections(self, captured: Iterable[str]) -> list[Collection]:
        """Return what is to be read of the tables that are captured, in the order of the signal."""
        names = list(captured)
        chosen = dict.fromkeys(name for pattern in self.tables for name in names if _matches(pattern, name))
        return [Collection(name, self._condition(name), self.surrogate) for name in chosen]

    def _condition(self, table: str) -> str:
        found = (condition for pattern, condition in self.conditions if _matches(pattern, table))
        return next(found, "")


@dataclass(frozen=True, slots=True)
class StopSnapshot:
    """Stop reading these tables, or all."""

    tables: tuple[str, ...]

    def is_meant(self, table: str) -> bool:
        """Return whether a table is to be read no more."""
        return not self.tables or any(_matches(pattern, table) for pattern in self.tables)


@dataclass(frozen=True, slots=True)
class PauseSnapshot:
    """Read no more chunks for now."""


@dataclass(frozen=True, slots=True)
class ResumeSnapshot:
    """Go on reading chunks."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """Log a text, in which {} stands for the offset."""

    message: str


@dataclass(frozen=True, slots=True)
class WindowMark:
    """A mark that another Debezium has written into the signal table. It means nothing here."""


Action: TypeAlias = ExecuteSnapshot | StopSnapshot | PauseSnapshot | ResumeSnapshot | LogMessage | WindowMark


def data_of(text: str | None) -> dict[str, Any]:
    """Parse the data of a signal that is text. Raises :class:`~connect.errors.ConnectError`."""
    if text is None or not text.strip():
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConnectError(f"The data of the signal is not JSON: {excerpt(text)}") from error
    if not isinstance(data, dict):
        raise ConnectError(f"The data of the signal must be an object, but is {excerpt(text)}")
    return data


def action_of(signal: Signal) -> Action:
    """Return what a signal asks for. Raises :class:`~connect.errors.ConnectError` if that cannot be done."""
    data = signal.data
    match signal.type:
        case "execute-snapshot":
            return _execution(data)
        case "stop-snapshot":
            _kind(data, only=INCREMENTAL)
            return StopSnapshot(_names(data, "data-collections"))
        case "pause-snapshot":
            _kind(data, only=INCREMENTAL)
            return PauseSnapshot()
        case "resume-snapshot":
            _kind(data, only=INCREMENTAL)
            return ResumeSnapshot()
        case "log":
            return LogMessage(str(data.get("message", "")))
        case other if other in _WINDOWS:
            return WindowMark()
    raise ConnectError(
        f"There is no signal {excerpt(signal.type)}: the types are execute-snapshot, stop-snapshot, pause-snapshot, "
        "resume-snapshot and log."
    )


def _execution(data: Mapping[str, Any]) -> ExecuteSnapshot:
    tables = _names(data, "data-collections")
    if not tables:
        raise ConnectError('Name the tables to read: {"data-collections": ["public.orders"]}')
    surrogate = data.get("surrogate-key") or ""
    if not isinstance(surrogate, str):
        raise ConnectError(f"surrogate-key must be the name of a column, but is {excerpt(surrogate)}")
    kind = _kind(data)
    if kind == BLOCKING and surrogate.strip():
        raise ConnectError("surrogate-key is for incremental snapshots: leave it out, a blocking one needs no key.")
    return ExecuteSnapshot(tables, kind, _conditions(data, tables), surrogate.strip())


def _kind(data: Mapping[str, Any], only: str | None = None) -> SnapshotKind:
    kind = str(data.get("type") or INCREMENTAL).lower()
    if kind not in _KINDS or (only is not None and kind != only):
        raise ConnectError(f"The type of a snapshot is {only or 'incremental or blocking'}, not {excerpt(kind)}")
    return kind


def _names(data: Mapping[str, Any], member: str) -> tuple[str, ...]:
    given = data.get(member)
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, str) and each.strip() for each in given):
        raise ConnectError(f"{member} must be a list of names or regular expressions, but is {excerpt(given)}")
    names = tuple(each.strip() for each in given)
    for name in names:
        _pattern(name)
    return names


def _conditions(data: Mapping[str, Any], tables: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    older = data.get("additional-condition")
    if isinstance(older, str) and older.strip():
        return tuple((table, older) for table in tables)
    given = data.get("additional-conditions") or []
    well_formed = isinstance(given, list) and all(
        isinstance(each, dict) and isinstance(each.get("data-collection"), str) and isinstance(each.get("filter"), str)
        for each in given
    )
    if not well_formed:
        raise ConnectError(
            'additional-conditions must be a list such as [{"data-collection": "public.orders", "filter": "id > 7"}], '
            f"but is {excerpt(given)}"
        )
    for each in given:
        _pattern(each["data-collection"])
    return tuple((each["data-collection"].strip(), each["filter"]) for each in given)


def _pattern(text: str) -> Any:
    try:
        return regex_from_java(text)
    except (ValueError, re.error) as error:
        raise ConnectError(f"{excerpt(text)} is not a regular expression: {error}") from error


def _matches(pattern: str, name: str) -> bool:
    return pattern.replace('"', "") == name or _pattern(pattern).fullmatch(name) is not None

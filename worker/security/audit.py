"""The audit log: what was changed or refused, and by whom, as CloudEvents 1.0 in JSON, one event per line."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from connect.errors import ConnectError, os_reason
from worker.errors import UnavailableError
from worker.security.principals import Principal

__all__ = ["AuditEntry", "AuditFile", "AuditKind", "AuditLog", "AuditLogger", "AuditSink", "changes"]

logger = logging.getLogger(__name__)
_AUDIT_LOGGER: Final = logging.getLogger("audit")
_MOST_ANONYMOUS: Final = 10
"""How many refusals of unauthenticated callers are written per second; the others are counted (invariant I9)."""


class AuditKind(StrEnum):
    """The kind of an event."""

    BEGAN = "io.sluice.rest.began"
    """A change is about to be made. Written only if ``audit.required`` is set."""
    CHANGED = "io.sluice.rest.changed"
    FAILED = "io.sluice.rest.failed"
    REFUSED = "io.sluice.rest.refused"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A request, its caller and its outcome; no value may contain a secret."""

    principal: Principal | None
    address: str
    passed_on_by: str | None
    method: str
    path: str
    connector: str | None = None
    status: int | None = None
    message: str | None = None
    dry_run: bool = False
    changes: Sequence[Mapping[str, Any]] = ()
    request: Any = None
    reason: str | None = None


class AuditSink(Protocol):
    """A destination for events."""

    def write(self, line: bytes) -> None:
        """Write a line. Raises :class:`~connect.errors.ConnectError` if it could not be written."""

    def close(self) -> None:
        """Close the destination."""


class AuditFile:
    """A file with one line per event, each written at once.

    The file is opened for each event, so that it can be rotated.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, line: bytes) -> None:
        """Append a line."""
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                if os.write(descriptor, line + b"\n") <= len(line):
                    raise ConnectError(f"The audit file {self._path} cannot be written: its disk is full")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ConnectError(f"The audit file {self._path} cannot be written: {os_reason(error)}") from error

    def close(self) -> None:
        """Do nothing: the file is not kept open."""


class AuditLogger:
    """The worker's log."""

    def write(self, line: bytes) -> None:
        """Log a line."""
        _AUDIT_LOGGER.info("%s", line.decode())

    def close(self) -> None:
        """Do nothing."""


class AuditLog:
    """Numbers events and writes them to every sink, possibly out of order. May be used by any thread.

    An event that cannot be written is logged as an error, so that it is not lost silently; if ``required``, the change
    it describes is refused.
    """

    def __init__(
        self,
        sinks: Sequence[AuditSink],
        worker_id: str,
        *,
        required: bool = False,
        hide: Callable[[str], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.required: Final = required
        self._sinks = sinks
        self._source = f"/workers/{worker_id}"
        self._hide = hide
        self._clock = clock
        self._start = uuid4().hex[:12]
        self._number = 0
        self._second, self._anonymous, self._suppressed = 0, 0, 0
        self._one_at_a_time = threading.Lock()

    def begin(self, entry: AuditEntry) -> None:
        """Record that a change is about to be made. Raises :class:`~worker.errors.UnavailableError` if that fails."""
        if not self._written(AuditKind.BEGAN, entry):
            raise UnavailableError(
                "Nothing is changed: audit.required is set and this could not be written down. The worker's log says "
                "why."
            )

    def write(self, kind: AuditKind, entry: AuditEntry) -> None:
        """Record the outcome of a request."""
        self._written(kind, entry)

    def close(self) -> None:
        """Close the sinks."""
        for sink in self._sinks:
            sink.close()

    def _written(self, kind: AuditKind, entry: AuditEntry) -> bool:
        with self._one_at_a_time:
            now = self._clock()
            if kind is AuditKind.REFUSED and entry.principal is None and self._is_too_much(int(now)):
                return True
            self._number += 1
            event = self._event(kind, entry, now)
        line = self._hide(_line(event)).encode()
        kept = [self._kept(sink, line) for sink in self._sinks]
        return all(kept)

    def _is_too_much(self, second: int) -> bool:
        if second != self._second:
            self._second, self._anonymous = second, 0
        self._anonymous += 1
        if self._anonymous > _MOST_ANONYMOUS:
            self._suppressed += 1
            return True
        return False

    def _event(self, kind: AuditKind, entry: AuditEntry, now: float) -> dict[str, Any]:
        data = {key: value for key, value in asdict(entry).items() if value is not None}
        data["principal"] = None if entry.principal is None else asdict(entry.principal)
        if self._suppressed:
            data["suppressed"], self._suppressed = self._suppressed, 0
        return {
            "specversion": "1.0",
            "id": f"{self._start}-{self._number}",
            "source": self._source,
            "type": kind.value,
            "subject": entry.path if entry.connector is None else f"connectors/{entry.connector}",
            "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "sequence": f"{self._number:020d}",
            "data": data,
        }

    @staticmethod
    def _kept(sink: AuditSink, line: bytes) -> bool:
        try:
            sink.write(line)
        except ConnectError as error:
            logger.error("An audit event could not be written: %s. It was: %s", error, line.decode())  # noqa: TRY400
            return False
        return True


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], shown: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the changed keys of a configuration, with their old and new values as ``shown``."""
    seen_before, seen_after = shown(before), shown(after)
    return [
        {"key": key, "before": seen_before.get(key), "after": seen_after.get(key)}
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _line(event: Mapping[str, Any]) -> str:
    # ASCII only, so that no character of a name can end the line or change its direction.
    return json.dumps(event, separators=(",", ":"))

"""What a task or connector waits for until it exists: shown in its status, logged once a minute, ended by a limit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from connect.errors import ConnectError
from worker.config.connector import ConnectorConfig
from worker.messages.messages import Waiting

__all__ = ["Waits"]

logger = logging.getLogger(__name__)
_LINE_SECONDS: Final = 60.0
_MOST_CHARACTERS: Final = 1000


class Waits:
    """Follows what a task or connector waits for. Used by one thread: the task's, or the one of the connector's looks.

    ``hide`` removes secrets from a text. A connector with ``run.until=drained`` waits for
    ``run.until.missing.timeout.ms`` and then fails, because it would never end.
    """

    def __init__(
        self,
        send: Callable[[Waiting], None],
        hide: Callable[[str], str],
        config: ConnectorConfig,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._hide = hide
        milliseconds = config.run_until_missing_timeout_ms
        self._limit = milliseconds / 1000 if config.runs_until_drained and milliseconds >= 0 else None
        self._clock = clock
        self._shown: str | None = None
        self._since = 0.0
        self._ends_since: float | None = None
        self._line_due = 0.0

    def show(self, reason: str | None) -> None:
        """Note what a connector waits for, or that it waits for nothing; no limit applies."""
        if reason is None:
            self.over()
        else:
            self.on(reason, ends=False)

    def on(self, reason: str, *, ends: bool = True) -> None:
        """Note that the task waits, for this reason; ``ends`` is whether it should end once all is delivered.

        Raises :class:`~connect.errors.ConnectError` if it has waited for too long by then.
        """
        now, shown = self._clock(), self._hide(reason)[:_MOST_CHARACTERS]
        if self._shown is None:
            self._since = self._line_due = now
        if self._shown != shown:
            self._shown = shown
            self._line_due = now
            self._send(Waiting(shown))
        if now >= self._line_due:
            self._line_due = now + _LINE_SECONDS
            waited = f"Still waiting, for {now - self._since:,.0f} s now. " if now - self._since >= 1 else ""
            logger.warning("%s%s", waited, shown)
        self._heed_limit(reason, now, ends=ends)

    def over(self) -> None:
        """Note that the task waits for nothing."""
        if self._shown is not None:
            self._shown = self._ends_since = None
            self._send(Waiting(None))

    def _heed_limit(self, reason: str, now: float, *, ends: bool) -> None:
        if not ends or self._limit is None:
            return
        if self._ends_since is None:
            self._ends_since = now
        if now - self._ends_since >= self._limit:
            raise ConnectError(
                f"{reason} It still does not exist after {self._limit:g} s, so the connector, which has "
                "run.until=drained, cannot end; run.until.missing.timeout.ms is how long it waits."
            )

"""The log of a child process: its lines go to the worker, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from connect.config import HIDDEN
from worker.runtime.control import Link
from worker.supervisor import messages

__all__ = ["PipeHandler", "Redaction"]

_FORMATTER: Final = logging.Formatter("%(message)s")


class Redaction:
    """Hides the secrets that a process knows in the texts that leave it (invariant I8)."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these texts from now on; the longest first, so that none is left in a part of another."""
        known = {*self._secrets, *(secret for secret in secrets if secret)}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """The text with every secret in it hidden."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class PipeHandler(logging.Handler):
    """Sends log records to the worker, which writes them with the context of the connector or task."""

    def __init__(self, link: Link, redaction: Redaction) -> None:
        super().__init__()
        self._link = link
        self._redaction = redaction

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        try:
            text = self._redaction.hide(_FORMATTER.format(record))
            self._link.send(messages.LogRecord(record.name, record.levelno, record.created, text))
        except Exception:
            self.handleError(record)

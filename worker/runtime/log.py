"""The log of a child process: its lines go to the worker, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

from connect.config import HIDDEN
from worker.runtime.control import Link
from worker.supervisor import messages

__all__ = ["PipeHandler", "Redaction"]

_FORMATTER: Final = logging.Formatter("%(message)s")
_LONGEST: Final = 64 * 1024


class Redaction:
    """Hides the secrets that a process knows in the texts that leave it (invariant I8)."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these texts from now on; the longest first, so that none is left in a part of another."""
        known = {*self._secrets, *(form for secret in secrets if secret for form in _forms(secret))}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def hide(self, text: str) -> str:
        """The text with every secret in it hidden."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def told(self, text: str) -> str:
        """The text as it may leave the process: without secrets, as UTF-8 can say it, and not longer than 64 KiB."""
        hidden = self.hide(text)
        if len(hidden) > _LONGEST:
            left_out = len(hidden) - _LONGEST
            half = _LONGEST // 2
            hidden = f"{hidden[:half]}\n... {left_out} characters are left out here ...\n{hidden[-half:]}"
        return hidden.encode("utf-8", "backslashreplace").decode()


def _forms(secret: str) -> Iterator[str]:
    """A secret, and how it shows in the ``repr`` of a text, in JSON and in a URL."""
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")


class PipeHandler(logging.Handler):
    """Sends log records to the worker, which writes them with the context of the connector or task."""

    def __init__(self, link: Link, redaction: Redaction) -> None:
        super().__init__()
        self._link = link
        self._redaction = redaction

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record. One that its own arguments break is sent as it was written, with what is wrong."""
        try:
            text = _FORMATTER.format(record)
        except Exception as error:
            written = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            text = f"{written} (this line of the log cannot be made from its arguments: {error!r})"
        self._link.send(messages.LogRecord(record.name, record.levelno, record.created, self._redaction.told(text)))

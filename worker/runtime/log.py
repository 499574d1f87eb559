"""The log of a child process: its lines go to the worker, without secrets."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Final

from worker.runtime.control import Link
from worker.security.redaction import Redaction
from worker.supervisor.messages import messages

__all__ = ["PipeHandler", "send_log"]

logger = logging.getLogger(__name__)

_FORMATTER: Final = logging.Formatter("%(message)s")


def send_log(link: Link, redaction: Redaction) -> None:
    """Send all that this process logs to the worker, and what else Python would write to standard error."""
    root = logging.getLogger()
    root.handlers[:] = [PipeHandler(link, redaction)]
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def _log_end_of_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_type is not SystemExit:
        name = end.thread.name if end.thread is not None else "a thread"
        trace = (end.exc_type, end.exc_value or end.exc_type(), end.exc_traceback)
        logger.error("Thread %s ended with an error", name, exc_info=trace)


def _log_unraisable(raised: sys.UnraisableHookArgs) -> None:
    what = raised.err_msg or "Exception ignored in"
    logger.error("%s %r", what, raised.object, exc_info=(raised.exc_type, raised.exc_value, raised.exc_traceback))  # type: ignore[arg-type]


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

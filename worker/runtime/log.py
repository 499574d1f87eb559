"""The log of a child process: sends its lines, without secrets, to the worker; also reports failed records."""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Protocol, cast
from weakref import WeakKeyDictionary

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.internals.chain.stack_trace import error_text, stack_trace
from connect.internals.chain.tolerance import ErrorCounts, Failure
from connect.internals.status_line import is_in_place
from worker.config.connector import ConnectorConfig
from worker.errors import JavaError
from worker.messages import messages
from worker.processes.output import OUTPUT, Lines
from worker.security.redaction import Redaction

__all__ = ["LogReporter", "LogTarget", "PipeHandler", "failure_trace", "send_log", "send_output"]

logger = logging.getLogger(__name__)

_FORMATTER: Final = logging.Formatter("%(message)s")


class LogTarget(Protocol):
    """Where log lines are sent: the link of this process or, in a shared one, that of the unit whose thread logs."""

    @property
    def link(self) -> object:
        """The link that receives lines of the current thread."""

    def send(self, report: messages.LogRecord) -> None:
        """Tell the worker."""


def send_log(target: LogTarget, redaction: Redaction) -> None:
    """Send the log of this process to the worker, with unhandled errors, which Python writes to standard error."""
    root = logging.getLogger()
    root.handlers[:] = [PipeHandler(target, redaction)]
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


def send_output(target: LogTarget, redaction: Redaction) -> int:
    """Send the output of this process to the worker, line by line, and let a crash write its stacks there.

    Output of Python becomes log lines without secrets; output of C code and other programs goes to the worker as it is.
    Return the descriptor for stacks.
    """
    sys.stdout, sys.stderr = (_lines(_Printed(target, redaction, number)) for number in (1, 2))
    os.register_at_fork(after_in_child=_print_plainly)
    # A plugin may close descriptors 1 and 2.
    stacks = os.dup(2)
    faulthandler.enable(stacks)
    return stacks


def _lines(printed: _Printed) -> io.TextIOWrapper:
    # Without buffering: several units may print, each a part of a line.
    return io.TextIOWrapper(cast("BinaryIO", printed), "utf-8", "backslashreplace", None, write_through=True)


def _stream(raw: io.RawIOBase) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", None, line_buffering=True)


def _print_plainly() -> None:
    """Print past the pipe, and crash as others do: pipe and stacks belong to the process that this was forked from."""
    faulthandler.disable()
    sys.stdout, sys.stderr = (_stream(io.FileIO(number, "w", closefd=False)) for number in (1, 2))


class _Printed(io.RawIOBase):
    """A stream that turns printed lines into log lines. May be written to from any thread."""

    def __init__(self, target: LogTarget, redaction: Redaction, number: int) -> None:
        super().__init__()
        self._target = target
        self._redaction = redaction
        self._number = number
        self._lock = threading.RLock()
        self._lines: WeakKeyDictionary[object, Lines] = WeakKeyDictionary()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return the descriptor for programs that print to the same place."""
        return self._number

    def write(self, data: Any) -> int:
        with self._lock:
            for line in self._lines.setdefault(self._target.link, Lines()).feed(bytes(data)):
                self._tell(line)
        return len(data)

    def close(self) -> None:
        with self._lock:
            for lines in list(self._lines.values()):
                for line in lines.end():
                    self._tell(line)
        super().close()

    def _tell(self, line: str) -> None:
        # Not through a logger: one of its handlers may print.
        if line.strip():
            self._target.send(messages.LogRecord(OUTPUT, logging.INFO, time.time(), self._redaction.redacted(line)))


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

    def __init__(self, target: LogTarget, redaction: Redaction) -> None:
        super().__init__()
        self._target = target
        self._redaction = redaction

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record. If its arguments do not fit its text, send the text with the error."""
        try:
            text = _FORMATTER.format(record)
        except Exception as error:
            written = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            text = f"{written} (this line of the log cannot be made from its arguments: {error!r})"
        self._target.send(
            messages.LogRecord(
                record.name, record.levelno, record.created, self._redaction.redacted(text), is_in_place(record)
            )
        )


@dataclass(slots=True)
class LogReporter:
    """Writes failed records to the log, by ``errors.log.*``."""

    connector: str
    task: int
    config: ConnectorConfig
    counts: ErrorCounts = field(default_factory=ErrorCounts)

    def report(self, failure: Failure) -> None:
        """Write a failure."""
        # With ``errors.tolerance=none`` the error ends the task, and is logged there once.
        if self.config.errors_log_enable and self.config.tolerates_errors:
            self.counts.total_errors_logged += 1
            if failure.raised is None:
                logger.error("%s", self.text(failure), exc_info=failure.error)
            else:
                logger.error("%s\n%s", self.text(failure), failure.trace.rstrip())

    def flush(self) -> None:
        """Do nothing: no line is buffered."""

    def text(self, failure: Failure) -> str:
        """Return the log line of a failure, in Kafka Connect's format."""
        where = _where(failure, with_messages=self.config.errors_log_include_messages)
        return (
            f"Error encountered in task {self.connector}-{self.task}. Executing stage '{failure.stage.value}' "
            f"with class '{failure.executing}'{where}."
        )


def failure_trace(error: BaseException) -> str:
    """Return the trace of a failed connector or task: the error in one line, then the traceback.

    An exception of Java has the trace that Java writes.
    """
    if isinstance(error, JavaError):
        return error.trace
    text, kind = error_text(error), type(error).__name__
    message = text if isinstance(error, ConnectError) and text else f"{kind}: {text}" if text else kind
    return f"{' '.join(message.split())}\n\n{stack_trace(error)}"


def _where(failure: Failure, *, with_messages: bool) -> str:
    if (raw := failure.raw) is not None and not isinstance(failure.record, SourceRecord):
        return (
            f", where consumed record is {{topic='{raw.topic}', partition={raw.partition}, offset={raw.offset}, "
            f"timestamp={raw.timestamp}, timestampType={raw.timestamp_type}}}"
        )
    if with_messages and failure.record is not None:
        return f", where source record is = {failure.record}"
    return ""

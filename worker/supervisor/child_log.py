"""The log of child processes, which is part of that of their worker."""

from __future__ import annotations

import logging

from worker.supervisor.messages.messages import LogRecord

__all__ = ["log_record"]


def log_record(context: str, said: LogRecord) -> None:
    """Log what a child has said, as of when it said it; ``context`` is the unit or inquiry that it runs."""
    target = logging.getLogger(said.logger)
    if target.isEnabledFor(said.level):
        record = target.makeRecord(said.logger, said.level, "", 0, said.text, (), None)
        record.created = said.created
        record.msecs = said.created % 1 * 1000
        record.context = context
        target.handle(record)

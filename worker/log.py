"""The worker's log: one line a record, with the connector or task it belongs to."""

from __future__ import annotations

import logging
from typing import Final

__all__ = ["configure_logging"]

_FORMAT: Final = "[%(asctime)s] %(levelname)s [%(context)s] %(message)s (%(name)s)"


class _Context(logging.Filter):
    """Gives records of the worker itself their context; those of children have one."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "context"):
            record.context = "worker"
        return True


def configure_logging(level: int = logging.INFO) -> None:
    """Write the log to standard error, in UTF-8 as the terminal takes it."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(_Context())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # One line a request is the business of who puts a proxy in front.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)

"""What the client library logs by itself: a line for each attempt to connect, which is thirty a second and client."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final

__all__ = ["UNREACHABLE", "ConnectionFailures"]

UNREACHABLE: Final = "The Kafka client reaches no broker, and goes on trying"
"""What a client that has lost all brokers says, each second."""

_FACILITY: Final = "FAIL"
_QUIET_SECONDS: Final = 60.0
_RETRYING: Final = ": retrying"
_MOST_KEPT: Final = 100
_PASSING: Final = re.compile(r"\[thrd:[^\]]*\]: |\(after .*")
"""What differs between the lines of one broker that is away."""


class ConnectionFailures(logging.Filter):
    """Lets a failure to connect through once a minute, whichever client of the process it happened to.

    What the library itself says that it tries again, such as to get a producer's id, is not worth a line.
    A logger of level DEBUG gets them all. The library calls it with its facility, the name of the client and the text.
    May be used by any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is worth reading."""
        is_failure = isinstance(record.args, tuple) and len(record.args) == 3 and record.args[0] == _FACILITY
        if logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return True
        if not (is_failure or record.msg == UNREACHABLE):
            return not (isinstance(record.args, tuple) and record.args and str(record.args[-1]).endswith(_RETRYING))
        text = _PASSING.sub("", record.getMessage().partition("] ")[2]) if is_failure else UNREACHABLE
        now = self._clock()
        if now - self._told.get(text, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return False
        if len(self._told) >= _MOST_KEPT:
            self._told = {}
        self._told[text] = now
        return True

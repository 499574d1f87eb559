"""Stops the worker on SIGINT, SIGTERM and SIGHUP.

Crash point: a start that waits for brokers may take minutes, so a signal interrupts it anywhere, and everything created
so far is closed. After the start, the main thread waits for the signal. Either way the worker shuts down in order.
"""

from __future__ import annotations

import logging
import signal
from concurrent.futures import Future, InvalidStateError

__all__ = ["StopSignals", "StoppedError"]

logger = logging.getLogger(__name__)


class StoppedError(BaseException):
    """Raised by a signal while the worker starts. Not an ``Exception``, so that nothing retries because of it."""


class StopSignals:
    """Handles the signals from its creation on, which must be in the main thread.

    SIGHUP, sent when a terminal closes, stays ignored if it is, as under ``nohup``.

    ``status`` is the exit status once there is a reason to end; for a signal it is ``stopped``. Until :meth:`started`
    is called, a signal also raises :class:`StoppedError` in the main thread, wherever that is; a ``with`` block of the
    signals then ends without an error.
    """

    def __init__(self, stopped: int) -> None:
        self.status: Future[int] = Future()
        self._stopped = stopped
        self._starting = True
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)

    def __enter__(self) -> StopSignals:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        # A C function that the signal interrupts may turn it into a SystemError, as librdkafka's client does.
        return isinstance(error, StoppedError | SystemError) and self._starting and self.status.done()

    def started(self) -> None:
        """Let signals interrupt nothing from now on."""
        self._starting = False

    def _take(self, number: int, _frame: object) -> None:
        try:
            # A second signal may arrive during this one, so checking and setting the first one is a single step.
            self.status.set_result(self._stopped)
        except InvalidStateError:
            return
        logger.info("Stopping on %s", signal.Signals(number).name)
        if self._starting:
            raise StoppedError

"""SIGINT, SIGTERM and SIGHUP: how a worker is told to end.

Crash point: a start that waits for brokers may take minutes, so such a signal breaks it off wherever it is, and what is
made by then is closed. Afterwards it is what the main thread waits for. Either way everything ends in good order.
"""

from __future__ import annotations

import logging
import signal
from concurrent.futures import Future, InvalidStateError

__all__ = ["StopSignals", "StoppedError"]

logger = logging.getLogger(__name__)


class StoppedError(BaseException):
    """A signal came while the worker was starting. Not an ``Exception``: nobody is to try again because of it."""


class StopSignals:
    """Takes the signals from when it is made, which has to be in the main thread.

    SIGHUP, which comes when a terminal is closed, is left alone where it is ignored, as below ``nohup``.

    ``status`` is the exit status, once there is a reason to end; a signal gives it ``stopped``. Until :meth:`started`
    is called a signal also raises :class:`StoppedError` in the main thread, in the midst of whatever it does there; a
    ``with`` block of the signals ends then, without an error.
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
        # A C function that the signal interrupts may make a SystemError of it, as librdkafka's client does.
        return isinstance(error, StoppedError | SystemError) and self._starting and self.status.done()

    def started(self) -> None:
        """Let signals interrupt nothing from now on."""
        self._starting = False

    def _take(self, number: int, _frame: object) -> None:
        try:
            # A second signal may come in the midst of this one: whether it is the first is asked and said at once.
            self.status.set_result(self._stopped)
        except InvalidStateError:
            return
        logger.info("Stopping on %s", signal.Signals(number).name)
        if self._starting:
            raise StoppedError

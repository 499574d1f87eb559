"""A question to a child process that is started for it, where there is no supervisor: by a command, or at the start."""

from __future__ import annotations

import time
from collections.abc import Callable

from worker.supervisor.listening import Listening
from worker.supervisor.messages import messages
from worker.supervisor.process import Child, Launcher, log_record

__all__ = ["ask"]


def ask(
    launcher: Launcher,
    inquiry: messages.Inquiry,
    label: str,
    seconds: float,
    on_part: Callable[[messages.Report], None] = lambda _: None,
) -> messages.Report | str:
    """Ask a process of its own, which ends with its answer; the answer, or the reason why there is none.

    ``label`` stands at its lines of the log. ``on_part`` is given what comes before the answer.
    """
    child = launcher.launch(label, inquiry)
    try:
        child.send(inquiry)
        return _answer(child, label, seconds, on_part)
    finally:
        child.kill()
        child.join()


def _answer(
    child: Child, label: str, seconds: float, on_part: Callable[[messages.Report], None]
) -> messages.Report | str:
    deadline = time.monotonic() + seconds
    listening: Listening[Child] = Listening()
    while (left := deadline - time.monotonic()) > 0:
        listening.ready([child], left)
        for report in child.receive():
            if isinstance(report, messages.LogRecord):
                log_record(label, report)
            elif isinstance(report, messages.PARTIAL):
                on_part(report)
            else:
                return report
        if child.gone():
            return f"its process {child.join()}"
    return f"it did not answer within {seconds:g} s"

"""The question to the worker, before anything is sent, whether this process still owns its task (KIP-618).

A process that is slow to start may begin a new epoch of its transactional id after the leader has fenced the tasks of
its configuration, so that nothing fences it any more. Crash point: it has sent nothing yet; killed here, it leaves an
epoch behind that the next process of the task supersedes.
"""

from __future__ import annotations

from connect.chain.tolerance import StopRequested
from worker.runtime.control import Control
from worker.supervisor.messages import messages

__all__ = ["confirm_ownership"]


def confirm_ownership(control: Control) -> None:
    """Return when the worker has confirmed it. One that does not stops this process: :class:`StopRequested`."""
    request = control.request()
    control.send(messages.ConfirmOwnership(request))
    while control.reply(request) is None:
        if control.stopping:
            raise StopRequested
        control.wait_for_command()

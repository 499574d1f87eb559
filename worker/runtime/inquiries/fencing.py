"""Fencing the producers of tasks that may still run somewhere (KIP-618), in a process of its own."""

from __future__ import annotations

from worker.kafka.clients import roles
from worker.runtime.assembly import Assembly
from worker.runtime.source.fencing import fence
from worker.security.redaction import Redaction
from worker.supervisor.messages import messages

__all__ = ["fence_producers"]


def fence_producers(inquiry: messages.FenceProducers, redaction: Redaction) -> messages.Fenced:
    """Fence the former producer of each task.

    Raises :class:`~connect.errors.ConnectError` if one cannot be fenced.
    """
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    worker, props = assembly.worker_props, assembly.props
    fence(
        (f"task {task}", roles.source_producer_properties(worker, props, task, exactly_once=True))
        for task in inquiry.tasks
    )
    return messages.Fenced()

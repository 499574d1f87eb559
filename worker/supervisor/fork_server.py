"""The process from which all connectors and tasks of a worker are forked. It has the imports done, and no threads."""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from typing import Final

__all__ = ["fork_server_context", "start_fork_server"]

_PRELOAD: Final = (
    *("worker.runtime.child", "worker.runtime.entry", "worker.cli", "confluent_kafka", "orjson"),
    # What nearly every task converts with; shared by all of them when it is there before they are.
    *("converters.json", "converters.string", "converters.simple_header"),
    "worker.supervisor.frozen",
)


def fork_server_context() -> ForkServerContext:
    """What starts processes from the fork server, and that one with the first of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOAD))
    return context


def start_fork_server() -> None:
    """Start it now, so that its imports are made while this process makes its own. It ends with this process."""
    fork_server_context()
    forkserver.ensure_running()

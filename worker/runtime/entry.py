"""The entry of a child process, which the worker names without importing the modules that run in children."""

from __future__ import annotations

from multiprocessing.connection import Connection

__all__ = ["main"]


def main(connection: Connection, lease: str | None) -> None:
    """Run a child process; see :func:`worker.runtime.child.main`."""
    from worker.runtime import child  # noqa: PLC0415 - see above

    child.main(connection, lease)

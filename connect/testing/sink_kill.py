"""Kills of a sink task with SIGKILL, at the moments that matter, in a separate process."""

from __future__ import annotations

import enum
import multiprocessing
import os
import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from connect.data import TopicPartition
from connect.sink import SinkConnector
from connect.testing.sink_run import SinkTaskRun, TopicLog, sink_task_class, sink_task_configs

__all__ = ["KillMoment", "run_sink_until_killed"]

_processes: Final = multiprocessing.get_context("forkserver")


class KillMoment(enum.Enum):
    """The moment at which a sink task is killed."""

    AFTER_PUT = "after put, before flush"
    AFTER_FLUSH = "after flush, before the commit"
    AFTER_COMMIT = "after the commit"


def run_sink_until_killed(
    connector_class: type[SinkConnector[Any]],
    props: Mapping[str, str],
    log: TopicLog,
    moment: KillMoment,
    *,
    batches: int,
    batch_size: int,
    timeout: float = 60.0,
) -> None:
    """Run one task over all partitions in another process, let it put up to ``batches`` batches, then kill it.

    It continues from the offsets committed in ``log``, which afterwards holds what was committed before the kill. The
    connector must be importable by name: define it in a module, not in a function. Raises ``AssertionError`` if the
    process ended other than by the kill.
    """
    # The fork server preloads these, so that a process starts in milliseconds. Only the first call has an effect.
    _processes.set_forkserver_preload(["pytest", "connect.testing.sink_kill"])
    life = _Life(connector_class, dict(props), log, moment, batches, batch_size)
    ours, theirs = _processes.Pipe(duplex=False)
    process = _processes.Process(target=life.run, args=(theirs,), daemon=True)
    with ours:
        with theirs:
            process.start()
        committed, failure = _answer(ours, timeout)
        process.kill()
        process.join()
        process.close()
    if failure is not None:
        raise AssertionError(f"The task should have been killed {moment.value}, but was not.\n{failure}")
    log.committed = committed


def _answer(connection: Connection, timeout: float) -> tuple[dict[TopicPartition, int], str | None]:
    """Return the committed offsets of the process, and its failure, if any."""
    try:
        if connection.poll(timeout):
            answer: tuple[dict[TopicPartition, int], str | None] = connection.recv()
            return answer
    except EOFError:
        return {}, "It ended by itself."
    return {}, f"It did not come so far within {timeout} s."


@dataclass(frozen=True)
class _Life:
    """Runs the task in the other process."""

    connector_class: type[SinkConnector[Any]]
    props: Mapping[str, str]
    log: TopicLog
    moment: KillMoment
    batches: int
    batch_size: int

    def run(self, connection: Connection) -> None:
        try:
            self._live()
        except BaseException:
            connection.send(({}, traceback.format_exc()))
            raise
        connection.send((self.log.committed, None))
        os.kill(os.getpid(), signal.SIGKILL)

    def _live(self) -> None:
        config, *_ = sink_task_configs(self.connector_class, self.props, self.log)
        run = SinkTaskRun(sink_task_class(self.connector_class), config, self.log)
        run.start(self.log.partitions)
        for _ in range(self.batches):
            run.put(self.batch_size)
        if self.moment is KillMoment.AFTER_FLUSH:
            run.pre_commit()
        elif self.moment is KillMoment.AFTER_COMMIT:
            run.commit()

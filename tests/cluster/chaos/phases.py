"""What a process was doing when it was killed: it is frozen, looked at, and killed without having moved again.

The look is a dump of its stacks by py-spy, from outside: nothing in the product knows of it.
"""

from __future__ import annotations

import enum
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from equipment.waiting import wait_until

__all__ = ["AIMED", "PLACES", "Phase", "freeze", "look", "phase_of", "stacks", "state", "thaw"]

_PY_SPY: Final = Path(sys.executable).with_name("py-spy")
_ROOT: Final = Path(__file__).parents[3]
_AT_ONCE: Final = 6


class Phase(enum.StrEnum):
    """What a task does, or is done for it."""

    CONVERT = "convert"
    """Transformations and converters."""
    PRODUCE = "produce"
    """Records are handed to Kafka's client, in a transaction or not."""
    PUT = "put"
    """Records are handed to a sink; Spark reads, converts and writes them beside the table."""
    FLUSH = "flush"
    """All that is under way is made durable: a source waits for acknowledgements, a sink writes and syncs."""
    COMMIT = "commit"
    """Offsets are committed, with the records or after them."""
    FENCE = "fence"
    """Whoever did the work before is shut out."""
    POLL = "poll"
    """Waiting for records, and taking them."""
    START = "start"
    """On the way to the first record."""
    STOP = "stop"
    """After the last."""


AIMED: Final = (Phase.CONVERT, Phase.PRODUCE, Phase.FLUSH, Phase.COMMIT, Phase.FENCE)
"""The phases that have to be hit."""

PLACES: Final[Mapping[str, Phase]] = {
    "connect.internals.chain.source:SourceChain.process": Phase.CONVERT,
    "connect.internals.chain.sink:SinkChain.process": Phase.CONVERT,
    "connectors.spark.decoding.executor:_decode_split": Phase.CONVERT,
    "connectors.spark.decoding.executor:_survey_splits": Phase.CONVERT,
    "connectors.spark.decoding.executor:_write_splits": Phase.CONVERT,
    "worker.runtime.source.loop:SourceLoop._send": Phase.PRODUCE,
    "worker.runtime.sink.loop:SinkLoop._put": Phase.PUT,
    "connectors.spark.sink.loading.loader:Loader.load_topics": Phase.PUT,
    "connect.internals.delivery.delivery:Delivery.flush": Phase.FLUSH,
    "worker.runtime.source.exactly_once:ExactlyOnce._write_offsets": Phase.FLUSH,
    "connect.internals.chain.tolerance:Tolerance.flush": Phase.FLUSH,
    "worker.runtime.sink.loop:SinkLoop._commit": Phase.FLUSH,
    "connectors.spark.stores.local:LocalStore.sync_files": Phase.FLUSH,
    "connectors.spark.stores.local:LocalStore.sync_folders": Phase.FLUSH,
    "worker.runtime.source.exactly_once:ExactlyOnce._commit": Phase.COMMIT,
    "worker.runtime.offsets.offsets:OffsetCommitter.advance": Phase.COMMIT,
    "worker.runtime.offsets.offsets:OffsetCommitter.finish": Phase.COMMIT,
    "worker.runtime.sink.loop:SinkLoop._commit_offsets": Phase.COMMIT,
    "worker.runtime.bulk.loop:BulkLoop._commit": Phase.COMMIT,
    "connectors.spark.sink.ledger.ledger:Ledger.commit": Phase.COMMIT,
    "worker.kafka.clients.fencing_producer:FencingProducer._write": Phase.COMMIT,
    "worker.kafka.clients.fencing_producer:FencingProducer._claim": Phase.FENCE,
    "worker.runtime.inquiries.inquiries:fence_producers": Phase.FENCE,
    "worker.runtime.source.producer:TransactionalProducer.start": Phase.FENCE,
    "connectors.spark.sink.ledger.ledger:Ledger.open": Phase.FENCE,
    "connectors.spark.sink.ledger.ledger:Ledger.recover": Phase.FENCE,
    "connectors.spark.sink.ledger.ledger:Ledger.check_fence": Phase.FENCE,
    "worker.runtime.source.loop:SourceLoop._move": Phase.POLL,
    "worker.runtime.sink.loop:SinkLoop._move": Phase.POLL,
    "worker.runtime.bulk.loop:BulkLoop.run": Phase.POLL,
    "worker.runtime.source.loop:SourceLoop._finish": Phase.STOP,
    "worker.runtime.sink.loop:SinkLoop._finish": Phase.STOP,
    "worker.runtime.child:_stop": Phase.STOP,
    "worker.runtime.child:_run_task": Phase.START,
}
"""Functions, and what is done in them unless they have called one of the others."""


def freeze(pids: Sequence[int]) -> None:
    """Stop processes where they are; returns when they do not move any more."""
    _signal(pids, signal.SIGSTOP)
    for pid in pids:
        wait_until(f"process {pid} is stopped", lambda pid=pid: state(pid) in "TtZX")  # type: ignore[misc]


def thaw(pids: Sequence[int]) -> None:
    """Let stopped processes go on, if they are there."""
    _signal(pids, signal.SIGCONT)


def look(pids: Sequence[int]) -> dict[int, Phase]:
    """The phases that frozen processes are in; those in none of them are left out."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(zip(pids, pool.map(lambda pid: phase_of(stacks(pid)), pids), strict=True))
    return {pid: phase for pid, phase in found.items() if phase is not None}


def phase_of(stacks: Sequence[Sequence[str]]) -> Phase | None:
    """The phase of a process whose threads have these stacks, each from its innermost place on.

    What one of the threads fences or commits counts for more than that another waits for it.
    """
    phases = [phase for stack in stacks if (phase := _innermost(stack)) is not None]
    return min(phases, key=list(Phase).index, default=None)


def _innermost(stack: Sequence[str]) -> Phase | None:
    return next((PLACES[place] for place in stack if place in PLACES), None)


def stacks(pid: int) -> list[list[str]]:
    """The places in the stacks of a process's threads, as ``MODULE:FUNCTION``; none if it is gone or no Python."""
    dump = subprocess.run(
        [_PY_SPY, "dump", "--nonblocking", "--json", "--pid", str(pid)], capture_output=True, check=False
    )
    if dump.returncode != 0:
        return []
    return [[_place(frame) for frame in thread["frames"]] for thread in json.loads(dump.stdout)]


def _place(frame: Mapping[str, Any]) -> str:
    file = Path(frame["filename"])
    module = file.relative_to(_ROOT).with_suffix("").parts if file.is_relative_to(_ROOT) else (file.stem,)
    return f"{'.'.join(module)}:{frame['name']}"


def state(pid: int) -> str:
    """The state of a process as Linux tells it, ``X`` if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue

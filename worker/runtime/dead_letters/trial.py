"""Tries what a sink's chain would do with dead letters, without delivering anything."""

from __future__ import annotations

from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.record_trace import SinkTrace, trace_sink
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.steps import Steps, transformation_steps
from connect.internals.chain.tolerance import StageError, Tolerance
from worker.runtime.assembly import Assembly
from worker.runtime.dead_letters.replay import as_consumed

__all__ = ["Trial"]


class Trial:
    """Takes records through the converters and transformations of a sink, one by one."""

    def __init__(self, assembly: Assembly) -> None:
        self._tolerance = Tolerance(assembly.config.error_policy, (), lambda _: False)
        self._steps = transformation_steps(assembly.registry, assembly.config.transformations())
        self._decoder = SinkChain(Steps((), self._tolerance), assembly.converters(), self._tolerance)

    def traced(self, record: RawRecord) -> SinkTrace:
        """Return the way of a record through the chain."""
        return trace_sink(as_consumed(record.topic, [record]), 0, self._steps, self._decoder, self._tolerance)

    def refusal(self, record: RawRecord) -> str | None:
        """Return why a record would fail again, as a replay says it; ``None`` if it passes the chain."""
        error = self.error_of(self.traced(record))
        return None if error is None else f"{error.stage.value}: {error.cause}"

    @staticmethod
    def error_of(trace: SinkTrace) -> StageError | None:
        """Return the error that stops a record in the chain, if any; being dropped by a transformation is none."""
        return trace.error or next((step.error for step in trace.steps if step.error is not None), None)

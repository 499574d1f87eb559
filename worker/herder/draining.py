"""When connectors with ``run.until=drained`` come to their end: a function of where everything stands.

Sources say by themselves that they are drained. Sinks are told to drain once every such source of this worker is done,
because only then their topics hold all there will be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from worker.supervisor.lifecycle import Phase

__all__ = ["Drainable", "Draining", "draining"]


@dataclass(frozen=True, slots=True)
class Drainable:
    """A connector with ``run.until=drained``: the phase of the connector, and those of its tasks.

    ``tasks`` is ``None`` until the connector has said which tasks it wants. A stopped connector has drained before.
    """

    is_source: bool
    stopped: bool
    connector: Phase | None
    tasks: tuple[Phase | None, ...] | None

    @property
    def failed(self) -> bool:
        """Whether something of it has failed, so that it will not come to its end by itself."""
        return self.connector is Phase.FAILED or Phase.FAILED in (self.tasks or ())

    @property
    def drained(self) -> bool:
        """Whether it is at its end."""
        return self.stopped or (self.tasks is not None and all(phase is Phase.DRAINED for phase in self.tasks))

    @property
    def done(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.drained or self.failed


@dataclass(frozen=True, slots=True)
class Draining:
    """What follows: the sinks to tell, the connectors to stop, and whether all is done."""

    sinks: frozenset[str]
    stop: frozenset[str]
    finished: bool


def draining(connectors: Mapping[str, Drainable]) -> Draining:
    """Decide for all connectors with ``run.until=drained``."""
    sources_done = all(connector.done for connector in connectors.values() if connector.is_source)
    sinks = frozenset(name for name, connector in connectors.items() if sources_done and not connector.is_source)
    stop = frozenset(name for name, connector in connectors.items() if connector.drained and not connector.stopped)
    finished = bool(connectors) and all(connector.stopped or connector.failed for connector in connectors.values())
    return Draining(sinks, stop, finished)

"""A source that publishes the signals that it takes, and refuses those of the type ``refuse``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from connect.config import HIGH, Config, option
from connect.data import Schema, SourceRecord
from connect.errors import ConnectError
from connect.source import Signal, SourceConnector, SourceTask


class SignalledConfig(Config):
    """Where to publish."""

    topic: str = option(importance=HIGH, doc="Topic of the signals.")


class SignalledTask(SourceTask[SignalledConfig]):
    """Publishes each signal once, as JSON."""

    def start(self) -> None:
        self.taken: list[Signal] = []

    def poll(self) -> list[SourceRecord]:
        self.context.poll_when_readable([], 60.0)
        taken, self.taken = self.taken, []
        return [self._record(signal) for signal in taken]

    def take_signal(self, signal: Signal) -> None:
        if signal.type == "refuse":
            raise ConnectError("No such table: name one that there is.")
        if signal.type == "crash":
            raise ValueError("broken")
        self.taken.append(signal)

    def stop(self) -> None:
        pass

    def _record(self, signal: Signal) -> SourceRecord:
        text = json.dumps({"id": signal.id, "type": signal.type, "data": signal.data})
        record = SourceRecord(self.config.topic, text, Schema.string())
        return record.replace(source_partition={}, source_offset={"id": signal.id})


class SignalledConnector(SourceConnector[SignalledConfig]):
    """Takes signals."""

    task_class = SignalledTask
    watches = False


class DeafTask(SignalledTask):
    """Takes no signals."""

    take_signal = SourceTask.take_signal


class DeafConnector(SourceConnector[SignalledConfig]):
    """Takes no signals, and has as many tasks as there may be."""

    task_class = DeafTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        return [self.config.originals] * max_tasks

"""Signals of all channels, and what is done about them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.incremental import IncrementalSnapshots
from connect.kits.cdc.signals.actions import (
    BLOCKING,
    Action,
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    WindowMark,
    action_of,
    data_of,
)
from connect.kits.cdc.signals.channels import FileSignals, KafkaSignals, SignalOptions
from connect.source import Signal

__all__ = ["SignalTarget", "Signals"]

logger = logging.getLogger(__name__)
_LONGEST_LOOK_S: Final = 0.1
_COLUMNS: Final = 3


class SignalTarget(Protocol):
    """The task that signals are for."""

    def captured_tables(self) -> Sequence[str]:
        """Return the names of the captured tables; raises ``RetriableError`` while they are not known."""

    def shown_offset(self) -> str:
        """Return the current offset as text for the log."""

    def read_blocking(self, signal_id: str, asked: ExecuteSnapshot) -> None:
        """Read tables while the stream waits, as soon as that is possible; raises ``ConnectError`` if it never is."""


class Signals:
    """Takes signals, and has snapshots begin, pause, go on and stop. Used by the task's thread alone."""

    def __init__(
        self, options: SignalOptions, prefix: str, incremental: IncrementalSnapshots, target: SignalTarget
    ) -> None:
        channels = options.signal_enabled_channels
        self._incremental = incremental
        self._target = target
        self._interval = options.signal_poll_interval_ms / 1000
        self._patience = min(options.signal_kafka_poll_timeout_ms / 1000, _LONGEST_LOOK_S)
        self._file = FileSignals(options.signal_file) if "file" in channels else None
        self._kafka: KafkaSignals | None = None
        if "kafka" in channels:
            topic = options.signal_kafka_topic.strip() or f"{prefix}-signal"
            offset = incremental.state.signal_offset
            self._kafka = KafkaSignals(topic, prefix, options.consumer_settings(), offset)
        self._has_channels = bool(self._file or self._kafka)
        self._look_at = 0.0

    def take(self, signal: Signal) -> None:
        """Do what a signal asks for; raises :class:`~connect.errors.ConnectError` if that cannot be done."""
        self._act(signal.id, action_of(signal))

    def take_row(self, row: Sequence[str | None]) -> None:
        """Do what a row of the signal table asks for; one that cannot be done is logged."""
        try:
            if len(row) < _COLUMNS or row[1] is None:
                raise ConnectError("A signal table has the columns id, type and data, in this order.")
            self.take(Signal(row[0] or "", row[1], data_of(row[2])))
        except ConnectError as error:
            logger.warning("A signal of the signal table is passed over: %s", error)

    def look(self, now: float) -> bool:
        """Take the signals of the file and of the topic, if it is time. Returns whether there were any."""
        if not self._has_channels or now < self._look_at:
            return False
        count = 0
        self._look_at = now + self._interval
        try:
            for offset, signal in self._kafka.take(self._patience) if self._kafka is not None else ():
                self._take_logged(signal, "topic")
                self._incremental.take_signal_offset(offset)
                count += 1
            for signal in self._file.take() if self._file is not None else ():
                self._take_logged(signal, "file")
                count += 1
        except ConnectError as error:
            # The stream goes on: signals are not worth a gap.
            logger.warning("Signals cannot be taken now, and are looked for again: %s", error)
        return count > 0

    def seconds_left(self, now: float, seconds: float) -> float:
        """Return how long the task may rest, at most so many seconds."""
        return min(seconds, max(0.0, self._look_at - now)) if self._has_channels else seconds

    def stored(self) -> None:
        """Note that an offset was stored, after what the signals have asked for so far."""
        if self._file is not None:
            try:
                self._file.stored()
            except ConnectError as error:
                logger.warning("%s", error)

    def close(self) -> None:
        """Close the client of the topic."""
        if self._kafka is not None:
            self._kafka.close()

    def _take_logged(self, signal: Signal, channel: str) -> None:
        try:
            self.take(signal)
        except RetriableError:
            raise
        except ConnectError as error:
            logger.warning("Signal %s of the %s is passed over: %s", signal.id, channel, error)

    def _act(self, signal_id: str, action: Action) -> None:
        match action:
            case ExecuteSnapshot(kind=kind):
                self._execute(signal_id, action, is_blocking=kind == BLOCKING)
            case StopSnapshot():
                stopped = self._incremental.stop(action.is_meant)
                logger.info("Signal %s stops reading %s.", signal_id, ", ".join(stopped) or "no table")
            case PauseSnapshot():
                self._incremental.pause()
            case ResumeSnapshot():
                self._incremental.resume()
            case LogMessage(message):
                logger.info("%s", message.replace("{}", self._target.shown_offset()))
            case WindowMark():
                pass

    def _execute(self, signal_id: str, asked: ExecuteSnapshot, *, is_blocking: bool) -> None:
        captured = self._target.captured_tables()
        collections = asked.collections(captured)
        if not collections:
            raise ConnectError(
                f"No captured table has a name that matches {', '.join(asked.tables)}. Captured are: "
                f"{', '.join(sorted(captured)) or 'none'}."
            )
        if is_blocking:
            self._target.read_blocking(signal_id, asked)
        else:
            self._incremental.add(collections, signal_id)

"""The measurements of change data capture under the names that Debezium's MBeans have in dashboards.

The names and labels are those of the rules that Debezium publishes for the JMX exporter: ``debezium_metrics_`` and the
attribute, with the labels ``plugin`` (the database), ``name`` (``topic.prefix``) and ``context``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from worker.metrics.snapshot import OwnSeries
from worker.metrics.text import Labels

__all__ = ["DebeziumName", "debezium_name"]

_LABELS: Final = ("plugin", "name", "context")
_TABLE: Final = (*_LABELS, "table")
_PREFIX: Final = "debezium_metrics_"
_OF_DEBEZIUM: Final = "debezium_"
"""How the names of measurements begin that Debezium's own connector makes in a JVM."""
_MS: Final = 1000.0


class DebeziumName(NamedTuple):
    """A name of Debezium, the labels that its series have, and the factor between its unit and the measurement's."""

    name: str
    labels: tuple[str, ...] = _LABELS
    factor: float = 1.0

    def value(self, measured: float) -> float:
        """Return a measured value in Debezium's unit. Milliseconds are whole, and -1 means that none is known."""
        if self.factor == 1.0 or measured < 0:
            return measured
        return float(round(measured * self.factor))


def _seconds(attribute: str) -> DebeziumName:
    return DebeziumName(f"{_PREFIX}{attribute}", factor=_MS)


def _plain(attribute: str) -> DebeziumName:
    return DebeziumName(f"{_PREFIX}{attribute}")


_NAMES: Final[Mapping[str, DebeziumName]] = MappingProxyType(
    {
        "cdc_connected": _plain("Connected"),
        "cdc_lag_seconds": _seconds("MilliSecondsBehindSource"),
        "cdc_lag_bytes": _plain("BytesBehindSource"),
        "cdc_since_last_event_seconds": _seconds("MilliSecondsSinceLastEvent"),
        "cdc_events_total": _plain("TotalNumberOfEventsSeen"),
        "cdc_creates_total": _plain("TotalNumberOfCreateEventsSeen"),
        "cdc_updates_total": _plain("TotalNumberOfUpdateEventsSeen"),
        "cdc_deletes_total": _plain("TotalNumberOfDeleteEventsSeen"),
        "cdc_transactions_total": _plain("NumberOfCommittedTransactions"),
        "cdc_captured_tables": _plain("CapturedTables"),
        "cdc_log_position": _plain("BinlogPosition"),
        "cdc_snapshot_tables": _plain("TotalTableCount"),
        "cdc_snapshot_remaining_tables": _plain("RemainingTableCount"),
        "cdc_snapshot_running": _plain("SnapshotRunning"),
        "cdc_snapshot_paused": _plain("SnapshotPaused"),
        "cdc_snapshot_completed": _plain("SnapshotCompleted"),
        "cdc_snapshot_seconds": DebeziumName(f"{_PREFIX}SnapshotDurationInSeconds"),
        "cdc_snapshot_rows_total": DebeziumName(f"{_PREFIX}RowsScanned", _TABLE),
    }
)


def _of_jmx(name: str, labels: Mapping[str, str]) -> DebeziumName:
    """Return Debezium's name for what its own connector measures in a JVM, whose attributes have capitals."""
    attribute = "".join(word.capitalize() for word in name.removeprefix(_OF_DEBEZIUM).split("_"))
    return DebeziumName(f"{_PREFIX}{attribute}", (*_LABELS, *(label for label in labels if label not in _LABELS)))


def debezium_name(series: OwnSeries) -> tuple[DebeziumName, Labels] | None:
    """Return Debezium's name and labels for a plugin's measurement; ``None`` if it has none."""
    labels = dict(zip(series[1][::2], series[1][1::2], strict=True))
    found = _of_jmx(series[0], labels) if series[0].startswith(_OF_DEBEZIUM) else _NAMES.get(series[0])
    if found is None or labels.keys() != set(found.labels):
        return None
    return found, tuple((label, labels[label]) for label in found.labels)

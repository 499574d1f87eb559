"""The measurements of mirrors under the names that MirrorMaker's MBeans have in dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from worker.metrics.catalogue import Group
from worker.metrics.snapshot import OwnSeries
from worker.metrics.text import Labels

__all__ = ["ClientName", "MirrorName", "client_name", "mirror_name"]

_SOURCE: Final = "kafka_connect_mirror_mirrorsourceconnector"
_CHECKPOINT: Final = "kafka_connect_mirror_mirrorcheckpointconnector"
_PARTITION: Final = ("source", "target", "topic", "partition")
_GROUP: Final = ("source", "target", "group", "topic", "partition")
_CLIENT: Final = "client_id"
_MS: Final = 1000.0


class MirrorName(NamedTuple):
    """A name of MirrorMaker, the labels that its series have, and the factor between its unit and the measurement's."""

    name: str
    labels: tuple[str, ...]
    factor: float = 1.0

    def value(self, measured: float) -> float:
        """Return a measured value in MirrorMaker's unit. Milliseconds are whole, as the measurements are."""
        return measured if self.factor == 1.0 else float(round(measured * self.factor))


def _times(measurement: str, attribute: str, prefix: str, labels: tuple[str, ...]) -> dict[str, MirrorName]:
    """Return the names of a time: that of the last record, and those of the last 30 to 60 seconds."""
    kinds = ("", "_min", "_max", "_avg")
    return {f"{measurement}{kind}_seconds": MirrorName(f"{prefix}_{attribute}_ms{kind}", labels, _MS) for kind in kinds}


_NAMES: Final[Mapping[str, MirrorName]] = MappingProxyType(
    {
        "mirror_records_total": MirrorName(f"{_SOURCE}_record_count", _PARTITION),
        "mirror_record_rate": MirrorName(f"{_SOURCE}_record_rate", _PARTITION),
        "mirror_bytes_total": MirrorName(f"{_SOURCE}_byte_count", _PARTITION),
        "mirror_byte_rate": MirrorName(f"{_SOURCE}_byte_rate", _PARTITION),
        **_times("mirror_record_age", "record_age", _SOURCE, _PARTITION),
        **_times("mirror_replication_latency", "replication_latency", _SOURCE, _PARTITION),
        **_times("mirror_checkpoint_latency", "checkpoint_latency", _CHECKPOINT, _GROUP),
    }
)


class ClientName(NamedTuple):
    """A metric of a Java client: its group, its attribute, and the labels of its series after the client's id."""

    group: Group
    attribute: str
    labels: tuple[str, ...] = ()


_CLIENT_NAMES: Final[Mapping[str, ClientName]] = MappingProxyType(
    {
        "mirror_consumer_connection_count": ClientName(Group.CONSUMER, "connection-count"),
        "mirror_consumer_incoming_byte_total": ClientName(Group.CONSUMER, "incoming-byte-total"),
        "mirror_consumer_outgoing_byte_total": ClientName(Group.CONSUMER, "outgoing-byte-total"),
        "mirror_consumer_records_consumed_total": ClientName(Group.FETCH, "records-consumed-total"),
        "mirror_consumer_bytes_consumed_total": ClientName(Group.FETCH, "bytes-consumed-total"),
        "mirror_consumer_records_lag": ClientName(Group.FETCH, "records-lag", ("topic", "partition")),
    }
)


def mirror_name(series: OwnSeries) -> tuple[MirrorName, Labels] | None:
    """Return MirrorMaker's name and labels for a plugin's measurement; ``None`` if it has none."""
    found = _NAMES.get(series[0])
    labels = None if found is None else _ordered(series, found.labels)
    return None if found is None or labels is None else (found, labels)


def client_name(series: OwnSeries) -> tuple[ClientName, Labels] | None:
    """Return the name that a measurement of a mirror's consumer has with a Java client, and its labels.

    The first label is the client's id. ``None`` if it is no such measurement.
    """
    found = _CLIENT_NAMES.get(series[0])
    labels = None if found is None else _ordered(series, (_CLIENT, *found.labels))
    return None if found is None or labels is None else (found, labels)


def _ordered(series: OwnSeries, wanted: tuple[str, ...]) -> Labels | None:
    """Return the labels in the wanted order; ``None`` if there are others, or fewer."""
    pairs = series[1]
    labels = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return tuple((label, labels[label]) for label in wanted) if labels.keys() == set(wanted) else None

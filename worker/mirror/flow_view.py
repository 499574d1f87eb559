"""Presents the state of a mirror's flow: its connectors, its lag, and what a failover would read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from worker.formatting import utc_text
from worker.mirror.flow import FlowName, Parts, Views, differing

__all__ = ["NO_FIGURES", "figures", "flow_view"]

Document: TypeAlias = dict[str, Any]

_INCOMPLETE: Final = "INCOMPLETE"
_MISSING: Final = "MISSING"
_RUNNING: Final = "RUNNING"
_WORST_FIRST: Final = ("FAILED", _MISSING, "UNASSIGNED", "RESTARTING", "STOPPED", "PAUSED")
_LAG: Final = "mirror_lag_records"
_LAG_SECONDS: Final = "mirror_lag_seconds"
_LATENCY: Final = "mirror_replication_latency_avg_seconds"
_AGAIN: Final = "mirror_failover_read_again"
_UNKNOWN: Final = "mirror_failover_unknown_partitions"
_VERIFIED: Final = "mirror_verified_timestamp_seconds"
_EQUAL: Final = "mirror_verified_records"
_DIFFERS: Final = "mirror_verified_differs"

NO_FIGURES: Final[Document] = dict.fromkeys(("lag", "latency", "failover", "verified"))
"""The figures of a flow that no task has reported on."""


def flow_view(flow: FlowName, parts: Parts, views: Views) -> Document:
    """Return a flow with its connectors and their states, without its configuration and figures.

    It is ``INCOMPLETE`` if a connector is missing or configured differently from the first one; otherwise its state is
    the worst of theirs.
    """
    different = frozenset(differing(parts))
    connectors = [
        {
            "name": part.name,
            "kind": kind,
            **_states(views.get(part.name, {}), is_there=part.config is not None),
            "as_flow": part.name not in different,
        }
        for kind, part in parts.items()
    ]
    return {
        "name": str(flow),
        "source": flow.source,
        "target": flow.target,
        "state": _INCOMPLETE if different else _worst(connectors),
        "connectors": connectors,
    }


def figures(measured: Mapping[str, Any], labels: Mapping[str, str]) -> Document:
    """Return the figures of a flow from the measurements of a connector that have these labels.

    Lag is the sum of records over all partitions and the seconds of the slowest one; latency is that of the slowest
    one. A failover is described by the translated groups, the records that all of them would read again, and the
    partitions where that is unknown. A verification has the oldest time of any verified partition, the number of equal
    records, and the number of partitions with a difference.
    """
    found: dict[str, list[float]] = {}
    for name, value in _values(measured, labels):
        found.setdefault(name, []).append(value)
    document: Document = {}
    if _LAG in found:
        seconds = max(found.get(_LAG_SECONDS, [0.0]))
        document["lag"] = {"records": int(sum(found[_LAG])), "seconds": seconds, "partitions": len(found[_LAG])}
    if _LATENCY in found:
        document["latency"] = {"seconds": max(found[_LATENCY])}
    if _AGAIN in found:
        document["failover"] = {
            "groups": len(found[_AGAIN]),
            "read_again": int(sum(found[_AGAIN])),
            "unknown_partitions": int(sum(found.get(_UNKNOWN, []))),
        }
    if _VERIFIED in found:
        document["verified"] = {
            "at": utc_text(min(found[_VERIFIED])),
            "partitions": len(found[_VERIFIED]),
            "equal": int(sum(found.get(_EQUAL, []))),
            "differing": int(sum(found.get(_DIFFERS, []))),
        }
    return document


def _states(views: Mapping[str, Any], *, is_there: bool) -> Document:
    """Return the states of a connector and its tasks; a new connector has none yet."""
    status = views.get("status")
    if status is None:
        return {"state": "UNASSIGNED" if is_there else _MISSING, "tasks": []}
    tasks = [{"id": task["id"], "state": task["state"]} for task in status["tasks"]]
    return {"state": status["connector"]["state"], "tasks": tasks}


def _worst(connectors: list[Document]) -> str:
    states = {part["state"] for connector in connectors for part in (connector, *connector["tasks"])}
    return next((state for state in _WORST_FIRST if state in states), _RUNNING)


def _values(measured: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for task in measured["tasks"]:
        for each in task["measurements"]:
            if each["value"] is not None and labels.items() <= each["labels"].items():
                yield each["name"], each["value"]

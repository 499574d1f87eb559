"""``/ui``, ``/ui/flows`` and ``/ui/cluster``: the connectors, those that need attention first, mirrors, workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, Final

from flask import Blueprint, Response, request

from rest.access.caller import caller
from rest.http.timeouts import Patience
from rest.resources.cluster import visible_cluster
from rest.resources.mirror_flows import visible_flows
from rest.ui.charts import charts_of
from rest.ui.listing import COLUMNS, ROWS, Wanted, as_csv, listed
from rest.ui.page import shown
from rest.ui.summaries import counted, summaries
from worker.herder.connectors.requests import ConnectorRequests
from worker.herder.herder import Herder
from worker.herder.metrics_history import Histories
from worker.metrics.history import Part, added
from worker.mirror.flow import flows_of
from worker.security.permissions import Right

__all__ = ["cluster_page", "flows_page", "overview"]

_STEP: Final = 10
_OPERATING: Final = (Right.OPERATE, Right.DELETE)


def overview(blueprint: Blueprint, connectors: ConnectorRequests, histories: Histories, patience: Patience) -> None:
    """Add the page of all connectors to the blueprint."""

    @blueprint.get("")
    def list_connectors() -> Response:
        views = patience.wait(connectors.expanded())
        found = summaries({name: views[name] for name in caller().visible(views)})
        wanted = Wanted.of(request.args)
        page = listed(found, wanted)
        names = {connector.name for connector in page.connectors}
        recorded, parts = patience.wait(histories.gathered(None, _STEP))
        return shown(
            "overview.html",
            connectors=page.connectors,
            listed=page,
            columns=COLUMNS,
            row_counts=ROWS,
            total=len(found),
            counts=counted(found),
            wanted=wanted,
            choices={
                "class": _choices(wanted.plugin, (connector.plugin for connector in found)),
                "worker": _choices(wanted.worker, (worker for connector in found for worker in connector.workers)),
            },
            charts=charts_of(added([_only(part, names) for part in (recorded.part(_STEP), *parts)])),
            lacking=_lacking(views),
            has_flows=bool(flows_of(views)),
        )

    @blueprint.get("/connectors.csv")
    def export() -> Response:
        views = patience.wait(connectors.expanded())
        found = summaries({name: views[name] for name in caller().visible(views)})
        wanted = replace(Wanted.of(request.args), rows=max(1, len(found)), page=1)
        response = Response(as_csv(listed(found, wanted).connectors), content_type="text/csv; charset=utf-8")
        response.headers["Content-Disposition"] = 'attachment; filename="connectors.csv"'
        return response


def _choices(chosen: str, found: Iterable[str]) -> list[str]:
    """Return what a filter can be set to, in order; none if there is nothing to choose from."""
    words = {*found, chosen} - {""}
    return sorted(words) if len(words) > 1 or chosen else []


def _only(part: Part, names: Set[str]) -> Part:
    """Return the part of a history that concerns some connectors."""
    return replace(part, connectors={name: series for name, series in part.connectors.items() if name in names})


def cluster_page(blueprint: Blueprint, herder: Herder, patience: Patience) -> None:
    """Add the page of the workers and of this worker's processes to the blueprint."""

    @blueprint.get("/cluster")
    def cluster_view() -> Response:
        caller().require(Right.CLUSTER)
        return shown("cluster.html", view=visible_cluster(herder, patience))


def _lacking(views: Mapping[str, Any]) -> dict[str, str]:
    """Return the rights that the caller lacks, by connector; empty without authentication."""
    who = caller()
    if who.configs is None:
        return {}
    lacking = {name: [right for right in _OPERATING if not who.may(right, name)] for name in views}
    return {name: " ".join(rights) for name, rights in lacking.items() if rights}


def flows_page(blueprint: Blueprint, connectors: ConnectorRequests, patience: Patience) -> None:
    """Add the page to the blueprint."""

    @blueprint.get("/flows")
    def list_flows() -> Response:
        flows = visible_flows(connectors, patience)
        return shown("flows.html", flows=[{**flow, "lacks": _lacks(flow)} for flow in flows])


def _lacks(flow: dict[str, Any]) -> str:
    """Return why the caller may not pause or stop a flow; empty if it may."""
    for connector in flow["connectors"]:
        if not caller().may(Right.OPERATE, connector["name"]):
            return f"You lack the right {Right.OPERATE} on {connector['name']}"
    return ""

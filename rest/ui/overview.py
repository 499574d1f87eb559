"""``/ui``: all connectors, those that need attention first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import Blueprint, Response, request

from rest.access.caller import caller
from rest.http.waiting import Patience
from rest.ui.charts import charts_of
from rest.ui.page import shown
from rest.ui.trouble import Filter, connectors_of, counted, matching
from worker.herder.connectors.requests import ConnectorRequests
from worker.herder.metrics_history import HistoryRequests
from worker.metrics.history import added
from worker.mirror.flow import flows_of
from worker.security.permissions import Right

__all__ = ["overview"]

_LONGEST: Final = 200
_STEP: Final = 10
_OPERATING: Final = (Right.OPERATE, Right.DELETE)


def overview(
    blueprint: Blueprint, connectors: ConnectorRequests, histories: HistoryRequests, patience: Patience
) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("")
    def list_connectors() -> Response:
        views = patience.wait(connectors.expanded())
        found = connectors_of({name: views[name] for name in caller().visible(views)})
        wanted = Filter(
            request.args.get("show", "")[:_LONGEST],
            request.args.get("type", "")[:_LONGEST],
            request.args.get("q", "")[:_LONGEST],
        )
        matched = matching(found, wanted)
        recorded, parts = patience.wait(histories.gathered(None, _STEP))
        return shown(
            "overview.html",
            connectors=matched,
            total=len(found),
            counts=counted(found),
            wanted=wanted,
            charts=charts_of(added([recorded.part(_STEP), *parts])),
            lacking=_lacking(views),
            has_flows=bool(flows_of(views)),
        )


def _lacking(views: Mapping[str, Any]) -> dict[str, str]:
    """The rights for actions that the caller lacks on connectors; where nobody signs in, on none."""
    who = caller()
    if who.inventory is None:
        return {}
    lacking = {name: [right for right in _OPERATING if not who.may(right, name)] for name in views}
    return {name: " ".join(rights) for name, rights in lacking.items() if rights}

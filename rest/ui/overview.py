"""``/ui``: all connectors, those that need attention first."""

from __future__ import annotations

from flask import Blueprint, Response, request

from rest.http.waiting import Patience
from rest.ui.page import shown
from rest.ui.trouble import Filter, connectors_of, counted, matching
from worker.herder.connectors.requests import ConnectorRequests

__all__ = ["overview"]

_LONGEST = 200


def overview(blueprint: Blueprint, connectors: ConnectorRequests, patience: Patience) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("")
    def list_connectors() -> Response:
        views = patience.wait(connectors.expanded())
        found = connectors_of(views)
        wanted = Filter(
            request.args.get("show", "")[:_LONGEST],
            request.args.get("type", "")[:_LONGEST],
            request.args.get("q", "")[:_LONGEST],
        )
        return shown(
            "overview.html",
            connectors=matching(found, wanted),
            total=len(found),
            counts=counted(found),
            wanted=wanted,
        )

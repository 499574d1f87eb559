"""``/ui/flows``: the flows of mirrors, each with its three connectors as one object."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from rest.access.caller import caller
from rest.http.timeouts import Patience
from rest.resources.mirror_flows import visible_flows
from rest.ui.page import shown
from worker.herder.connectors.requests import ConnectorRequests
from worker.security.permissions import Right

__all__ = ["flows_page"]


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

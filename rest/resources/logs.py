"""``/connectors/NAME/logs``: the last log lines of a worker for a connector and its tasks."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, jsonify, request

from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.cluster.view import ClusterView
from worker.herder.connectors.requests import ConnectorRequests
from worker.recent_log import RecentLog

__all__ = ["logs"]

_LINES: Final = 100
_MOST_LINES: Final = 10_000


def logs(
    connectors: ConnectorRequests, cluster: ClusterView, recent: RecentLog, worker_id: str, patience: Patience
) -> Blueprint:
    """Create the resource; each worker answers with its own lines, unless ``worker`` names another."""
    blueprint = Blueprint("logs", __name__, url_prefix="/connectors")

    @blueprint.get("/<name:name>/logs")
    def lines(name: str) -> Response:
        position, most = _number("after", 0, 2**63 - 1), _number("lines", _LINES, _MOST_LINES)
        if (asked := request.args.get("worker")) is not None:
            patience.wait(cluster.at(asked))
        patience.wait(connectors.config(name))
        found = recent.since(name, position, most)
        return jsonify({"worker_id": worker_id, "lines": list(found.lines), "next": found.position})

    return blueprint


def _number(parameter: str, default: int, most: int) -> int:
    text = request.args.get(parameter)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
        raise BadRequestError(f"Invalid {parameter}={text!r}: use a number from 0 to {most}.")
    return int(text)

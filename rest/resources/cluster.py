"""``/cluster``: the workers, who leads, who runs what, and the last rebalances."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify

from rest.access.caller import caller
from rest.http.waiting import Patience
from worker.herder.cluster.view import ClusterRequests

__all__ = ["cluster"]


def cluster(cluster: ClusterRequests, patience: Patience) -> Blueprint:
    """The resource; each worker tells what it knows, and the leader knows every worker."""
    blueprint = Blueprint("cluster", __name__)

    @blueprint.get("/cluster")
    def view() -> Response:
        view = patience.wait(cluster.view())
        return jsonify({**view, "workers": [_visible(worker) for worker in view["workers"]]})

    return blueprint


def _visible(worker: dict[str, Any]) -> dict[str, Any]:
    """A worker with those connectors that the caller may see."""
    seen = set(caller().visible({*worker["connectors"], *(task["connector"] for task in worker["tasks"])}))
    return {
        **worker,
        "connectors": [name for name in worker["connectors"] if name in seen],
        "tasks": [task for task in worker["tasks"] if task["connector"] in seen],
    }

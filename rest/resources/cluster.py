"""``/cluster``: the workers, who leads, who runs what, and the last rebalances."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rest.http.waiting import Patience
from worker.herder.cluster.view import ClusterRequests

__all__ = ["cluster"]


def cluster(cluster: ClusterRequests, patience: Patience) -> Blueprint:
    """The resource; each worker tells what it knows, and the leader knows every worker."""
    blueprint = Blueprint("cluster", __name__)

    @blueprint.get("/cluster")
    def view() -> Response:
        return jsonify(patience.wait(cluster.view()))

    return blueprint

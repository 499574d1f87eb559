"""``/cluster``: the workers, their connectors and tasks, the last rebalances, and the processes of this worker.

``/cluster/workers/ID/drain`` moves the work of a worker to the others.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify

from rest.access.caller import caller
from rest.http.timeouts import Patience
from worker.herder.herder import Herder
from worker.metrics.processes import processes_document, use_of, with_jvms

__all__ = ["cluster", "visible_cluster"]


def cluster(herder: Herder, patience: Patience) -> Blueprint:
    """Create the resources. Each worker answers from its own knowledge; only the leader knows every worker."""
    blueprint = Blueprint("cluster", __name__)

    @blueprint.get("/cluster")
    def view() -> Response:
        return jsonify(visible_cluster(herder, patience))

    @blueprint.put("/cluster/workers/<name:worker>/drain")
    def drain(worker: str) -> tuple[str, int]:
        patience.wait(herder.cluster.drain(worker, draining=True))
        return "", 202

    @blueprint.delete("/cluster/workers/<name:worker>/drain")
    def take_work_again(worker: str) -> tuple[str, int]:
        patience.wait(herder.cluster.drain(worker, draining=False))
        return "", 202

    return blueprint


def visible_cluster(herder: Herder, patience: Patience) -> dict[str, Any]:
    """Return what this worker knows of the cluster, limited to the connectors that the caller may see."""
    view = patience.wait(herder.cluster.view())
    snapshot = herder.snapshot
    lives = None if snapshot is None else snapshot.lives
    jvms = {} if lives is None else lives.jvms
    processes = processes_document({} if lives is None else lives.processes(), with_jvms(use_of, jvms))
    named = {item["connector"] for item in processes} - {None}
    seen = set(caller().visible(named | {name for worker in view["workers"] for name in _names(worker)}))
    return {
        **view,
        "workers": [_visible(worker, seen) for worker in view["workers"]],
        "processes": [item for item in processes if item["connector"] is None or item["connector"] in seen],
    }


def _names(worker: dict[str, Any]) -> set[str]:
    return {*worker["connectors"], *(task["connector"] for task in worker["tasks"])}


def _visible(worker: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    return {
        **worker,
        "connectors": [name for name in worker["connectors"] if name in seen],
        "tasks": [task for task in worker["tasks"] if task["connector"] in seen],
    }

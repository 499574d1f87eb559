"""``/ui/cluster``: the workers, and what each runs."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from rest.access.caller import caller
from rest.http.waiting import Patience
from rest.ui.page import shown
from worker.herder.cluster.view import ClusterRequests
from worker.security.permissions import Right

__all__ = ["cluster_page"]


def cluster_page(blueprint: Blueprint, cluster: ClusterRequests, patience: Patience) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("/cluster")
    def cluster_view() -> Response:
        caller().require(Right.CLUSTER)
        view = patience.wait(cluster.view())
        visible = set(caller().visible({name for worker in view["workers"] for name in _names(worker)}))
        return shown("cluster.html", view=view, visible=visible)


def _names(worker: dict[str, Any]) -> set[str]:
    return {*worker["connectors"], *(task["connector"] for task in worker["tasks"])}

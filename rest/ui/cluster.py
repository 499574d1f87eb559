"""``/ui/cluster``: the workers, and what each runs."""

from __future__ import annotations

from flask import Blueprint, Response

from rest.http.waiting import Patience
from rest.ui.page import shown
from worker.herder.cluster.view import ClusterRequests

__all__ = ["cluster_page"]


def cluster_page(blueprint: Blueprint, cluster: ClusterRequests, patience: Patience) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("/cluster")
    def cluster_view() -> Response:
        return shown("cluster.html", view=patience.wait(cluster.view()))

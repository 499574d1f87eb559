"""``/ui/cluster``: the workers, what each runs, and what the processes of this one use."""

from __future__ import annotations

from flask import Blueprint, Response

from rest.access.caller import caller
from rest.http.waiting import Patience
from rest.resources.cluster import visible_cluster
from rest.ui.page import shown
from worker.herder.herder import Herder
from worker.security.permissions import Right

__all__ = ["cluster_page"]


def cluster_page(blueprint: Blueprint, herder: Herder, patience: Patience) -> None:
    """Put the page on the blueprint."""

    @blueprint.get("/cluster")
    def cluster_view() -> Response:
        caller().require(Right.CLUSTER)
        return shown("cluster.html", view=visible_cluster(herder, patience))

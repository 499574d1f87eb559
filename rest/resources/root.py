"""``GET /``: what answers here."""

from __future__ import annotations

from flask import Blueprint

__all__ = ["root"]


def root(version: str, cluster_id: str) -> Blueprint:
    """The resource at ``/``."""
    blueprint = Blueprint("root", __name__)

    @blueprint.get("/")
    def server_info() -> dict[str, str]:
        return {"version": version, "commit": "unknown", "kafka_cluster_id": cluster_id}

    return blueprint

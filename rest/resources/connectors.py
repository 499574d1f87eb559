"""``/connectors``: the connectors and how they are."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, jsonify

from worker.herder.herder import Herder

__all__ = ["connectors"]

_TIMEOUT: Final = 90.0


def connectors(herder: Herder) -> Blueprint:
    """The resources below ``/connectors``."""
    blueprint = Blueprint("connectors", __name__, url_prefix="/connectors")

    @blueprint.get("")
    def names() -> Response:
        return jsonify(herder.connector_names().result(_TIMEOUT))

    @blueprint.get("/<path:name>/status")
    def status(name: str) -> dict[str, Any]:
        return herder.connector_status(name).result(_TIMEOUT)

    return blueprint

"""``/connectors/NAME/offsets/reset`` and ``/lag``: where a connector stands, and moving a sink to where it should."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rest.http.body import flag, json_object
from rest.http.waiting import Patience
from worker.herder.herder import Herder
from worker.herder.offsets.bodies import FIELDS

__all__ = ["offsets"]


def offsets(herder: Herder, patience: Patience) -> Blueprint:
    """The resources of offsets that Kafka Connect has not."""
    blueprint = Blueprint("offsets", __name__, url_prefix="/connectors/<name:name>")

    @blueprint.post("/offsets/reset")
    def reset(name: str) -> Response:
        body = json_object(FIELDS)
        return jsonify(patience.wait(herder.reset_consumer_offsets(name, body, dry_run=flag("dry_run"))))

    @blueprint.get("/lag")
    def lag(name: str) -> Response:
        return jsonify(patience.wait(herder.connector_lag(name)))

    return blueprint

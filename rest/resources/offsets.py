"""``/connectors/NAME/offsets``, ``/offsets/reset`` and ``/lag``: reading and moving offsets."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from rest.http.body import flag, json_object
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.offsets.offsets import Offsets
from worker.herder.offsets.request_bodies import FIELDS

__all__ = ["offsets"]


def offsets(offsets: Offsets, patience: Patience) -> Blueprint:
    """Create the resources of offsets; ``/offsets/reset`` and ``/lag`` are not in Kafka Connect."""
    blueprint = Blueprint("offsets", __name__, url_prefix="/connectors/<name:name>")

    @blueprint.get("/offsets")
    def read(name: str) -> Response:
        return jsonify(patience.wait(offsets.read(name)))

    @blueprint.patch("/offsets")
    def alter(name: str) -> Response:
        given = json_object(frozenset({"offsets"})).get("offsets") or []
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
            raise BadRequestError("offsets must be an array of objects, each with a partition and an offset.")
        return jsonify(patience.wait(offsets.alter(name, given)))

    @blueprint.delete("/offsets")
    def reset_all(name: str) -> Response:
        return jsonify(patience.wait(offsets.alter(name, None)))

    @blueprint.post("/offsets/reset")
    def reset(name: str) -> Response:
        body = json_object(FIELDS)
        return jsonify(patience.wait(offsets.reset(name, body, dry_run=flag("dry_run"))))

    @blueprint.get("/lag")
    def lag(name: str) -> Response:
        return jsonify(patience.wait(offsets.lag(name)))

    return blueprint

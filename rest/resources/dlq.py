"""``/connectors/NAME/dlq``: the records that a connector has given up, and giving them another try."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from rest.http.body import json_object
from rest.http.waiting import Patience
from worker.herder.dead_letters import FIELDS, read_after, read_limit
from worker.herder.herder import Herder

__all__ = ["dlq"]


def dlq(herder: Herder, patience: Patience) -> Blueprint:
    """The resources of dead letter queues."""
    blueprint = Blueprint("dlq", __name__, url_prefix="/connectors/<name:name>/dlq")

    @blueprint.get("")
    def records(name: str) -> Response:
        after, limit = read_after(request.args.get("after")), read_limit(request.args.get("limit"))
        return jsonify(patience.wait(herder.dead_letters(name, after, limit)))

    @blueprint.post("/replay")
    def replay(name: str) -> Response:
        return jsonify(patience.wait(herder.replay_dead_letters(name, json_object(FIELDS))))

    return blueprint

"""``/connectors/NAME/dlq``: the dead letters of a connector, their replay and their repair."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from rest.access.auditing import note_changes
from rest.http.body import json_object
from rest.http.timeouts import Patience
from worker.herder.dead_letter_repairs import REPAIR_FIELDS, read_place
from worker.herder.dead_letters import FIELDS, DeadLetters, read_after, read_limit

__all__ = ["dead_letters"]


def dead_letters(dead_letters: DeadLetters, patience: Patience) -> Blueprint:
    """Create the resources of dead letters."""
    blueprint = Blueprint("dead_letters", __name__, url_prefix="/connectors/<name:name>/dlq")

    @blueprint.get("")
    def list_dead_letters(name: str) -> Response:
        after, limit = read_after(request.args.get("after")), read_limit(request.args.get("limit"))
        return jsonify(patience.wait(dead_letters.list(name, after, limit)))

    @blueprint.post("/replay")
    def replay(name: str) -> Response:
        return jsonify(patience.wait(dead_letters.replay(name, json_object(FIELDS))))

    @blueprint.get("/<name:record>")
    def one(name: str, record: str) -> Response:
        return jsonify(patience.wait(dead_letters.one(name, read_place(record))))

    @blueprint.post("/<name:record>/repair")
    def repair(name: str, record: str) -> Response:
        done = patience.wait(dead_letters.repair(name, read_place(record), json_object(REPAIR_FIELDS)))
        note_changes(done["changes"])
        return jsonify(done)

    return blueprint

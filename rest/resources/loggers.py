"""``/admin/loggers``: what is logged."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, jsonify, request

from rest.body import json_object
from rest.waiting import Patience
from worker.errors import BadRequestError
from worker.herder.herder import Herder

__all__ = ["loggers"]

_CLUSTER: Final = "cluster"


def loggers(herder: Herder, patience: Patience) -> Blueprint:
    """The resources below ``/admin/loggers``."""
    blueprint = Blueprint("loggers", __name__, url_prefix="/admin/loggers")

    @blueprint.get("")
    def levels() -> Response:
        return jsonify(patience.wait(herder.logger_levels()))

    @blueprint.get("/<name:logger>")
    def level(logger: str) -> Response:
        return jsonify(patience.wait(herder.logger_level(logger)))

    @blueprint.put("/<name:logger>")
    def set_level(logger: str) -> tuple[Response | str, int]:
        wanted = json_object(numbers_as_text=True).get("level")
        if wanted is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        changed = patience.wait(herder.set_logger_level(logger, str(wanted)))
        # A standalone worker is the whole of its cluster.
        return ("", 204) if request.args.get("scope", "").lower() == _CLUSTER else (jsonify(changed), 200)

    return blueprint

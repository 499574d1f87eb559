"""``/admin/loggers``: what is logged."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, jsonify, request

from rest.http.body import json_object
from rest.http.waiting import Patience
from worker.errors import BadRequestError
from worker.herder.herder import Herder
from worker.loggers import level_named

__all__ = ["loggers"]

_CLUSTER: Final = "cluster"


def loggers(herder: Herder, patience: Patience, *, distributed: bool) -> Blueprint:
    """The resources below ``/admin/loggers``; a worker that is not ``distributed`` is the whole of its cluster."""
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
        of_cluster = request.args.get("scope", "").lower() == _CLUSTER
        if of_cluster and distributed:
            level_named(str(wanted))
            patience.wait(herder.set_cluster_logger_level(logger, str(wanted)))
            return "", 204
        changed = patience.wait(herder.set_logger_level(logger, str(wanted)))
        return ("", 204) if of_cluster else (jsonify(changed), 200)

    return blueprint

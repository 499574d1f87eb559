"""``/admin/loggers``: log levels."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, jsonify, request

from rest.http.body import json_object
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.loggers import Loggers
from worker.loggers import level_named

__all__ = ["loggers"]

_CLUSTER: Final = "cluster"


def loggers(loggers: Loggers, patience: Patience, *, distributed: bool) -> Blueprint:
    """Create the resources below ``/admin/loggers``; a worker that is not ``distributed`` is its whole cluster."""
    blueprint = Blueprint("loggers", __name__, url_prefix="/admin/loggers")

    @blueprint.get("")
    def levels() -> Response:
        return jsonify(patience.wait(loggers.levels()))

    @blueprint.get("/<name:logger>")
    def level(logger: str) -> Response:
        return jsonify(patience.wait(loggers.level(logger)))

    @blueprint.put("/<name:logger>")
    def set_level(logger: str) -> tuple[Response | str, int]:
        wanted = json_object(numbers_as_text=True).get("level")
        if wanted is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        of_cluster = request.args.get("scope", "").lower() == _CLUSTER
        if of_cluster and distributed:
            level_named(str(wanted))
            patience.wait(loggers.set_cluster_level(logger, str(wanted)))
            return "", 204
        changed = patience.wait(loggers.set_level(logger, str(wanted)))
        return ("", 204) if of_cluster else (jsonify(changed), 200)

    return blueprint

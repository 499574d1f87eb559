"""Previews: what a connector, deployed or not, would do with its next records, without changing anything."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from rest.access.caller import caller
from rest.http.body import bare_config
from rest.http.timeouts import Patience
from worker.herder.previews import Previews, PreviewWanted, read_preview
from worker.security.permissions import Right

__all__ = ["previews"]


def previews(previews: Previews, patience: Patience) -> Blueprint:
    """Create the resources of previews, which are not in Kafka Connect."""
    blueprint = Blueprint("previews", __name__)

    @blueprint.post("/connectors/<name:name>/preview")
    def deployed(name: str) -> Response:
        return jsonify(patience.wait(previews.deployed(name, _wanted())))

    @blueprint.post("/connector-plugins/<name:plugin>/config/preview")
    def given(plugin: str) -> Response:
        wanted = _wanted()
        config = bare_config()
        name = (config.get("name") or "").strip() or None
        if name is not None:
            caller().require(Right.PREVIEW, name)
            config = caller().restored(name, config)
        caller().require_edit(name, config)
        return jsonify(patience.wait(previews.given(plugin, config, wanted)))

    return blueprint


def _wanted() -> PreviewWanted:
    return read_preview(request.args)

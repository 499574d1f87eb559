"""``/history`` and ``/connectors/NAME/history``: rate and lag over the last five minutes, for charts."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, jsonify, request

from rest.access.caller import caller
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.metrics_history import Histories
from worker.metrics.history import SECONDS, SLOT, added, document

__all__ = ["history"]

_STEP_OF_ALL: Final = 10
_STEPS: Final = range(SLOT, SECONDS + 1, SLOT)


def history(histories: Histories, patience: Patience) -> Blueprint:
    """Create the resources; they ask the other workers for the history of their tasks."""
    blueprint = Blueprint("history", __name__)

    @blueprint.get("/history")
    def all_connectors() -> Response:
        shown = _shown(None, _step(_STEP_OF_ALL))
        known: dict[str, Any] = shown["connectors"]
        return jsonify({**shown, "connectors": {name: known[name] for name in caller().visible(known)}})

    @blueprint.get("/connectors/<name:name>/history")
    def one_connector(name: str) -> Response:
        return jsonify(_shown(name, _step(SLOT)))

    def _shown(name: str | None, step: int) -> dict[str, Any]:
        if request.args.get("forward") == "false":
            return document(patience.wait(histories.own(name)).part(step), step)
        recorded, parts = patience.wait(histories.gathered(name, step))
        return document(added([recorded.part(step), *parts]), step)

    return blueprint


def _step(default: int) -> int:
    text = request.args.get("step", str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(SECONDS))) or int(text) not in _STEPS:
        raise BadRequestError(f"Invalid step={text!r}: use an even number of seconds from {SLOT} to {SECONDS}.")
    return int(text)

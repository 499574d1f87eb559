"""``/history`` and ``/connectors/NAME/history``: rate and lag over five minutes to 24 hours, for charts."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, jsonify, request

from rest.access.caller import caller
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.metrics_history import Histories
from worker.metrics.history import DAY, MINUTE, SECONDS, SLOT, added, document

__all__ = ["history"]

_STEP_OF_ALL: Final = 10
_STEPS: Final = range(SLOT, SECONDS + 1, SLOT)
_LONG_STEPS: Final = range(MINUTE, DAY + 1, MINUTE)
_LONGEST: Final = range(SLOT, DAY + 1)


def history(histories: Histories, patience: Patience) -> Blueprint:
    """Create the resources; they ask the other workers for the history of their tasks."""
    blueprint = Blueprint("history", __name__)

    @blueprint.get("/history")
    def all_connectors() -> Response:
        shown = _shown(None, _STEP_OF_ALL)
        known: dict[str, Any] = shown["connectors"]
        return jsonify({**shown, "connectors": {name: known[name] for name in caller().visible(known)}})

    @blueprint.get("/connectors/<name:name>/history")
    def one_connector(name: str) -> Response:
        return jsonify(_shown(name, SLOT))

    def _shown(name: str | None, default: int) -> dict[str, Any]:
        last = _number("last", SECONDS, _LONGEST, f"a number of seconds from {SLOT} to {DAY}")
        if last > SECONDS:
            step = _number("step", MINUTE, _LONG_STEPS, f"a multiple of {MINUTE} seconds, up to {DAY}")
        else:
            step = _number("step", default, _STEPS, f"an even number of seconds from {SLOT} to {SECONDS}")
        if request.args.get("forward") == "false":
            return document(patience.wait(histories.own(name, last)).part(step), step)
        recorded, parts = patience.wait(histories.gathered(name, step, last))
        return document(added([recorded.part(step), *parts]), step)

    return blueprint


def _number(name: str, default: int, allowed: range, what: str) -> int:
    text = request.args.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(DAY))) or int(text) not in allowed:
        raise BadRequestError(f"Invalid {name}={text!r}: use {what}.")
    return int(text)

"""``/connectors/NAME/timeline``: what has happened to a connector, and who has changed it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from flask import Blueprint, Response, jsonify

from connect.errors import ConnectError
from rest.access.caller import caller
from rest.http.timeouts import Patience
from rest.resources.versions import history_document, shown_time
from worker.herder.connectors.versions import Versions
from worker.herder.timelines import Event, Timelines
from worker.security.permissions import Right

__all__ = ["timeline", "timeline_document"]

Document: TypeAlias = dict[str, Any]
_CREATED: Final = "created"
_CHANGED: Final = "configuration changed"
_DELETED: Final = "deleted"
_MOST_KEYS: Final = 5


def timeline(timelines: Timelines, versions: Versions, patience: Patience) -> Blueprint:
    """Create the resource."""
    blueprint = Blueprint("timeline", __name__, url_prefix="/connectors")

    @blueprint.get("/<name:name>/timeline")
    def of_connector(name: str) -> Response:
        caller().require(Right.VIEW, name)
        return jsonify(timeline_document(name, timelines, versions, patience))

    return blueprint


def timeline_document(name: str, timelines: Timelines, versions: Versions, patience: Patience) -> Document:
    """Return what has happened to a connector, the newest first; who may see its configuration sees who changed it."""
    events = [_event(event) for event in patience.wait(timelines.of(name))]
    if caller().may(Right.CONFIGS, name):
        events += _changes(name, versions, patience)
    return {"name": name, "events": sorted(events, key=lambda event: str(event["at"]), reverse=True)}


def _event(event: Event) -> Document:
    return {
        "at": shown_time(event.at),
        "what": event.what.value,
        "text": event.text,
        "worker_id": event.worker_id,
        "tasks": list(event.tasks),
        "count": event.count,
        "author": None,
    }


def _changes(name: str, versions: Versions, patience: Patience) -> Iterable[Document]:
    try:
        found = patience.wait(versions.read(name))
    except ConnectError:
        return  # without a history, or while it cannot be read, the rest is shown
    for version in history_document(name, found, dict)["versions"]:
        keys = [change["key"] for change in version["changes"]]
        named = ", ".join(keys[:_MOST_KEYS]) + (f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else "")
        is_first = version["version"] == 1
        what = _DELETED if version["config"] is None else _CREATED if is_first else _CHANGED
        text = named if what is _CHANGED else ""
        yield {"at": version["at"], "what": what, "text": text, "worker_id": "", "tasks": [], "count": 1} | {
            "author": version["author"]
        }

"""``/connectors/NAME/config/history``: the versions of a configuration, and restoring one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from flask import Blueprint, Response, jsonify, request

from connect.errors import NotFoundError
from rest.access.caller import caller
from rest.http.headers import expected_revision, revision_tag
from rest.http.paths import escaped
from rest.http.timeouts import Patience
from worker.herder.connectors.requests import ConnectorRequests
from worker.herder.connectors.versions import ConfigHistory, Versions
from worker.security.permissions import Right
from worker.stores.versions.version import Version

__all__ = ["history_document", "restoring", "shown_time", "versions"]

Document: TypeAlias = dict[str, Any]
_MOST_DIGITS: Final = 10


def versions(versions: Versions, connectors: ConnectorRequests, patience: Patience) -> Blueprint:
    """Create the resources; restoring a version includes the secrets that the caller may not see."""
    blueprint = Blueprint("versions", __name__, url_prefix="/connectors")

    @blueprint.get("/<name:name>/config/history")
    def history(name: str) -> Response:
        found = patience.wait(versions.read(name))
        who = caller()
        answer = jsonify(history_document(name, found, lambda config: who.shown_config(name, config)))
        if found.present is not None:
            answer.headers["ETag"] = revision_tag(found.present.revision)
        return answer

    @blueprint.post("/<name:name>/config/history/<version>/restore")
    def restore(name: str, version: str) -> tuple[Response, int, dict[str, str]]:
        caller().require_somewhere(Right.EDIT)
        config = patience.wait(versions.read(name)).config(_number(version))
        caller().require_edit(name, config)
        change = connectors.put_config(name, config, expected_revision(), caller().author)
        is_new, shown = patience.wait(change)
        answer = jsonify(caller().shown_info(shown))
        if not is_new:
            return answer, 200, {}
        return answer, 201, {"Location": f"{request.host_url}connectors/{escaped(name)}"}

    return blueprint


def history_document(name: str, history: ConfigHistory, show: Callable[[Mapping[str, str]], Document]) -> Document:
    """Return the versions, the newest first, each with its changes; ``show`` hides secrets.

    A key whose secret has changed is among the changes, although both values are hidden.
    """
    kept = history.versions
    before = [None, *kept] if kept and kept[0].number == 1 else [*kept[:1], *kept]
    shown = [_version(*pair, show) for pair in zip(before, kept, strict=False)]
    revision = None if history.present is None else history.present.revision
    return {"name": name, "revision": revision, "versions": shown[::-1]}


def restoring(history: ConfigHistory, show: Callable[[Mapping[str, str]], Document]) -> dict[int, list[Document]]:
    """Return what restoring each version would change in the current configuration."""
    present = history.present.config if history.present is not None else None
    return {
        version.number: _changes(present, version.seen.config, show)
        for version in history.versions
        if version.seen.config is not None
    }


def shown_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as the REST API shows it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _version(before: Version | None, version: Version, show: Callable[[Mapping[str, str]], Document]) -> Document:
    seen = version.seen
    return {
        "version": version.number,
        "at": shown_time(seen.at / 1000),
        "author": seen.author,
        "config": None if seen.config is None else show(seen.config),
        "changes": _changes(None if before is None else before.seen.config, seen.config, show),
    }


def _changes(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None, show: Callable[[Mapping[str, str]], Document]
) -> list[Document]:
    old, new = before or {}, after or {}
    shown_old, shown_new = show(old), show(new)
    return [
        {"key": key, "before": shown_old.get(key), "after": shown_new.get(key)}
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise NotFoundError(f"Invalid version {text!r}: use a version number from the history.")
    return int(text)

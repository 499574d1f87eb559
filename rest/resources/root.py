"""``/``, ``/health`` and ``/openapi.json``: the version of the worker, its health, and the description of its API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flask import Blueprint, Response, jsonify

from connect.errors import ConnectError
from rest.http.timeouts import Patience
from rest.openapi import openapi_document
from worker.herder.cluster.standing import Trouble
from worker.herder.requests import Request

__all__ = ["root"]

_HEALTH_TIMEOUT_SECONDS: Final = 10.0
_API_VERSION: Final = "4.3.1"
"""The Kafka Connect whose API this is. Clients look here whether there are ``/offsets``, ``/stop`` and the like: kcctl
asks for nothing that is newer than the version."""
_HEALTHY: Final = {
    "status": "healthy",
    "message": "Worker has completed startup and is ready to handle requests.",
}


def root(
    ping: Callable[[], Request[None]],
    unready: Callable[[], Request[list[str]]],
    version: str,
    cluster_id: str,
    *,
    with_admin: bool,
    sign_in: bool = False,
    hide: Callable[[str], str] = str,
    warnings: Callable[[], list[str]] = list,
    troubles: Callable[[], list[Trouble]] = list,
) -> Blueprint:
    """Create the resources at ``/``, ``/health`` and ``/openapi.json``.

    ``ping`` completes when the herder answers; ``unready`` returns the reasons why the worker cannot run connectors.
    ``warnings`` returns problems that an operator should fix although the worker is healthy. ``sign_in`` tells whether
    clients must authenticate, and ``hide`` removes secrets from reasons. While there are ``troubles``, the worker
    cannot do its work.
    """
    blueprint = Blueprint("root", __name__)
    patience = Patience(_HEALTH_TIMEOUT_SECONDS)

    @blueprint.get("/")
    def server_info() -> dict[str, str]:
        return {"version": _API_VERSION, "commit": f"sluice-{version}", "kafka_cluster_id": cluster_id}

    @blueprint.get("/health")
    def health() -> tuple[Response, int]:
        try:
            patience.wait(ping())
        except ConnectError as error:
            message = f"Worker was unable to handle this request and may be unable to handle other requests. {error}"
            return jsonify({"status": "unhealthy", "message": message}), 500
        has = troubles()
        found = {"warnings": warnings(), "troubles": [trouble.document() for trouble in has]}
        details = {name: items for name, items in found.items() if items}
        if stopped := [trouble.message for trouble in has if not trouble.works_on]:
            return jsonify({"status": "unhealthy", "message": " ".join(stopped), **details}), 503
        return jsonify({**_HEALTHY, **details}), 200

    @blueprint.get("/health/live")
    def live() -> tuple[Response, int]:
        try:
            patience.wait(ping())
        except ConnectError as error:
            return jsonify({"status": "dead", "reasons": [str(error)]}), 503
        return jsonify({"status": "alive", "reasons": []}), 200

    @blueprint.get("/health/ready")
    def ready() -> tuple[Response, int]:
        try:
            found = patience.wait(unready())
            reasons = [hide(reason) for reason in found]
        except ConnectError as error:
            reasons = [str(error)]
        return jsonify({"status": "not ready" if reasons else "ready", "reasons": reasons}), 503 if reasons else 200

    @blueprint.get("/openapi.json")
    def openapi() -> dict[str, Any]:
        return openapi_document(version, with_admin=with_admin, sign_in=sign_in)

    return blueprint

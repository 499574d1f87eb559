"""``/connector-plugins``: the installed plugins, their keys, and the validation of configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from flask import Blueprint, Response, jsonify, request

from connect.internals.plugins import PluginKind, PluginRegistry
from rest.access.caller import caller
from rest.http.body import bare_config
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.connectors.writes import GivenConfig
from worker.herder.plugins import Plugins
from worker.security.permissions import Right

__all__ = ["plugins"]

_OTHER_KINDS: Final = (
    PluginKind.TRANSFORMATION,
    PluginKind.PREDICATE,
    PluginKind.CONVERTER,
    PluginKind.HEADER_CONVERTER,
)


def plugins(plugins: Plugins, patience: Patience) -> Blueprint:
    """Create the resources below ``/connector-plugins``."""
    blueprint = Blueprint("plugins", __name__, url_prefix="/connector-plugins")

    @blueprint.get("")
    def all_plugins() -> Response:
        only_connectors = request.args.get("connectorsOnly", "true").lower() == "true"
        return jsonify(list(_listed(plugins.registry(), only_connectors=only_connectors)))

    @blueprint.get("/<name:plugin>/config")
    def keys(plugin: str) -> Response:
        return jsonify(patience.wait(plugins.keys(plugin, request.args.get("version", "latest"))))

    @blueprint.put("/<name:plugin>/config/validate")
    def validate(plugin: str) -> Response:
        config, connector = _asked()
        connect, choices = _flag("connect"), _flag("choices")
        return jsonify(patience.wait(plugins.validate(plugin, config, connector, connect=connect, choices=choices)))

    @blueprint.put("/<name:plugin>/config/choices")
    def choices(plugin: str) -> Response:
        config, connector = _asked()
        key = request.args.get("key")
        if not key:
            raise BadRequestError("The query has no key: add ?key=KEY, one of choices in the answer of a validation.")
        return jsonify(patience.wait(plugins.choices(plugin, config, key, connector)))

    return blueprint


def _asked() -> tuple[GivenConfig, str | None]:
    """Return the configuration in the body and, if it is a patch, the connector whose; the caller may edit it."""
    config = bare_config()
    connector = request.args.get("connector")
    if connector is None:
        caller().require_edit((config.get("name") or "").strip() or None, config)
    else:
        caller().require(Right.CONFIGS, connector)
        caller().require_patch(connector, config)
    return config, connector


def _flag(name: str) -> bool:
    return request.args.get(name, "false").lower() == "true"


def _listed(registry: PluginRegistry, *, only_connectors: bool) -> Iterator[dict[str, Any]]:
    """Return each version of each plugin in Kafka Connect's order: sinks, sources, then the other kinds."""
    connectors = registry.entries(PluginKind.CONNECTOR)
    listed = [(entry, kind) for kind in ("sink", "source") for entry in connectors if entry.type == kind]
    for other in () if only_connectors else _OTHER_KINDS:
        listed += [(entry, other.value) for entry in registry.entries(other)]
    shown = {(entry.class_name, kind, entry.version): entry for entry, kind in reversed(listed)}
    for name, kind, version in dict.fromkeys((entry.class_name, kind, entry.version) for entry, kind in listed):
        java = shown[name, kind, version].java
        yield {
            "class": name,
            "type": kind,
            **({"version": version} if version is not None else {}),
            **({"location": str(java)} if java is not None else {}),
        }

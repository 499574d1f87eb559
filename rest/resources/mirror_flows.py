"""``/mirror/flows``: the flows of mirrors, each one object that is compiled to three connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import Blueprint, Response, jsonify, request

from connect.errors import ConnectError, NotFoundError
from rest.access.auditing import note_connectors
from rest.access.caller import caller
from rest.http.body import bare_config
from rest.http.paths import escaped
from rest.http.timeouts import Patience
from worker.herder.connectors.requests import ConnectorRequests
from worker.mirror.flow import FlowName, Parts, Views, compiled, config_of_flow, flows_of, parts_of
from worker.mirror.flow_view import NO_FIGURES, figures, flow_view
from worker.security.permissions import Right
from worker.stores.config.store import TargetState

__all__ = ["mirror_flows", "visible_flows"]

_TARGETS: Final = {
    "pause": TargetState.PAUSED,
    "resume": TargetState.STARTED,
    "stop": TargetState.STOPPED,
}


def mirror_flows(connectors: ConnectorRequests, patience: Patience) -> Blueprint:
    """Return the resources below ``/mirror``."""
    blueprint = Blueprint("mirror_flows", __name__, url_prefix="/mirror/flows")
    reader = _FlowReader(connectors, patience)

    @blueprint.get("")
    def all_flows() -> Response:
        views, found = reader.visible()
        return jsonify([flow_view(flow, parts, views) for flow, parts in found.items()])

    @blueprint.get("/<name:flow>")
    def one_flow(flow: str) -> Response:
        name = FlowName.parse(flow)
        views, parts = reader.known(name, Right.VIEW)
        return jsonify({**_shown(name, parts, views), **reader.figures({name: parts})[name]})

    @blueprint.put("/<name:flow>")
    def put(flow: str) -> tuple[Response, int, dict[str, str]]:
        name = FlowName.parse(flow)
        before = patience.wait(connectors.expanded())
        parts = parts_of(name, before)
        first, *_ = parts.values()
        configs = compiled(name, parts, caller().restored(first.name, bare_config()))
        for connector, config in configs.items():
            caller().require_edit(connector, config)
        _note(parts)
        is_new = patience.wait(connectors.put_all(configs, caller().author))
        views = patience.wait(connectors.expanded())
        document = _shown(name, parts_of(name, views), views)
        if not is_new:
            return jsonify(document), 200, {}
        return jsonify(document), 201, {"Location": f"{request.host_url}mirror/flows/{escaped(str(name))}"}

    @blueprint.delete("/<name:flow>")
    def delete(flow: str) -> tuple[str, int]:
        _, parts = reader.known(FlowName.parse(flow), Right.DELETE)
        _note(parts)
        patience.wait(connectors.delete_all(_there(parts), caller().author))
        return "", 204

    @blueprint.put("/<name:flow>/<any(pause, resume, stop):change>")
    def change_state(flow: str, change: str) -> tuple[str, int]:
        _, parts = reader.known(FlowName.parse(flow), Right.OPERATE)
        patience.wait(connectors.set_target_state_of_all(_there(parts), _TARGETS[change]))
        return "", 202

    return blueprint


def visible_flows(connectors: ConnectorRequests, patience: Patience) -> list[dict[str, Any]]:
    """Return the flows that the caller may see, with their figures."""
    reader = _FlowReader(connectors, patience)
    views, found = reader.visible()
    measured = reader.figures(found)
    return [{**flow_view(flow, parts, views), **measured[flow]} for flow, parts in found.items()]


class _FlowReader:
    """Reads flows for a caller, who sees only those on which it has rights."""

    def __init__(self, connectors: ConnectorRequests, patience: Patience) -> None:
        self._connectors = connectors
        self._patience = patience

    def visible(self) -> tuple[Views, Mapping[FlowName, Parts]]:
        """Return all connectors, and the flows whose connectors the caller may all see."""
        views = self._patience.wait(self._connectors.expanded())
        seen = frozenset(caller().visible(views))
        return views, {flow: parts for flow, parts in flows_of(views).items() if seen.issuperset(_there(parts))}

    def known(self, name: FlowName, right: Right) -> tuple[Views, Parts]:
        """Return all connectors and those of a flow; the caller needs a right on each of these."""
        views = self._patience.wait(self._connectors.expanded())
        parts = flows_of(views).get(name) or parts_of(name, views)
        for part in parts.values():
            caller().require(right, part.name)
        if not _there(parts):
            # Another worker may have created it a moment ago; this one is up to date once it has answered.
            self._look_again(name, parts)
            views = self._patience.wait(self._connectors.expanded())
            parts = parts_of(name, views)
        return views, parts

    def figures(self, flows: Mapping[FlowName, Parts]) -> dict[FlowName, dict[str, Any]]:
        """Return the measurements of each flow's tasks, without tasks that no worker reports on."""
        # All requests are sent before the first answer is awaited.
        asked = {flow: [self._connectors.measurements(name) for name in _there(parts)] for flow, parts in flows.items()}
        found: dict[FlowName, dict[str, Any]] = {}
        for flow, all_begun in asked.items():
            labels = {"source": flow.source, "target": flow.target}
            found[flow] = dict(NO_FIGURES)
            for begun in all_begun:
                try:
                    measured = self._patience.wait(begun)
                except ConnectError:
                    continue
                found[flow] |= figures(measured, labels)
        return found

    def _look_again(self, name: FlowName, parts: Parts) -> None:
        first, *_ = parts.values()
        try:
            self._patience.wait(self._connectors.entry(first.name))
        except NotFoundError:
            raise NotFoundError(f"Flow {name} not found") from None


def _there(parts: Parts) -> list[str]:
    return [part.name for part in parts.values() if part.config is not None]


def _shown(name: FlowName, parts: Parts, views: Views) -> dict[str, Any]:
    """Return a flow with as much of its configuration as the caller may see."""
    first = next(part for part in parts.values() if part.config is not None)
    assert first.config is not None
    seen = caller().shown_config(first.name, first.config)
    config = {key: seen[key] for key in config_of_flow(parts) if key in seen}
    return {**flow_view(name, parts, views), "config": config}


def _note(parts: Parts) -> None:
    note_connectors({part.name: part.config or {} for part in parts.values()})

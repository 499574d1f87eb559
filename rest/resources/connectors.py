"""``/connectors``: the connectors, their configurations, states and tasks."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from flask import Blueprint, Response, jsonify, request

from connect.errors import NotFoundError
from rest.access.caller import caller
from rest.http.body import bare_config, check_members, config_of, flag, json_object
from rest.http.headers import expected_revision, revision_tag
from rest.http.paths import escaped
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.connectors.requests import ConnectorRequests
from worker.herder.connectors.writes import initial_target
from worker.stores.config.store import TargetState

__all__ = ["connectors"]

_FIELDS: Final = frozenset({"name", "config", "initial_state"})
_OF_SIGNALS: Final = frozenset({"id", "type", "data"})
_MOST_DIGITS: Final = 10
_VIEWS: Final = ("status", "info")


def connectors(connectors: ConnectorRequests, patience: Patience) -> Blueprint:
    """Create the resources below ``/connectors``, except those of offsets and dead letters."""
    blueprint = Blueprint("connectors", __name__, url_prefix="/connectors")

    @blueprint.get("")
    def names() -> Response:
        views = request.args.getlist("expand")
        if not views:
            known = patience.wait(connectors.names())
            return jsonify(caller().visible(known))
        found = patience.wait(connectors.expanded())
        return jsonify({name: _expanded(found[name], views) for name in caller().visible(found)})

    @blueprint.post("")
    def create() -> tuple[Response, int, dict[str, str]]:
        body = _new_connector()
        config = config_of(body["config"])
        name = _name(body, config)
        target = initial_target(body.get("initial_state"))
        caller().require_edit(name, config)
        return _created(patience.wait(connectors.create(name, config, target, caller().author)))

    @blueprint.get("/<name:name>")
    def info(name: str) -> Response:
        shown = patience.wait(connectors.info(name))
        return jsonify(caller().shown_info(shown))

    @blueprint.delete("/<name:name>")
    def delete(name: str) -> tuple[str, int]:
        patience.wait(connectors.delete(name, caller().author))
        return "", 204

    @blueprint.get("/<name:name>/config")
    def config(name: str) -> Response:
        entry = patience.wait(connectors.entry(name))
        answer = jsonify(caller().shown_config(name, dict(entry.config)))
        answer.headers["ETag"] = revision_tag(entry.revision)
        return answer

    @blueprint.put("/<name:name>/config")
    def put_config(name: str) -> tuple[Response, int, dict[str, str]]:
        name = name.strip()
        given = caller().restored(name, bare_config())
        caller().require_edit(name, given)
        change = connectors.put_config(name, given, expected_revision(), caller().author)
        is_new, shown = patience.wait(change)
        return _created(shown) if is_new else (jsonify(caller().shown_info(shown)), 200, {})

    @blueprint.patch("/<name:name>/config")
    def patch_config(name: str) -> Response:
        patch = caller().restored(name, bare_config())
        caller().require_patch(name, patch)
        shown = patience.wait(connectors.patch_config(name, patch, expected_revision(), caller().author))
        return jsonify(caller().shown_info(shown))

    @blueprint.get("/<name:name>/status")
    def status(name: str) -> Response:
        from_worker = request.args.get("forward") == "false"
        return jsonify(patience.wait(connectors.status(name, refresh=not from_worker)))

    @blueprint.get("/<name:name>/loads")
    def loads(name: str) -> Response:
        return jsonify(patience.wait(connectors.loads(name)))

    @blueprint.get("/<name:name>/measurements")
    def measurements(name: str) -> Response:
        from_worker = request.args.get("forward") == "false"
        return jsonify(patience.wait(connectors.measurements(name, of_all=not from_worker)))

    @blueprint.post("/<name:name>/restart")
    def restart(name: str) -> tuple[Response | str, int]:
        tasks, failed = flag("includeTasks"), flag("onlyFailed")
        shown = patience.wait(connectors.restart(name, include_tasks=tasks, only_failed=failed))
        return (jsonify(shown), 202) if tasks or failed else ("", 204)

    @blueprint.put("/<name:name>/<any(pause, resume):change>")
    def pause_or_resume(name: str, change: str) -> tuple[str, int]:
        target = TargetState.PAUSED if change == "pause" else TargetState.STARTED
        patience.wait(connectors.set_target_state(name, target))
        return "", 202

    @blueprint.put("/<name:name>/stop")
    def stop(name: str) -> tuple[str, int]:
        patience.wait(connectors.set_target_state(name, TargetState.STOPPED))
        return "", 204

    @blueprint.get("/<name:name>/topics")
    def topics(name: str) -> dict[str, Any]:
        return {name: {"topics": patience.wait(connectors.topics(name))}}

    @blueprint.put("/<name:name>/topics/reset")
    def reset_topics(name: str) -> tuple[str, int]:
        patience.wait(connectors.reset_topics(name))
        return "", 202

    _serve_tasks(blueprint, connectors, patience)
    return blueprint


def _serve_tasks(blueprint: Blueprint, connectors: ConnectorRequests, patience: Patience) -> None:
    """Add the resources of a connector's tasks."""

    @blueprint.get("/<name:name>/tasks")
    def tasks(name: str) -> Response:
        asker = caller()
        tasks = patience.wait(connectors.task_configs(name))
        return jsonify([{**task, "config": asker.shown_config(name, task["config"], of_task=True)} for task in tasks])

    @blueprint.post("/<name:name>/signals")
    def signal(name: str) -> tuple[Response, int]:
        given = _signal(json_object(_OF_SIGNALS))
        patience.wait(connectors.signal(name, given["id"], given["type"], given["data"]))
        return jsonify({"id": given["id"], "type": given["type"], "task": 0}), 202

    @blueprint.get("/<name:name>/tasks/<task>/status")
    def task_status(name: str, task: str) -> Response:
        return jsonify(patience.wait(connectors.task_status(name, _task(name, task))))

    @blueprint.post("/<name:name>/tasks/<task>/restart")
    def restart_task(name: str, task: str) -> tuple[str, int]:
        patience.wait(connectors.restart_task(name, _task(name, task)))
        return "", 204


def _created(shown: dict[str, Any]) -> tuple[Response, int, dict[str, str]]:
    location = f"{request.host_url}connectors/{escaped(shown['name'])}"
    return jsonify(caller().shown_info(shown)), 201, {"Location": location}


def _expanded(found: Mapping[str, Any], views: Sequence[str]) -> dict[str, Any]:
    """Return the requested views of a connector, with the part of its configuration that the caller may see."""
    shown = {view: found[view] for view in _VIEWS if view in views and view in found}
    return {**shown, "info": caller().shown_info(shown["info"])} if "info" in shown else shown


def _new_connector() -> dict[str, Any]:
    """Return the body of a request that creates a connector."""
    body = json_object(numbers_as_text=True)
    if "connector.class" in body:
        raise BadRequestError(
            'Unrecognized field "connector.class". This request takes {"name": ..., "config": {...}}: move the '
            "configuration into config, or send it as it is with PUT /connectors/NAME/config."
        )
    check_members(body, _FIELDS)
    if "config" not in body:
        raise BadRequestError("The request has no config. Send the connector's configuration in a member of this name.")
    return body


def _name(body: dict[str, Any], config: dict[str, str | None]) -> str:
    """Return the name of a new connector, given beside its configuration or in it."""
    name = body.get("name")
    if name is None:
        name = config.get("name") or ""
    if not isinstance(name, str):
        raise BadRequestError("The name of a connector must be a string.")
    return name.strip()


def _signal(body: dict[str, Any]) -> dict[str, Any]:
    """Return the id, which is made if there is none, the type and the data of a signal."""
    given = {"id": body.get("id") or str(uuid.uuid4()), "type": body.get("type"), "data": body.get("data") or {}}
    for member in ("id", "type"):
        text = given[member]
        if not isinstance(text, str) or not text.strip():
            raise BadRequestError(f'The {member} of a signal must be text, such as {{"type": "execute-snapshot"}}.')
    if not isinstance(given["data"], dict):
        raise BadRequestError("The data of a signal must be an object.")
    return given


def _task(name: str, number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise NotFoundError(f"Connector {name} has no task {number!r}")
    return int(number)

"""The API's own description, served at ``/openapi.json``."""

from __future__ import annotations

from typing import Final

from rest.access.rights import NEEDS, Who
from rest.access.sign_in import COOKIE
from rest.schemas import FLAG, SCHEMAS, TEXT, Schema, array, reference

__all__ = ["openapi_document"]

_SCHEMES: Final[Schema] = {
    "password": {"type": "http", "scheme": "basic"},
    "token": {"type": "http", "scheme": "bearer", "description": "A token of sluice token, or of the OIDC issuer."},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "By POST /session, for pages."},
}


def openapi_document(version: str, *, with_admin: bool = True, sign_in: bool = False) -> Schema:
    """Return the description, in OpenAPI 3.1, with ``/admin`` if it is served at the same address.

    With ``sign_in`` it says how clients sign in.
    """
    paths = {path: item for path, item in _PATHS.items() if with_admin or not path.startswith("/admin")}
    info = {
        "title": "Sluice",
        "version": version,
        "description": "Deploys connectors and shows their state. The API is that of Kafka Connect.",
    }
    document: Schema = {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": SCHEMAS}}
    if not sign_in:
        return document
    return {
        **document,
        "paths": {path: _opened(path, item) for path, item in paths.items()},
        "components": {"schemas": SCHEMAS, "securitySchemes": _SCHEMES},
        "security": [{name: []} for name in _SCHEMES],
    }


def _opened(path: str, item: Schema) -> Schema:
    """A path, whose operations say so if they need no credentials."""
    open_to_all = {method for method, need in NEEDS.get(path, {}).items() if need is Who.ANYBODY}
    return {key: {**what, "security": []} if key.upper() in open_to_all else what for key, what in item.items()}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _operation(
    summary: str, answers: dict[int, str | None], *, body: str | None = None, query: dict[str, Schema] | None = None
) -> Schema:
    """Describe one method: the schema of each successful status; every error has the body of an error."""
    responses: Schema = {
        str(status): {"description": summary, **({"content": _json(reference(schema))} if schema else {})}
        for status, schema in answers.items()
    }
    responses |= {
        status: {"description": "The request failed; the message says why.", "content": _json(reference("Error"))}
        for status in ("4XX", "5XX")
    }
    operation: Schema = {"summary": summary, "responses": responses}
    if query:
        operation["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    if body:
        operation["requestBody"] = {"required": True, "content": _json(reference(body))}
    return operation


def _item(parameters: tuple[str, ...] = (), **operations: Schema) -> Schema:
    shared = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in parameters
    ]
    return {**({"parameters": shared} if shared else {}), **operations}


_NAME: Final = ("name",)
_CONNECTOR: Final = "/connectors/{name}"
_FLOW: Final = "/mirror/flows/{flow}"
_PREVIEW: Final[dict[str, Schema]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "seconds": {"type": "integer", "minimum": 1, "maximum": 20},
    "bytes": {"type": "integer", "minimum": 1024, "maximum": 16_777_216},
    "from": {"type": "string", "enum": ["stored", "beginning"]},
}
_STEP: Final = {"step": {"type": "integer", "minimum": 2, "maximum": 300, "multipleOf": 2}}
_FLAGS: Final = {"includeTasks": FLAG, "onlyFailed": FLAG}

_PATHS: Final[dict[str, Schema]] = {
    "/": _item(get=_operation("Version of the API and id of the Kafka cluster.", {200: "Object"})),
    "/health": _item(get=_operation("Health of the worker.", {200: "Object"})),
    "/whoami": _item(
        get=_operation(
            "Who asks, and its rights: on the worker, and on all connectors that it may view or on those named.",
            {200: "WhoAmI"},
            query={"connector": array(TEXT)},
        )
    ),
    "/session": _item(
        post=_operation("Sign in on a page: the answer sets a cookie.", {200: "WhoAmI"}, body="Credentials"),
        delete=_operation("Sign out.", {204: None}),
    ),
    "/metrics": {
        "get": {
            "summary": "The metrics of the worker, for Prometheus; as OpenMetrics if Accept names that.",
            "parameters": [{"name": "format", "in": "query", "schema": {"enum": ["strimzi", "confluent"]}}],
            "responses": {
                "200": {
                    "description": "The metrics.",
                    "content": {kind: {"schema": TEXT} for kind in ("text/plain", "application/openmetrics-text")},
                },
                "4XX": {"description": "The format is unknown.", "content": _json(reference("Error"))},
                "5XX": {"description": "The worker has only just started.", "content": _json(reference("Error"))},
            },
        }
    },
    "/health/live": _item(get=_operation("Whether the worker works at all.", {200: "Probe", 503: "Probe"})),
    "/health/ready": _item(
        get=_operation("Whether the worker has its part in the cluster, and why not.", {200: "Probe", 503: "Probe"})
    ),
    "/openapi.json": _item(get=_operation("This document.", {200: "Object"})),
    "/connectors": _item(
        get=_operation(
            "The names of all connectors; with expand, their status and configuration.",
            {200: None},
            query={"expand": array({"type": "string", "enum": ["status", "info"]})},
        ),
        post=_operation("Make a connector.", {201: "ConnectorInfo"}, body="NewConnector"),
    ),
    "/history": _item(
        get=_operation("The last five minutes of all connectors.", {200: "Histories"}, query=_STEP),
    ),
    _CONNECTOR: _item(
        _NAME,
        get=_operation("A connector's configuration and tasks.", {200: "ConnectorInfo"}),
        delete=_operation("Stop a connector and forget it; its offsets stay.", {204: None}),
    ),
    f"{_CONNECTOR}/config": _item(
        _NAME,
        get=_operation("A connector's configuration as it was written.", {200: "Config"}),
        put=_operation(
            "Give a connector this configuration; make it if there is none.",
            {200: "ConnectorInfo", 201: "ConnectorInfo"},
            body="GivenConfig",
        ),
        patch=_operation("Change some keys; null removes one.", {200: "ConnectorInfo"}, body="GivenConfig"),
    ),
    f"{_CONNECTOR}/config/history": _item(
        _NAME,
        get=_operation(
            "The last versions of a connector's configuration, the newest first: who has changed what, and when.",
            {200: "ConfigHistory"},
        ),
    ),
    f"{_CONNECTOR}/config/history/{{version}}/restore": _item(
        (*_NAME, "version"),
        post=_operation(
            "Give a connector the configuration of an earlier version; make it if it was deleted.",
            {200: "ConnectorInfo", 201: "ConnectorInfo"},
        ),
    ),
    f"{_CONNECTOR}/status": _item(
        _NAME, get=_operation("The state of a connector and its tasks.", {200: "ConnectorStatus"})
    ),
    f"{_CONNECTOR}/loads": _item(
        _NAME, get=_operation("The load of a bulk sink that is under way, and its last ones.", {200: "Loads"})
    ),
    f"{_CONNECTOR}/measurements": _item(
        _NAME,
        get=_operation("What the plugins of a connector's tasks measure of themselves.", {200: "Measurements"}),
    ),
    f"{_CONNECTOR}/logs": _item(
        _NAME,
        get=_operation(
            "The last lines that a worker has logged for a connector and its tasks: the one that is asked, or another.",
            {200: "LoggedLines"},
            query={
                "worker": TEXT,
                "after": {"type": "integer", "minimum": 0},
                "lines": {"type": "integer", "minimum": 0, "maximum": 10_000},
            },
        ),
    ),
    f"{_CONNECTOR}/history": _item(
        _NAME,
        get=_operation("The last five minutes of a connector: rate and lag.", {200: "Histories"}, query=_STEP),
    ),
    f"{_CONNECTOR}/restart": _item(
        _NAME, post=_operation("Restart a connector.", {202: "ConnectorStatus", 204: None}, query=_FLAGS)
    ),
    f"{_CONNECTOR}/pause": _item(_NAME, put=_operation("Pause a connector and its tasks.", {202: None})),
    f"{_CONNECTOR}/resume": _item(_NAME, put=_operation("Resume a paused or stopped connector.", {202: None})),
    f"{_CONNECTOR}/stop": _item(_NAME, put=_operation("Stop a connector and its tasks.", {204: None})),
    f"{_CONNECTOR}/tasks": _item(_NAME, get=_operation("The tasks of a connector.", {200: "Tasks"})),
    f"{_CONNECTOR}/tasks/{{task}}/status": _item(
        (*_NAME, "task"), get=_operation("The state of a task.", {200: "TaskState"})
    ),
    f"{_CONNECTOR}/tasks/{{task}}/restart": _item((*_NAME, "task"), post=_operation("Restart a task.", {204: None})),
    f"{_CONNECTOR}/topics": _item(_NAME, get=_operation("The topics that a connector uses.", {200: "Object"})),
    f"{_CONNECTOR}/topics/reset": _item(
        _NAME, put=_operation("Forget the topics that a connector has used.", {202: None})
    ),
    f"{_CONNECTOR}/offsets": _item(
        _NAME,
        get=_operation("The offsets of a connector.", {200: "Offsets"}),
        patch=_operation("Set offsets of a stopped connector.", {200: "Message"}, body="GivenOffsets"),
        delete=_operation("Forget the offsets of a stopped connector.", {200: "Message"}),
    ),
    f"{_CONNECTOR}/offsets/reset": _item(
        _NAME,
        post=_operation(
            "Move the consumer group of a stopped sink; with dry_run, in any state, only tell the new offsets.",
            {200: "OffsetChanges"},
            body="Reset",
            query={"dry_run": FLAG},
        ),
    ),
    f"{_CONNECTOR}/lag": _item(
        _NAME, get=_operation("How far a connector is behind, and how fast it goes.", {200: "Lag"})
    ),
    f"{_CONNECTOR}/dlq": _item(
        _NAME,
        get=_operation(
            "The records in the dead letter queue of a connector.",
            {200: "DeadLetters"},
            query={"limit": {"type": "integer", "minimum": 1, "maximum": 1000}, "after": TEXT},
        ),
    ),
    f"{_CONNECTOR}/dlq/replay": _item(
        _NAME,
        post=_operation("Deliver records of its dead letter queue again.", {200: "Replayed"}, body="Replay"),
    ),
    f"{_CONNECTOR}/dlq/{{record}}": _item(
        ("name", "record"),
        get=_operation("A dead letter, in each form in which it can be edited.", {200: "DeadLetter"}),
    ),
    f"{_CONNECTOR}/dlq/{{record}}/repair": _item(
        ("name", "record"),
        post=_operation("Deliver a dead letter again, with other parts.", {200: "Repaired"}, body="Repair"),
    ),
    "/cluster": _item(get=_operation("Workers, what they run, the last rebalances, processes.", {200: "Cluster"})),
    "/cluster/workers/{worker}/drain": _item(
        ("worker",),
        put=_operation("Have a worker give its work to the others, and take no more.", {202: None}),
        delete=_operation("Have a worker take work again.", {202: None}),
    ),
    f"{_CONNECTOR}/preview": _item(
        _NAME,
        post=_operation(
            "What a connector would do with its next records; nothing is changed.", {200: "Preview"}, query=_PREVIEW
        ),
    ),
    "/mirror/flows": _item(get=_operation("The flows of mirrors, and the states of their connectors.", {200: "Flows"})),
    _FLOW: _item(
        ("flow",),
        get=_operation("A flow: its configuration, its connectors, how far it is behind.", {200: "Flow"}),
        put=_operation(
            "Give a flow this configuration, and so its three connectors; make it if there is none.",
            {200: "Flow", 201: "Flow"},
            body="GivenConfig",
        ),
        delete=_operation("Stop the connectors of a flow and forget them; offsets and topics stay.", {204: None}),
    ),
    f"{_FLOW}/pause": _item(("flow",), put=_operation("Pause the connectors of a flow.", {202: None})),
    f"{_FLOW}/resume": _item(("flow",), put=_operation("Resume the connectors of a flow.", {202: None})),
    f"{_FLOW}/stop": _item(("flow",), put=_operation("Stop the connectors of a flow.", {202: None})),
    "/connector-plugins": _item(
        get=_operation("The installed plugins.", {200: "Plugins"}, query={"connectorsOnly": FLAG})
    ),
    "/connector-plugins/{plugin}/config": _item(
        ("plugin",), get=_operation("The keys of a plugin.", {200: "ConfigKeys"}, query={"version": TEXT})
    ),
    "/connector-plugins/{plugin}/config/validate": _item(
        ("plugin",),
        put=_operation(
            "Check a configuration; with connector, a change of the configuration of that one.",
            {200: "ConfigInfos"},
            body="GivenConfig",
            query={"connector": TEXT},
        ),
    ),
    "/connector-plugins/{plugin}/config/preview": _item(
        ("plugin",),
        post=_operation(
            "What a connector of this configuration would do with its next records; nothing is changed.",
            {200: "Preview"},
            body="GivenConfig",
            query=_PREVIEW,
        ),
    ),
    "/admin/loggers": _item(get=_operation("The levels of all loggers.", {200: "Object"})),
    "/admin/loggers/{logger}": _item(
        ("logger",),
        get=_operation("The level of a logger.", {200: "LoggerLevel"}),
        put=_operation(
            "Set the level of a logger and all below it.",
            {200: "Names", 204: None},
            body="NewLevel",
            query={"scope": {"type": "string", "enum": ["worker", "cluster"]}},
        ),
    ),
}

"""The OpenAPI description of the REST API, served at ``/openapi.json``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from rest.access.rights import NEEDS, Who
from rest.access.sign_in import COOKIE
from rest.schemas import FLAG, SCHEMAS, TEXT, Schema, array, described, reference

__all__ = ["openapi_document"]

_SCHEMES: Final[Schema] = {
    "password": {"type": "http", "scheme": "basic"},
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token created with sluice token, or a token of the OIDC issuer.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "The session cookie set by POST /session, for the web page.",
    },
}


def openapi_document(version: str, *, with_admin: bool = True, sign_in: bool = False) -> Schema:
    """Return the description in OpenAPI 3.1; it includes ``/admin`` only if that is served at the same address.

    With ``sign_in`` it also describes how clients authenticate.
    """
    paths = {path: item for path, item in _PATHS.items() if with_admin or not path.startswith("/admin")}
    info = {
        "title": "Sluice",
        "version": version,
        "description": "Deploys and monitors connectors. The API is that of Kafka Connect, with additions.",
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
    """Mark the operations of a path that need no credentials."""
    open_to_all = {method for method, need in NEEDS.get(path, {}).items() if need is Who.ANYBODY}
    return {key: {**what, "security": []} if key.upper() in open_to_all else what for key, what in item.items()}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _operation(
    summary: str, answers: dict[int, str | None], *, body: str | None = None, query: dict[str, Schema] | None = None
) -> Schema:
    """Describe one operation: the schema of each successful status; every error has the same body."""
    responses: Schema = {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}.",
            **({"content": _json(reference(schema))} if schema else {}),
        }
        for status, schema in answers.items()
    }
    responses |= {
        status: {"description": "The request failed; message says why.", "content": _json(reference("Error"))}
        for status in ("4XX", "5XX")
    }
    operation: Schema = {"summary": summary, "responses": responses}
    if query:
        operation["parameters"] = [_parameter(name, "query", schema) for name, schema in query.items()]
    if body:
        operation["requestBody"] = {"required": True, "content": _json(reference(body))}
    return operation


def _parameter(name: str, place: str, schema: Schema) -> Schema:
    """Describe a parameter; the description of its schema becomes its own."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": place, "description": schema["description"], "schema": bare}


def _item(parameters: tuple[str, ...] = (), **operations: Schema) -> Schema:
    shared = [
        {
            **_parameter(name, "path", {"type": "string", "minLength": 1, "description": _PARAMETERS[name]}),
            "required": True,
        }
        for name in parameters
    ]
    return {**({"parameters": shared} if shared else {}), **operations}


_NAME: Final = ("name",)
_CONNECTOR: Final = "/connectors/{name}"
_FLOW: Final = "/mirror/flows/{flow}"
_PREVIEW: Final[dict[str, Schema]] = {
    "limit": described(
        {"type": "integer", "minimum": 1, "maximum": 100}, "The maximum number of records; 10 by default."
    ),
    "seconds": described(
        {"type": "integer", "minimum": 1, "maximum": 20}, "How long to wait for the records; 10 seconds by default."
    ),
    "bytes": described(
        {"type": "integer", "minimum": 1024, "maximum": 16_777_216}, "The maximum size of the answer; 1 MiB by default."
    ),
    "from": described(
        {"type": "string", "enum": ["stored", "beginning"]},
        "Begin after the stored offsets (the default), or as if there were none.",
    ),
}
_STEP: Final = {
    "step": described(
        {"type": "integer", "minimum": 2, "maximum": 86_400, "multipleOf": 2},
        "The seconds between two values: an even number up to 300, or a multiple of 60 if last is over 300.",
    ),
    "last": described(
        {"type": "integer", "minimum": 2, "maximum": 86_400}, "How many seconds back the values go; 300 by default."
    ),
}
_FLAGS: Final = {
    "includeTasks": described(FLAG, "Restart the tasks, too."),
    "onlyFailed": described(FLAG, "Restart only what has failed."),
}
_FORMAT: Final[Schema] = {
    "name": "format",
    "in": "query",
    "description": "The names of the metrics: those of the Strimzi exporter, or those of Confluent's.",
    "schema": {"enum": ["strimzi", "confluent"]},
}
_PARAMETERS: Final = {
    "name": "The name of the connector.",
    "version": "The number of the version, as in the history.",
    "task": "The number of the task, from 0.",
    "record": "The dead letter, as PARTITION:OFFSET in its queue.",
    "worker": "The id of the worker, as host:port.",
    "flow": "The name of the flow, as SOURCE->TARGET.",
    "plugin": "The class of the plugin, its simple name, or an alias.",
    "logger": "The name of the logger, or root.",
}

_PATHS: Final[dict[str, Schema]] = {
    "/": _item(get=_operation("Get the version of the API and the id of the Kafka cluster.", {200: "Object"})),
    "/health": _item(get=_operation("Check the health of the worker.", {200: "Object", 503: "Object"})),
    "/whoami": _item(
        get=_operation(
            "Get the caller and its rights, on the worker and on all connectors it may view or on those named.",
            {200: "WhoAmI"},
            query={"connector": described(array(TEXT), "Report the rights on these connectors only.")},
        )
    ),
    "/session": _item(
        post=_operation(
            "Sign in for the web page; the answer sets a session cookie.", {200: "WhoAmI"}, body="Credentials"
        ),
        delete=_operation("Sign out and end the session.", {204: None}),
    ),
    "/metrics": {
        "get": {
            "summary": "Get the metrics of the worker for Prometheus, as OpenMetrics if Accept asks for it.",
            "parameters": [_FORMAT],
            "responses": {
                "200": {
                    "description": "The metrics.",
                    "content": {kind: {"schema": TEXT} for kind in ("text/plain", "application/openmetrics-text")},
                },
                "4XX": {
                    "description": "The format is unknown, or the caller lacks the right.",
                    "content": _json(reference("Error")),
                },
                "5XX": {
                    "description": "The worker has only just started and has no metrics yet.",
                    "content": _json(reference("Error")),
                },
            },
        }
    },
    "/health/live": _item(
        get=_operation("Liveness probe: check that the worker responds.", {200: "Probe", 503: "Probe"})
    ),
    "/health/ready": _item(
        get=_operation(
            "Readiness probe: check that the worker is a member of its cluster; otherwise list the reasons.",
            {200: "Probe", 503: "Probe"},
        )
    ),
    "/openapi.json": _item(get=_operation("Get this document.", {200: "Object"})),
    "/connectors": _item(
        get=_operation(
            "List the names of all connectors; with expand, an object with their status and configuration.",
            {200: None},
            query={
                "expand": described(
                    array({"type": "string", "enum": ["status", "info"]}), "The views to include for each connector."
                )
            },
        ),
        post=_operation("Create a connector.", {201: "ConnectorInfo"}, body="NewConnector"),
    ),
    "/history": _item(
        get=_operation(
            "Get rate and lag of all connectors over the last five minutes, or up to 24 hours.",
            {200: "Histories"},
            query=_STEP,
        ),
    ),
    _CONNECTOR: _item(
        _NAME,
        get=_operation("Get the configuration and the tasks of a connector.", {200: "ConnectorInfo"}),
        delete=_operation(
            "Delete a connector. Its offsets are kept for a new connector of the same name.", {204: None}
        ),
    ),
    f"{_CONNECTOR}/config": _item(
        _NAME,
        get=_operation("Get the configuration of a connector; the ETag is its revision.", {200: "Config"}),
        put=_operation(
            "Replace the configuration of a connector, or create the connector.",
            {200: "ConnectorInfo", 201: "ConnectorInfo"},
            body="GivenConfig",
        ),
        patch=_operation(
            "Change some keys of a configuration; null removes a key.", {200: "ConnectorInfo"}, body="GivenConfig"
        ),
    ),
    f"{_CONNECTOR}/config/history": _item(
        _NAME,
        get=_operation(
            "List the last versions of a configuration, the newest first: who changed what, and when.",
            {200: "ConfigHistory"},
        ),
    ),
    f"{_CONNECTOR}/config/history/{{version}}/restore": _item(
        (*_NAME, "version"),
        post=_operation(
            "Restore an earlier version of a configuration; creates the connector again if it was deleted.",
            {200: "ConnectorInfo", 201: "ConnectorInfo"},
        ),
    ),
    f"{_CONNECTOR}/status": _item(
        _NAME, get=_operation("Get the states of a connector and its tasks.", {200: "ConnectorStatus"})
    ),
    f"{_CONNECTOR}/loads": _item(
        _NAME,
        get=_operation("Get the current load of a bulk sink, its last loads, and any pending retry.", {200: "Loads"}),
    ),
    f"{_CONNECTOR}/measurements": _item(
        _NAME,
        get=_operation(
            "Get the measurements that the plugin reports in each task of a connector.", {200: "Measurements"}
        ),
    ),
    f"{_CONNECTOR}/logs": _item(
        _NAME,
        get=_operation(
            "Get the last lines that a worker has logged for a connector and its tasks.",
            {200: "LoggedLines"},
            query={
                "worker": described(TEXT, "The worker, as host:port; by default the one that receives the request."),
                "after": described(
                    {"type": "integer", "minimum": 0},
                    "Return only lines after this position: the next of an earlier answer.",
                ),
                "lines": described(
                    {"type": "integer", "minimum": 0, "maximum": 10_000}, "The maximum number of lines; 100 by default."
                ),
            },
        ),
    ),
    f"{_CONNECTOR}/history": _item(
        _NAME,
        get=_operation(
            "Get rate and lag of a connector over the last five minutes, or up to 24 hours.",
            {200: "Histories"},
            query=_STEP,
        ),
    ),
    f"{_CONNECTOR}/timeline": _item(
        _NAME,
        get=_operation(
            "List what has happened to a connector, the newest first: starts, failures, restarts, moves, changes.",
            {200: "Timeline"},
        ),
    ),
    f"{_CONNECTOR}/restart": _item(
        _NAME,
        post=_operation(
            "Restart a connector, and optionally its tasks.", {202: "ConnectorStatus", 204: None}, query=_FLAGS
        ),
    ),
    f"{_CONNECTOR}/signals": _item(
        _NAME,
        post=_operation(
            "Send a signal to the first task of a source connector; answered when the task has it.",
            {202: "SignalTaken"},
            body="Signal",
        ),
    ),
    f"{_CONNECTOR}/pause": _item(
        _NAME, put=_operation("Pause a connector: its tasks stay, but process no records.", {202: None})
    ),
    f"{_CONNECTOR}/resume": _item(_NAME, put=_operation("Resume a paused or stopped connector.", {202: None})),
    f"{_CONNECTOR}/stop": _item(
        _NAME, put=_operation("Stop a connector: its tasks end, its configuration and offsets are kept.", {204: None})
    ),
    f"{_CONNECTOR}/tasks": _item(
        _NAME, get=_operation("List the tasks of a connector with their configurations.", {200: "Tasks"})
    ),
    f"{_CONNECTOR}/tasks/{{task}}/status": _item(
        (*_NAME, "task"), get=_operation("Get the state of a task.", {200: "TaskState"})
    ),
    f"{_CONNECTOR}/tasks/{{task}}/restart": _item((*_NAME, "task"), post=_operation("Restart a task.", {204: None})),
    f"{_CONNECTOR}/topics": _item(
        _NAME, get=_operation("List the topics that a connector has used since they were last reset.", {200: "Object"})
    ),
    f"{_CONNECTOR}/topics/reset": _item(
        _NAME, put=_operation("Reset the list of topics that a connector has used.", {202: None})
    ),
    f"{_CONNECTOR}/offsets": _item(
        _NAME,
        get=_operation("Get the offsets of a connector.", {200: "Offsets"}),
        patch=_operation(
            "Set offsets of a stopped connector; null deletes one.", {200: "Message"}, body="GivenOffsets"
        ),
        delete=_operation("Delete all offsets of a stopped connector.", {200: "Message"}),
    ),
    f"{_CONNECTOR}/offsets/reset": _item(
        _NAME,
        post=_operation(
            "Move the consumer group of a stopped sink connector to other offsets.",
            {200: "OffsetChanges"},
            body="Reset",
            query={"dry_run": described(FLAG, "Return the new offsets without setting them; allowed in any state.")},
        ),
    ),
    f"{_CONNECTOR}/lag": _item(
        _NAME,
        get=_operation("Get the lag of a connector and its rate, in total, by task and by partition.", {200: "Lag"}),
    ),
    f"{_CONNECTOR}/dlq": _item(
        _NAME,
        get=_operation(
            "List the dead letters of a connector.",
            {200: "DeadLetters"},
            query={
                "limit": described(
                    {"type": "integer", "minimum": 1, "maximum": 1000}, "The maximum number of records."
                ),
                "after": described(TEXT, "Continue after this position: the next of an earlier answer."),
            },
        ),
    ),
    f"{_CONNECTOR}/dlq/replay": _item(
        _NAME,
        post=_operation(
            "Replay dead letters: deliver them to their topics, or to the connector, again.",
            {200: "Replayed"},
            body="Replay",
        ),
    ),
    f"{_CONNECTOR}/dlq/{{record}}": _item(
        ("name", "record"),
        get=_operation("Get one dead letter, with the forms in which each part can be edited.", {200: "DeadLetter"}),
    ),
    f"{_CONNECTOR}/dlq/{{record}}/repair": _item(
        ("name", "record"),
        post=_operation(
            "Repair a dead letter: deliver it again with a changed key, value or headers.",
            {200: "Repaired"},
            body="Repair",
        ),
    ),
    "/cluster": _item(
        get=_operation(
            "Get the workers, their connectors and tasks, the last rebalances, and this worker's processes.",
            {200: "Cluster"},
        )
    ),
    "/cluster/workers/{worker}/drain": _item(
        ("worker",),
        put=_operation("Drain a worker: move its connectors and tasks to the other workers.", {202: None}),
        delete=_operation("End draining: let the worker take work again.", {202: None}),
    ),
    f"{_CONNECTOR}/preview": _item(
        _NAME,
        post=_operation(
            "Preview what a connector would do with its next records, without changing anything.",
            {200: "Preview"},
            query=_PREVIEW,
        ),
    ),
    "/mirror/flows": _item(
        get=_operation("List the mirror flows with the states of their connectors.", {200: "Flows"})
    ),
    _FLOW: _item(
        ("flow",),
        get=_operation("Get a mirror flow: its configuration, its connectors and its lag.", {200: "Flow"}),
        put=_operation(
            "Replace the configuration of a mirror flow and of its three connectors, or create them.",
            {200: "Flow", 201: "Flow"},
            body="GivenConfig",
        ),
        delete=_operation("Delete the connectors of a mirror flow. Offsets and topics are kept.", {204: None}),
    ),
    f"{_FLOW}/pause": _item(("flow",), put=_operation("Pause the connectors of a mirror flow.", {202: None})),
    f"{_FLOW}/resume": _item(("flow",), put=_operation("Resume the connectors of a mirror flow.", {202: None})),
    f"{_FLOW}/stop": _item(("flow",), put=_operation("Stop the connectors of a mirror flow.", {202: None})),
    "/connector-plugins": _item(
        get=_operation(
            "List the installed plugins.",
            {200: "Plugins"},
            query={
                "connectorsOnly": described(FLAG, "true (the default) for connectors, false for plugins of every kind.")
            },
        )
    ),
    "/connector-plugins/{plugin}/config": _item(
        ("plugin",),
        get=_operation(
            "Describe the configuration keys of a plugin.",
            {200: "ConfigKeys"},
            query={"version": described(TEXT, "The version of the plugin; by default the newest.")},
        ),
    ),
    "/connector-plugins/{plugin}/config/validate": _item(
        ("plugin",),
        put=_operation(
            "Validate a configuration without storing it.",
            {200: "ConfigInfos"},
            body="GivenConfig",
            query={
                "connector": described(
                    TEXT, "Validate the body as a change (PATCH) of this connector's configuration."
                ),
                "connect": described(FLAG, "true to ask the connector's system, too, what would fail later."),
                "choices": described(FLAG, "true to list the keys that .../config/choices can be asked for."),
            },
        ),
    ),
    "/connector-plugins/{plugin}/config/choices": _item(
        ("plugin",),
        put=_operation(
            "Ask the system of a configuration, which may be unfinished, what a key can name, such as its tables.",
            {200: "Choices"},
            body="GivenConfig",
            query={
                "key": described(TEXT, "The key, one of `choices` in the answer of a validation."),
                "connector": described(TEXT, "Take the body as a change (PATCH) of this connector's configuration."),
            },
        ),
    ),
    "/connector-plugins/{plugin}/config/preview": _item(
        ("plugin",),
        post=_operation(
            "Preview what a connector with this configuration would do with its next records.",
            {200: "Preview"},
            body="GivenConfig",
            query=_PREVIEW,
        ),
    ),
    "/admin/loggers": _item(get=_operation("List the loggers with their levels.", {200: "Object"})),
    "/admin/loggers/{logger}": _item(
        ("logger",),
        get=_operation("Get the level of a logger.", {200: "LoggerLevel"}),
        put=_operation(
            "Set the level of a logger and of its children.",
            {200: "Names", 204: None},
            body="NewLevel",
            query={
                "scope": described(
                    {"type": "string", "enum": ["worker", "cluster"]},
                    "worker (the default) for this worker only, cluster for every worker.",
                )
            },
        ),
    ),
}

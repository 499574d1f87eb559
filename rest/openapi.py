"""The API's own description, served at ``/openapi.json``."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["openapi_document"]

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_FLAG: Final[Schema] = {"type": "string", "enum": ["true", "false"]}
_CONFIG: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_GIVEN_CONFIG: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
_ANY_OBJECT: Final[Schema] = {"type": "object"}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_STATES: Final = ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]
_STATE: Final = {"state": {"type": "string", "enum": _STATES}, "worker_id": _TEXT}
_HANGING: Final = _object(dict.fromkeys(("method", "since", "line", "trace"), _TEXT))
_STATE_MORE: Final = {"trace": _TEXT, "version": _TEXT, "hanging": _HANGING}
_KIND: Final[Schema] = {"type": "string", "enum": ["source", "sink", "unknown"]}
_OFFSETS: Final = _object(
    {"offsets": _array({"type": "object", "properties": {"partition": {}, "offset": {"type": ["object", "null"]}}})}
)
_OFFSET_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
_AMOUNTS: Final[Schema] = {"type": ["object", "null"], "additionalProperties": _NUMBER}
_TASK_LAG: Final[dict[str, Schema]] = {
    "lag": _OFFSET_OR_NULL,
    "remaining": _AMOUNTS,
    "records_per_second": {"type": ["number", "null"]},
}
_PLACE: Final = {"partition": _NUMBER, "offset": _NUMBER}
_BYTES: Final[Schema] = {"type": ["object", "null"], "properties": {"text": _TEXT, "base64": _TEXT}}
_SELECTION: Final[Schema] = {
    "anyOf": [
        {"type": "string", "enum": ["all"]},
        _array({"anyOf": [_object(_PLACE), _object({"partition": _NUMBER, "from": _NUMBER, "to": _NUMBER})]}),
    ]
}

_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_RANGE: Final = _object({"topic": _TEXT, "partition": _NUMBER, "first": _NUMBER, "end": _NUMBER})
_PROGRESS: Final = _object(
    {"stage": _TEXT, **dict.fromkeys(("records", "rows", "bytes", "files"), _NUMBER), "ui": _TEXT_OR_NULL}
)
_LOAD: Final = _object(
    {
        "number": _NUMBER,
        "begun_at": _TEXT,
        "seconds": {"type": "number"},
        "reason": _TEXT,
        **dict.fromkeys(("topics", "partitions", "records", "rows_per_second"), _NUMBER),
        "ranges": _array(_RANGE),
        "progress": _PROGRESS,
        "error": _TEXT_OR_NULL,
    }
)
_RETRY: Final = _object({"at": _TEXT, "attempts": _NUMBER, "error": _TEXT_OR_NULL})
_PREVIEWED_STEP: Final = _object(
    {"step": _TEXT},
    {
        **dict.fromkeys(("plugin", "predicate", "error", "outcome", "note"), _TEXT),
        **dict.fromkeys(("negate", "chosen", "dropped"), _BOOLEAN),
        "record": _object({"topic": _TEXT, "partition": _OFFSET_OR_NULL, "key": {}, "value": {}}),
    },
)
_PREVIEWED_RECORD: Final = _object(
    {"task": _OFFSET_OR_NULL, "origin": {"type": ["object", "null"]}, "steps": _array(_PREVIEWED_STEP)},
    {"cut": {"type": "boolean"}},
)
_PREVIEWED_TABLE: Final = _object(
    {
        "table": _TEXT,
        "place": _TEXT,
        "folders": _array(_TEXT),
        "columns": _array(_object({"name": _TEXT, "type": _TEXT})),
        "rows": _array(_ANY_OBJECT),
    },
    {"cut": {"type": "boolean"}},
)

_SCHEMAS: Final[dict[str, Schema]] = {
    "Error": _object({"error_code": _NUMBER, "message": _TEXT}),
    "Message": _object({"message": _TEXT}),
    "Probe": _object({"status": _TEXT, "reasons": _array(_TEXT)}),
    "ConnectorInfo": _object(
        {
            "name": _TEXT,
            "config": _CONFIG,
            "tasks": _array(_object({"connector": _TEXT, "task": _NUMBER})),
            "type": _KIND,
        }
    ),
    "TaskState": _object({"id": _NUMBER, **_STATE}, {**_STATE_MORE, "metrics": _ANY_OBJECT}),
    "ConnectorStatus": _object(
        {"name": _TEXT, "connector": _object(_STATE, _STATE_MORE), "tasks": _array(_ref("TaskState")), "type": _KIND}
    ),
    "NewConnector": {
        **_object(
            {"config": _GIVEN_CONFIG},
            {"name": _TEXT, "initial_state": {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]}},
        ),
        "additionalProperties": False,
    },
    "Config": _CONFIG,
    "GivenConfig": _GIVEN_CONFIG,
    "Tasks": _array(_object({"id": _object({"connector": _TEXT, "task": _NUMBER}), "config": _CONFIG})),
    "Offsets": _OFFSETS,
    "GivenOffsets": {**_OFFSETS, "additionalProperties": False},
    "Reset": {
        **_object(
            {},
            {
                "to": {"type": "string", "enum": ["earliest", "latest", "current"]},
                "to_offset": {"type": "integer", "minimum": 0},
                "shift_by": _NUMBER,
                "to_datetime": _TEXT,
                "by_duration": _TEXT,
                "topics": {
                    "anyOf": [_array(_TEXT), {"type": "object", "additionalProperties": _array(_NUMBER)}],
                },
            },
        ),
        "additionalProperties": False,
    },
    "OffsetChanges": _array(
        _object({"topic": _TEXT, "partition": _NUMBER, "before": _OFFSET_OR_NULL, "after": _NUMBER})
    ),
    "Lag": _object(
        {"name": _TEXT, "type": _KIND, "tasks": _array(_object({"id": _NUMBER}, _TASK_LAG))},
        {
            "lag": _OFFSET_OR_NULL,
            "partitions": _array(
                _object(
                    {
                        "topic": _TEXT,
                        "partition": _NUMBER,
                        "offset": _OFFSET_OR_NULL,
                        "end_offset": _NUMBER,
                        "lag": _NUMBER,
                    }
                )
            ),
            "remaining": _AMOUNTS,
        },
    ),
    "Loads": _object(
        {
            "name": _TEXT,
            "tasks": _array(
                _object(
                    {
                        "id": _NUMBER,
                        "worker_id": _TEXT,
                        "current": {"anyOf": [_LOAD, {"type": "null"}]},
                        "last": _array(_LOAD),
                        "retry": {"anyOf": [_RETRY, {"type": "null"}]},
                    }
                )
            ),
        }
    ),
    "Histories": _object(
        {
            "end": _NUMBER,
            "step": _NUMBER,
            "connectors": {
                "type": "object",
                "additionalProperties": _object(
                    {
                        "unit": _TEXT_OR_NULL,
                        "rate": _array({"type": ["number", "null"]}),
                        "lag": _array(_OFFSET_OR_NULL),
                    }
                ),
            },
        }
    ),
    "LoggedLines": _object({"worker_id": _TEXT, "lines": _array(_TEXT), "next": _NUMBER}),
    "DeadLetters": _object(
        {
            "topic": _TEXT,
            "records": _array(
                _object(
                    {
                        **_PLACE,
                        "timestamp": _OFFSET_OR_NULL,
                        "key": _BYTES,
                        "value": _BYTES,
                        "headers": _array(_object({"key": _TEXT, "value": _BYTES})),
                        "error": {"type": ["object", "null"]},
                    }
                )
            ),
            "next": {"type": ["string", "null"]},
            "replayed": {"type": "object", "additionalProperties": _NUMBER},
        }
    ),
    "Replay": {
        **_object(
            {"to": {"type": "string", "enum": ["topic", "task"]}, "selection": _SELECTION},
            {"dry_run": {"type": "boolean"}, "until": {"type": "object", "additionalProperties": _NUMBER}},
        ),
        "additionalProperties": False,
    },
    "Replayed": _object(
        {
            "topic": _TEXT,
            "to": _TEXT,
            "dry_run": {"type": "boolean"},
            "replayed": _array(_object({**_PLACE, "topic": _TEXT})),
            "failed": _array(_object({**_PLACE, "error": _TEXT})),
            "next": {"type": ["object", "null"]},
        }
    ),
    "Preview": _object(
        {
            "name": _TEXT,
            "records": _array(_PREVIEWED_RECORD),
            "tables": _array(_PREVIEWED_TABLE),
            "end": _TEXT,
            "failed": {"type": "boolean"},
            "trace": _TEXT_OR_NULL,
        }
    ),
    "Plugins": _array(_object({"class": _TEXT, "type": _TEXT}, {"version": _TEXT})),
    "ConfigKeys": _array(_object({"name": _TEXT, "type": _TEXT, "required": {"type": "boolean"}})),
    "ConfigInfos": _object(
        {
            "name": _TEXT,
            "error_count": _NUMBER,
            "groups": _array(_TEXT),
            "configs": _array(_object({"definition": {"type": ["object", "null"]}, "value": _ANY_OBJECT})),
        }
    ),
    "Cluster": _object(
        {
            "worker_id": _TEXT,
            "mode": {"type": "string", "enum": ["distributed", "standalone"]},
            "leader_url": _TEXT_OR_NULL,
            "is_leader": {"type": "boolean"},
            "generation": _OFFSET_OR_NULL,
            "workers": _array(
                _object(
                    {
                        "worker_id": _TEXT,
                        "url": _TEXT_OR_NULL,
                        "leads": {"type": "boolean"},
                        "connectors": _array(_TEXT),
                        "tasks": _array(_object({"connector": _TEXT, "task": _NUMBER})),
                        "failed": _NUMBER,
                    }
                )
            ),
            "complete": {"type": "boolean"},
            "processes": _array(
                _object(
                    {
                        "pid": _NUMBER,
                        "connector": _TEXT_OR_NULL,
                        "task": _OFFSET_OR_NULL,
                        "resident_bytes": _NUMBER,
                        "cpu_seconds": {"type": "number"},
                        "open_files": _NUMBER,
                    }
                )
            ),
            "rebalances": _array(
                _object(
                    {
                        "at": _TEXT,
                        "generation": _OFFSET_OR_NULL,
                        "leader_url": _TEXT_OR_NULL,
                        "kept": _NUMBER,
                        "given_up": _NUMBER,
                    }
                )
            ),
        }
    ),
    "WhoAmI": _object(
        {
            "principal": {
                "anyOf": [
                    _object({"name": _TEXT, "mechanism": _TEXT, "groups": _array(_TEXT)}),
                    {"type": "null"},
                ]
            },
            "session": {"type": "boolean"},
            "rights": _array(_TEXT),
            "connectors": {"type": "object", "additionalProperties": _array(_TEXT)},
        }
    ),
    "Credentials": {
        **_object({}, {"user": _TEXT, "password": _TEXT, "token": _TEXT}),
        "additionalProperties": False,
    },
    "LoggerLevel": _object({"level": _TEXT, "last_modified": {"type": ["integer", "null"]}}),
    "NewLevel": _object({"level": _TEXT}),
    "Names": _array(_TEXT),
    "Object": _ANY_OBJECT,
}


def openapi_document(version: str, *, with_admin: bool = True) -> Schema:
    """Return the description, in OpenAPI 3.1, with ``/admin`` if it is served at the same address."""
    paths = {path: item for path, item in _PATHS.items() if with_admin or not path.startswith("/admin")}
    info = {
        "title": "Sluice",
        "version": version,
        "description": "Deploys connectors and shows their state. The API is that of Kafka Connect.",
    }
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": _SCHEMAS}}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _operation(
    summary: str, answers: dict[int, str | None], *, body: str | None = None, query: dict[str, Schema] | None = None
) -> Schema:
    """Describe one method: the schema of each successful status; every error has the body of an error."""
    responses: Schema = {
        str(status): {"description": summary, **({"content": _json(_ref(schema))} if schema else {})}
        for status, schema in answers.items()
    }
    responses |= {
        status: {"description": "The request failed; the message says why.", "content": _json(_ref("Error"))}
        for status in ("4XX", "5XX")
    }
    operation: Schema = {"summary": summary, "responses": responses}
    if query:
        operation["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    if body:
        operation["requestBody"] = {"required": True, "content": _json(_ref(body))}
    return operation


def _item(parameters: tuple[str, ...] = (), **operations: Schema) -> Schema:
    shared = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in parameters
    ]
    return {**({"parameters": shared} if shared else {}), **operations}


_NAME: Final = ("name",)
_CONNECTOR: Final = "/connectors/{name}"
_PREVIEW: Final[dict[str, Schema]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "seconds": {"type": "integer", "minimum": 1, "maximum": 20},
    "bytes": {"type": "integer", "minimum": 1024, "maximum": 16_777_216},
    "from": {"type": "string", "enum": ["stored", "beginning"]},
}
_STEP: Final = {"step": {"type": "integer", "minimum": 2, "maximum": 300, "multipleOf": 2}}
_FLAGS: Final = {"includeTasks": _FLAG, "onlyFailed": _FLAG}

_PATHS: Final[dict[str, Schema]] = {
    "/": _item(get=_operation("Version of the API and id of the Kafka cluster.", {200: "Object"})),
    "/health": _item(get=_operation("Health of the worker.", {200: "Object"})),
    "/whoami": _item(
        get=_operation(
            "Who asks, and its rights: on the worker, and on all connectors that it may view or on those named.",
            {200: "WhoAmI"},
            query={"connector": _array(_TEXT)},
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
                    "content": {kind: {"schema": _TEXT} for kind in ("text/plain", "application/openmetrics-text")},
                },
                "4XX": {"description": "The format is unknown.", "content": _json(_ref("Error"))},
                "5XX": {"description": "The worker has only just started.", "content": _json(_ref("Error"))},
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
            query={"expand": _array({"type": "string", "enum": ["status", "info"]})},
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
    f"{_CONNECTOR}/status": _item(
        _NAME, get=_operation("The state of a connector and its tasks.", {200: "ConnectorStatus"})
    ),
    f"{_CONNECTOR}/loads": _item(
        _NAME, get=_operation("The load of a bulk sink that is under way, and its last ones.", {200: "Loads"})
    ),
    f"{_CONNECTOR}/logs": _item(
        _NAME,
        get=_operation(
            "The last lines that the worker which is asked has logged for a connector and its tasks.",
            {200: "LoggedLines"},
            query={
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
            query={"dry_run": _FLAG},
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
            query={"limit": {"type": "integer", "minimum": 1, "maximum": 1000}, "after": _TEXT},
        ),
    ),
    f"{_CONNECTOR}/dlq/replay": _item(
        _NAME,
        post=_operation("Deliver records of its dead letter queue again.", {200: "Replayed"}, body="Replay"),
    ),
    "/cluster": _item(get=_operation("Workers, what they run, the last rebalances, processes.", {200: "Cluster"})),
    f"{_CONNECTOR}/preview": _item(
        _NAME,
        post=_operation(
            "What a connector would do with its next records; nothing is changed.", {200: "Preview"}, query=_PREVIEW
        ),
    ),
    "/connector-plugins": _item(
        get=_operation("The installed plugins.", {200: "Plugins"}, query={"connectorsOnly": _FLAG})
    ),
    "/connector-plugins/{plugin}/config": _item(
        ("plugin",), get=_operation("The keys of a plugin.", {200: "ConfigKeys"}, query={"version": _TEXT})
    ),
    "/connector-plugins/{plugin}/config/validate": _item(
        ("plugin",),
        put=_operation(
            "Check a configuration; with connector, a change of the configuration of that one.",
            {200: "ConfigInfos"},
            body="GivenConfig",
            query={"connector": _TEXT},
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

"""The JSON schemas of request and response bodies, for the OpenAPI description."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FLAG", "SCHEMAS", "TEXT", "Schema", "array", "described", "reference"]

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
FLAG: Final[Schema] = {"type": "string", "enum": ["true", "false"]}
_CONFIG: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_GIVEN_CONFIG: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
_ANY_OBJECT: Final[Schema] = {"type": "object"}


def array(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with a description."""
    return {**schema, "description": description}


def reference(name: str) -> Schema:
    """Return a reference to one of ``SCHEMAS``."""
    return {"$ref": f"#/components/schemas/{name}"}


_STATES: Final = ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]
_STATE: Final = {"state": {"type": "string", "enum": _STATES}, "worker_id": TEXT}
_HANGING: Final = _object(dict.fromkeys(("method", "since", "line", "trace"), TEXT))
_STATE_MORE: Final = {"trace": TEXT, "version": TEXT, "hanging": _HANGING, "changed_at": TEXT, "started_at": TEXT}
_KIND: Final[Schema] = {"type": "string", "enum": ["source", "sink", "unknown"]}
_OFFSETS: Final = _object(
    {"offsets": array({"type": "object", "properties": {"partition": {}, "offset": {"type": ["object", "null"]}}})}
)
_OFFSET_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
_AMOUNTS: Final[Schema] = {"type": ["object", "null"], "additionalProperties": _NUMBER}
_TASK_LAG: Final[dict[str, Schema]] = {
    "lag": _OFFSET_OR_NULL,
    "remaining": _AMOUNTS,
    "records_per_second": {"type": ["number", "null"]},
}
_PLACE: Final = {"partition": _NUMBER, "offset": _NUMBER}
_BYTES: Final[Schema] = {"type": ["object", "null"], "properties": {"text": TEXT, "base64": TEXT}}
_SELECTION: Final[Schema] = {
    "anyOf": [
        {"type": "string", "enum": ["all"]},
        array({"anyOf": [_object(_PLACE), _object({"partition": _NUMBER, "from": _NUMBER, "to": _NUMBER})]}),
    ]
}

_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_RANGE: Final = _object({"topic": TEXT, "partition": _NUMBER, "first": _NUMBER, "end": _NUMBER})
_PROGRESS: Final = _object(
    {"stage": TEXT, **dict.fromkeys(("records", "rows", "bytes", "files"), _NUMBER), "ui": _TEXT_OR_NULL}
)
_LOAD: Final = _object(
    {
        "number": _NUMBER,
        "begun_at": TEXT,
        "seconds": {"type": "number"},
        "reason": TEXT,
        **dict.fromkeys(("topics", "partitions", "records", "rows_per_second"), _NUMBER),
        "ranges": array(_RANGE),
        "progress": _PROGRESS,
        "error": _TEXT_OR_NULL,
    }
)
_RETRY: Final = _object({"at": TEXT, "attempts": _NUMBER, "error": _TEXT_OR_NULL})
_PREVIEWED_STEP: Final = _object(
    {"step": TEXT},
    {
        **dict.fromkeys(("plugin", "predicate", "error", "outcome", "note"), TEXT),
        **dict.fromkeys(("negate", "chosen", "dropped"), _BOOLEAN),
        "record": _object({"topic": TEXT, "partition": _OFFSET_OR_NULL, "key": {}, "value": {}}),
    },
)
_PREVIEWED_RECORD: Final = _object(
    {"task": _OFFSET_OR_NULL, "origin": {"type": ["object", "null"]}, "steps": array(_PREVIEWED_STEP)},
    {"cut": {"type": "boolean"}},
)
_PREVIEWED_TABLE: Final = _object(
    {
        "table": TEXT,
        "place": TEXT,
        "folders": array(TEXT),
        "columns": array(_object({"name": TEXT, "type": TEXT})),
        "rows": array(_ANY_OBJECT),
    },
    {"cut": {"type": "boolean"}},
)

_FLOW: Final = {
    **dict.fromkeys(("name", "source", "target", "state"), TEXT),
    "connectors": array(
        _object(
            {
                **dict.fromkeys(("name", "kind", "state"), TEXT),
                "tasks": array(_object({"id": _NUMBER, "state": TEXT})),
                "as_flow": _BOOLEAN,
            }
        )
    ),
}
_FLOW_FIGURES: Final[dict[str, Schema]] = {
    "lag": {
        "anyOf": [
            _object({"records": _NUMBER, "seconds": {"type": "number"}, "partitions": _NUMBER}),
            {"type": "null"},
        ]
    },
    "latency": {"anyOf": [_object({"seconds": {"type": "number"}}), {"type": "null"}]},
    "failover": {
        "anyOf": [
            _object(dict.fromkeys(("groups", "read_again", "unknown_partitions"), _NUMBER)),
            {"type": "null"},
        ]
    },
    "verified": {
        "anyOf": [
            _object({"at": TEXT, **dict.fromkeys(("partitions", "equal", "differing"), _NUMBER)}),
            {"type": "null"},
        ]
    },
}

_LETTER: Final = {
    **_PLACE,
    "timestamp": _OFFSET_OR_NULL,
    "key": _BYTES,
    "value": _BYTES,
    "headers": array(_object({"key": TEXT, "value": _BYTES})),
    "error": {"type": ["object", "null"]},
}
_FORM: Final[Schema] = {
    "type": ["object", "null"],
    "properties": dict.fromkeys(("text", "json", "base64", "hex"), TEXT),
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_FORMS: Final[Schema] = {
    "type": ["object", "null"],
    "properties": {"text": _TEXT_OR_NULL, "json": _TEXT_OR_NULL, "base64": TEXT, "no_json": _TEXT_OR_NULL},
}
_DELIVERED: Final[dict[str, Schema]] = {
    "topic": TEXT,
    "to": TEXT,
    "dry_run": _BOOLEAN,
    "replayed": array(_object({**_PLACE, "topic": TEXT})),
    "failed": array(_object({**_PLACE, "error": TEXT})),
}

_BODIES: Final[dict[str, Schema]] = {
    "Error": _object({"error_code": _NUMBER, "message": TEXT}),
    "Message": _object({"message": TEXT}),
    "Signal": _object(
        {"type": described(TEXT, "What to do, such as execute-snapshot.")},
        {
            "id": described(TEXT, "The name of this signal; by default one is made."),
            "data": described(_ANY_OBJECT, "What the type needs, such as the tables of a snapshot."),
        },
    ),
    "SignalTaken": _object({"id": TEXT, "type": TEXT, "task": _NUMBER}),
    "Probe": _object({"status": TEXT, "reasons": array(TEXT)}),
    "ConnectorInfo": _object(
        {
            "name": TEXT,
            "config": _CONFIG,
            "tasks": array(_object({"connector": TEXT, "task": _NUMBER})),
            "type": _KIND,
        }
    ),
    "TaskState": _object({"id": _NUMBER, **_STATE}, {**_STATE_MORE, "metrics": _ANY_OBJECT}),
    "ConnectorStatus": _object(
        {"name": TEXT, "connector": _object(_STATE, _STATE_MORE), "tasks": array(reference("TaskState")), "type": _KIND}
    ),
    "NewConnector": {
        **_object(
            {"config": _GIVEN_CONFIG},
            {"name": TEXT, "initial_state": {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]}},
        ),
        "additionalProperties": False,
    },
    "Config": _CONFIG,
    "GivenConfig": _GIVEN_CONFIG,
    "ConfigHistory": _object(
        {
            "name": TEXT,
            "revision": _OFFSET_OR_NULL,
            "versions": array(
                _object(
                    {
                        "version": _NUMBER,
                        "at": TEXT,
                        "author": _TEXT_OR_NULL,
                        "config": {"anyOf": [_CONFIG, {"type": "null"}]},
                        "changes": array(_object({"key": TEXT, "before": _TEXT_OR_NULL, "after": _TEXT_OR_NULL})),
                    }
                )
            ),
        }
    ),
    "Timeline": _object(
        {
            "name": TEXT,
            "events": array(
                _object(
                    {
                        "at": TEXT,
                        "what": TEXT,
                        "text": TEXT,
                        "worker_id": TEXT,
                        "tasks": array(_NUMBER),
                        "count": _NUMBER,
                        "author": _TEXT_OR_NULL,
                    }
                )
            ),
        }
    ),
    "Tasks": array(_object({"id": _object({"connector": TEXT, "task": _NUMBER}), "config": _CONFIG})),
    "Offsets": _OFFSETS,
    "GivenOffsets": {**_OFFSETS, "additionalProperties": False},
    "Reset": {
        **_object(
            {},
            {
                "to": {"type": "string", "enum": ["earliest", "latest", "current"]},
                "to_offset": {"type": "integer", "minimum": 0},
                "shift_by": _NUMBER,
                "to_datetime": TEXT,
                "by_duration": TEXT,
                "topics": {
                    "anyOf": [array(TEXT), {"type": "object", "additionalProperties": array(_NUMBER)}],
                },
            },
        ),
        "additionalProperties": False,
    },
    "OffsetChanges": array(_object({"topic": TEXT, "partition": _NUMBER, "before": _OFFSET_OR_NULL, "after": _NUMBER})),
    "Lag": _object(
        {"name": TEXT, "type": _KIND, "tasks": array(_object({"id": _NUMBER}, _TASK_LAG))},
        {
            "lag": _OFFSET_OR_NULL,
            "partitions": array(
                _object(
                    {
                        "topic": TEXT,
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
            "name": TEXT,
            "tasks": array(
                _object(
                    {
                        "id": _NUMBER,
                        "worker_id": TEXT,
                        "current": {"anyOf": [_LOAD, {"type": "null"}]},
                        "last": array(_LOAD),
                        "retry": {"anyOf": [_RETRY, {"type": "null"}]},
                    }
                )
            ),
        }
    ),
    "Measurements": _object(
        {
            "name": TEXT,
            "tasks": array(
                _object(
                    {
                        "id": _NUMBER,
                        "worker_id": TEXT,
                        "measurements": array(
                            _object(
                                {
                                    "name": TEXT,
                                    "labels": {"type": "object", "additionalProperties": TEXT},
                                    "value": {"type": ["number", "null"]},
                                    "help": TEXT,
                                }
                            )
                        ),
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
                        "rate": array({"type": ["number", "null"]}),
                        "lag": array(_OFFSET_OR_NULL),
                    }
                ),
            },
        }
    ),
    "LoggedLines": _object({"worker_id": TEXT, "lines": array(TEXT), "next": _NUMBER}),
    "DeadLetters": _object(
        {
            "topic": TEXT,
            "records": array(_object(_LETTER)),
            "next": {"type": ["string", "null"]},
            "replayed": {"type": "object", "additionalProperties": _NUMBER},
            "total": _NUMBER,
            "remaining": _NUMBER,
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
            **_DELIVERED,
            "next": {"type": ["object", "null"]},
        }
    ),
    "DeadLetter": _object(
        {
            "topic": TEXT,
            **_LETTER,
            "forms": _object(
                {"key": _FORMS, "value": _FORMS, "headers": array(_object({"key": TEXT, "value": _BYTES}))}
            ),
        }
    ),
    "Repair": {
        **_object(
            {"to": {"type": "string", "enum": ["topic", "task"]}},
            {
                "dry_run": {"type": "boolean"},
                "key": _FORM,
                "value": _FORM,
                "headers": array(_object({"key": TEXT, "value": _FORM})),
            },
        ),
        "additionalProperties": False,
    },
    "Repaired": _object(
        {
            **_DELIVERED,
            "changes": array(_object({"key": TEXT, "before": _TEXT_OR_NULL, "after": _TEXT_OR_NULL})),
            "record": _PREVIEWED_RECORD,
        }
    ),
    "Preview": _object(
        {
            "name": TEXT,
            "records": array(_PREVIEWED_RECORD),
            "tables": array(_PREVIEWED_TABLE),
            "end": TEXT,
            "failed": {"type": "boolean"},
            "trace": _TEXT_OR_NULL,
        }
    ),
    "Flows": array(_object(_FLOW)),
    "Flow": _object({**_FLOW, "config": _CONFIG}, _FLOW_FIGURES),
    "Plugins": array(_object({"class": TEXT, "type": TEXT}, {"version": TEXT, "location": TEXT})),
    "ConfigKeys": array(_object({"name": TEXT, "type": TEXT, "required": {"type": "boolean"}})),
    "ConfigInfos": _object(
        {
            "name": TEXT,
            "error_count": _NUMBER,
            "groups": array(TEXT),
            "configs": array(_object({"definition": {"type": ["object", "null"]}, "value": _ANY_OBJECT})),
        },
        {
            "warnings": array(_object({"key": _TEXT_OR_NULL, "message": TEXT})),
            "connection": _object({"checked": {"type": "boolean"}}, {"reason": TEXT}),
            "choices": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    ),
    "Choices": _object({"key": TEXT, "values": array(TEXT), "total": _NUMBER}),
    "Cluster": _object(
        {
            "worker_id": TEXT,
            "mode": {"type": "string", "enum": ["distributed", "standalone"]},
            "leader_url": _TEXT_OR_NULL,
            "is_leader": {"type": "boolean"},
            "generation": _OFFSET_OR_NULL,
            "workers": array(
                _object(
                    {
                        "worker_id": TEXT,
                        "url": _TEXT_OR_NULL,
                        "leads": {"type": "boolean"},
                        "draining": {"type": "boolean"},
                        "connectors": array(TEXT),
                        "tasks": array(_object({"connector": TEXT, "task": _NUMBER})),
                        "failed": _NUMBER,
                    }
                )
            ),
            "complete": {"type": "boolean"},
            "processes": array(
                _object(
                    {
                        "pid": _NUMBER,
                        "connector": _TEXT_OR_NULL,
                        "task": _OFFSET_OR_NULL,
                        "units": _NUMBER,
                        "resident_bytes": _NUMBER,
                        "cpu_seconds": {"type": "number"},
                        "open_files": _NUMBER,
                    }
                )
            ),
            "rebalances": array(
                _object(
                    {
                        "at": TEXT,
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
                    _object({"name": TEXT, "mechanism": TEXT, "groups": array(TEXT)}),
                    {"type": "null"},
                ]
            },
            "session": {"type": "boolean"},
            "rights": array(TEXT),
            "connectors": {"type": "object", "additionalProperties": array(TEXT)},
        }
    ),
    "Credentials": {
        **_object({}, {"user": TEXT, "password": TEXT, "token": TEXT}),
        "additionalProperties": False,
    },
    "LoggerLevel": _object({"level": TEXT, "last_modified": {"type": ["integer", "null"]}}),
    "NewLevel": _object({"level": TEXT}),
    "Names": array(TEXT),
    "Object": _ANY_OBJECT,
}

_DESCRIPTIONS: Final = {
    "Error": "An error: the HTTP status, and a message that says what is wrong.",
    "Signal": "A signal to a running connector.",
    "SignalTaken": "The signal, and the task that has it.",
    "Message": "A message about the outcome of a request.",
    "Probe": "The outcome of a probe, with the reasons if it fails.",
    "ConnectorInfo": "A connector with its configuration and the ids of its tasks.",
    "TaskState": "The state of a task, with the stack trace of a failure and metrics.",
    "ConnectorStatus": "The states of a connector and of its tasks.",
    "NewConnector": "A connector to create.",
    "Config": "A configuration: a string for each key.",
    "GivenConfig": "A configuration to set; numbers and booleans become strings; in a PATCH null removes a key.",
    "ConfigHistory": "The versions of a configuration, the newest first; a version without one is a deletion.",
    "Tasks": "The tasks of a connector with their configurations.",
    "Offsets": "Offsets by source partition, or by topic partition of a sink connector.",
    "GivenOffsets": "Offsets to set; null deletes the offset of a partition.",
    "Reset": "Where to move a consumer group: exactly one of to, to_offset, shift_by, to_datetime and by_duration.",
    "OffsetChanges": "The offset of each partition before and after a change.",
    "Lag": "The lag of a connector: records for a sink, whatever the plugin counts (remaining) for a source.",
    "Timeline": "What has happened to a connector, the newest first; without tasks, to the connector itself.",
    "Loads": "The loads of a bulk sink connector by task.",
    "Measurements": "The measurements that a plugin reports, by task.",
    "Histories": "Rate and lag at intervals of step seconds; the last value is that of end (seconds since 1970).",
    "LoggedLines": "Log lines, and the position to continue after.",
    "DeadLetters": "A page of dead letters; next is where to continue, replayed how far each partition was replayed.",
    "Replay": "The dead letters to deliver again, and whether to their topics or to the task of the connector.",
    "Replayed": "The outcome of a replay; next is the request that continues it.",
    "DeadLetter": "A dead letter, with the forms in which each part can be edited.",
    "Repair": "The changed parts of a dead letter, each in one form, and where to deliver it.",
    "Repaired": "The outcome of a repair, with the changes and the record that was delivered.",
    "Preview": "The records of a preview with every step of their way, and the tables they would go to.",
    "Flows": "The mirror flows with the states of their connectors.",
    "Flow": "A mirror flow with its configuration and its last measurements.",
    "Plugins": "The installed plugins.",
    "ConfigKeys": "The configuration keys of a plugin.",
    "ConfigInfos": "The outcome of a validation, with the errors of each key.",
    "Choices": "What a key can name: the first values in order, at most 10,000, and how many there are in all.",
    "Cluster": "The cluster as this worker knows it; complete tells whether that is all of it.",
    "WhoAmI": "The caller and its rights; principal is null without authentication.",
    "Credentials": "User and password, or a token.",
    "LoggerLevel": "The level of a logger, and when it was last changed in milliseconds since 1970.",
    "NewLevel": "The level to set.",
    "Names": "A list of names.",
    "Object": "An object.",
}

SCHEMAS: Final[dict[str, Schema]] = {name: described(schema, _DESCRIPTIONS[name]) for name, schema in _BODIES.items()}

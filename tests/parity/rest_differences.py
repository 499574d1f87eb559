"""Where the REST API knowingly answers otherwise than Kafka Connect 4.3 did, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from worker.config.restarts import RestartConfig

__all__ = [
    "BY_CALL",
    "DISTRIBUTED_BY_CALL",
    "EXTRA_GROUPS",
    "EXTRA_KEYS",
    "JAVA_BY_CALL",
    "JAVA_STANDALONE_BY_CALL",
    "TYPED",
    "Difference",
]


@dataclass(frozen=True)
class Difference:
    """What is expected in place of what was recorded: another status, a text in the message, an adjusted body."""

    reason: str
    status: int | None = None
    message: str | None = None
    adjust: Callable[[Any], Any] | None = None
    content_type: str | None = None


EXTRA_KEYS: Final = {
    "run.until": "an addition",
    "run.until.missing.timeout.ms": "an addition",
    "engine": "an addition",
    "task.hang.warning.ms": "an addition",
    "task.isolation": "an addition",
    "task.hang.timeout.ms": "an addition",
    **{key.name: "an addition" for key in RestartConfig.definitions()},
    "errors.tolerance.limit": "an addition",
    "errors.tolerance.rate": "an addition",
    "errors.deadletterqueue.topic.name": "sources have dead letter queues, too",
    "errors.deadletterqueue.topic.replication.factor": "sources have dead letter queues, too",
    "errors.deadletterqueue.context.headers.enable": "sources have dead letter queues, too",
    "line.max.bytes": "an addition to the file source",
    "field.syntax.version": "Cast and TimestampConverter understand nested fields, too",
    "converter.type": "given by the worker, and not by users",
}
EXTRA_GROUPS: Final = {key.group for key in RestartConfig.definitions()}

MISTAKE: Final = "a mistake of the client is 400 and says what is wrong, where Java answers 500"
TYPED: Final = "every error body says that it is JSON, of all calls"
ESCAPED: Final = "an escaped slash in a name is understood, where Java's server refuses it"
LATER: Final = "as in distributed mode, the answer does not wait for the connector to have made its tasks"
NAME_KEPT: Final = "a patch cannot give a connector the name of another"
NO_PHANTOM: Final = "the restart of a task that there is not makes no task"
DISTRIBUTED: Final = "unknown names are 404 as in distributed mode; there is one herder"
NO_VALUES: Final = "values of a configuration, which may be secret, are not repeated in an error"
NULL_REFUSED: Final = "a null is refused with the text that Java has for it"
ANY_NAME: Final = "every kind of plugin is found by its simple name"
NOT_INTERNAL: Final = "internal endpoints are not there in standalone mode"
REQUIRED: Final = "standalone mode has no exactly-once sources and says so, where Java takes required and ignores it"
OWN_LOGGERS: Final = "the loggers are Python's"
NO_OVERRIDE_KEYS: Final = "client keys are checked, and not described one by one"
SAYS_MORE: Final = "the message says what to do"
OWN_WORDS: Final = "plugins are named in our own words"


def _mistake(text: str) -> Difference:
    return Difference(MISTAKE, 400, text)


def _later(body: Any) -> Any:
    return body | {"tasks": []}


def _without_slash(body: Any) -> Any:
    if isinstance(body, dict):
        return {name: shown for name, shown in body.items() if name != "a/b"}
    return [name for name in body if name != "a/b"]


def _nothing_restarted(body: Any) -> Any:
    """A restart of what has failed says that nothing had."""
    return body | {"message": f"Nothing of {body['name']} has failed; nothing was restarted."}


def _without_phantom(body: Any) -> Any:
    return body | {"tasks": [task for task in body["tasks"] if task["id"] != 5]}


def _with_own_name(body: Any) -> Any:
    config = body.get("config", body)
    config["name"] = "src-a"
    return body


def _with_own_name_of_all(body: Any) -> Any:
    shown = _without_slash(body)
    _with_own_name(shown["src-a"]["info"])
    return shown


def _final(body: Any) -> Any:
    shown = _with_own_name_of_all(body)
    shown["src-a"]["status"] = _without_phantom(shown["src-a"]["status"])
    return shown


def _with_null_refused(body: Any) -> Any:
    body["configs"]["topic"]["value"]["errors"] = ["Null value can not be supplied as the configuration value."]
    return body | {"error_count": body["error_count"] + 1}


def _with_required_refused(body: Any) -> Any:
    refused = ["This worker does not have exactly-once source support enabled."]
    body["configs"]["exactly.once.support"]["value"]["errors"] = refused
    return body | {"error_count": 1}


def _without_overrides(body: Any) -> Any:
    configs = {key: shown for key, shown in body["configs"].items() if not key.startswith("producer.override.")}
    return body | {"configs": configs}


def _plain_encoding(body: Any) -> Any:
    body["converter.encoding"] |= {"width": "NONE", "display_name": "converter.encoding"}
    return body


_HEADER: Final = "HTTP 415 Unsupported Media Type: Send the header Content-Type: application/json"
_NOT_FOUND: Final = (
    "Plugin connectors.file.FileStreamSourceConnector not found that matches the version range [1.0,1.0], "
    f"available versions: [{metadata.version('sluice-connect')}]"
)
_TWICE_NOT_FOUND: Final = (
    "Connector configuration is invalid and contains the following 2 error(s):\n"
    f"{_NOT_FOUND}\n{_NOT_FOUND}\nYou can also find the above list of errors at the endpoint "
)
_NO_TYPE: Final = "contains no connector type. Set connector.class"

BY_CALL: Final[dict[str, Difference]] = {
    "plugin_config_bad_version": Difference(OWN_WORDS, message="not found that matches the version range [9.9,9.9]"),
    "18-plugin_config_HoistField$Value": Difference(ANY_NAME, 200, adjust=lambda _: _HOIST),
    "plugin_config_StringConverter": Difference(OWN_WORDS, adjust=_plain_encoding),
    "validate_exactly_once_required": Difference(REQUIRED, adjust=_with_required_refused),
    "validate_null_value": Difference(NULL_REFUSED, adjust=_with_null_refused),
    "validate_override_policy": Difference(NO_OVERRIDE_KEYS, adjust=_without_overrides),
    "scale_to_1": Difference(LATER, adjust=lambda body: body | {"tasks": _TWO_TASKS}),
    "logger_set_parent": Difference(OWN_LOGGERS, adjust=lambda _: _TWO_LOGGERS),
    "plugin_config_SimpleHeaderConverter": Difference(EXTRA_KEYS["converter.type"], adjust=lambda _: {}),
    "validate_empty": _mistake(f"Connector config {{}} {_NO_TYPE}"),
    "validate_no_class": _mistake(f"Connector config {{name, topic}} {_NO_TYPE}"),
    "create_wrong_content_type": Difference(SAYS_MORE, message=_HEADER),
    "create_no_content_type": Difference(SAYS_MORE, message=_HEADER),
    "validate_unknown_plugin": _mistake("Failed to find any class that implements Connector and which name matches"),
    "validate_malformed": _mistake("The body of the request is not JSON"),
    "create_malformed_json": _mistake("The body of the request is not JSON"),
    "create_empty_body": _mistake("The request has no body"),
    "create_null": _mistake("The body of the request must be a JSON object, not null"),
    "create_array": _mistake("The body of the request must be a JSON object, not an array"),
    "create_no_config": _mistake("The request has no config"),
    "create_unknown_field": _mistake('Unrecognized field "bogus". The known fields are config, initial_state, name'),
    "create_bad_initial_state": _mistake("initial_state is 'FLYING'; it must be one of RUNNING, PAUSED, STOPPED"),
    "create_config_nested": _mistake("The value of connector.class must be a string, a number, a boolean or null"),
    "create_no_class": Difference(NO_VALUES, message=f"Connector config {{name, topic}} {_NO_TYPE}"),
    "unknown_put_config_bad": Difference(NO_VALUES, message=f"Connector config {{a, name}} {_NO_TYPE}"),
    "create_unknown_class": Difference(OWN_WORDS, message="which name matches no.such.Connector, available connectors"),
    "get_slashname": Difference(ESCAPED, 200, content_type="application/json", adjust=lambda _: _SLASH),
    "delete_slashname": Difference(ESCAPED, 204, content_type="", adjust=lambda _: ""),
    "unknown_task_status_nan": Difference(OWN_WORDS, message="has no task 'abc'"),
    "unknown_stop": Difference(DISTRIBUTED, 404, "Unknown connector nobody"),
    "unknown_restart": Difference(DISTRIBUTED, 404, "Unknown connector: nobody"),
    "unknown_task_restart": Difference(DISTRIBUTED, 404, "Unknown connector: nobody"),
    "task_restart_unknown": Difference(DISTRIBUTED, message="Unknown task: src-a-5"),
    "patch_config_name": Difference(
        NAME_KEPT, 400, "Connector name configuration (zzz) doesn't match connector name in the URL (src-a)"
    ),
    "patch_config_malformed": _mistake("The body of the request is not JSON"),
    "offsets_patch_malformed": _mistake("The body of the request is not JSON"),
    "logger_malformed": _mistake("The body of the request is not JSON"),
    "sink_offsets_patch_unknown_topic": _mistake("Offsets of partition 0 of topic nope cannot be set"),
    "sink_offsets_patch_unknown_partition": _mistake("Offsets of partition 99 of topic truth-a cannot be set"),
    "sink_offsets_patch_negative": _mistake("The offset -5 cannot be committed"),
    "internal_put_tasks": Difference(NOT_INTERNAL, 405, "HTTP 405 Method Not Allowed"),
    "internal_fence": Difference(NOT_INTERNAL, 404, "HTTP 404 Not Found"),
    "expand_all_final": Difference(NO_PHANTOM, adjust=_final),
    "status_stopped": Difference(NO_PHANTOM, adjust=_without_phantom),
    "restart_stopped": Difference(NO_PHANTOM, adjust=_without_phantom),
    "restart_onlyFailed": Difference(SAYS_MORE, adjust=_nothing_restarted),
    "restart_onlyFailed_notasks": Difference(SAYS_MORE, adjust=_nothing_restarted),
    **dict.fromkeys(
        ("get_config_after_patch", "get_stopped", "get_forward_false"), Difference(NAME_KEPT, adjust=_with_own_name)
    ),
    **dict.fromkeys(
        (
            "list_with_slash2",
            "list_one",
            "list_expand_status",
            "list_expand_info",
            "list_expand_both",
            "list_expand_unknown",
            "list_final",
        ),
        Difference(ESCAPED, adjust=_without_slash),
    ),
    **dict.fromkeys(
        (
            "create_spacename",
            "create_slashname",
            "create_source_ok",
            "create_initial_RUNNING",
            "put_creates_connector",
            "create_sink_badfile",
            "create_sink_baddata",
            "create_sink_baddata_dlq",
            "create_tasksmax2",
            "recreate_after_delete",
        ),
        Difference(LATER, adjust=_later),
    ),
}
# What standalone mode alone does otherwise: one herder answers both modes as that of distributed mode does.
_OF_STANDALONE: Final = {LATER, DISTRIBUTED, NO_PHANTOM, NOT_INTERNAL, REQUIRED}

DISTRIBUTED_BY_CALL: Final[dict[str, Difference]] = {
    **{name: difference for name, difference in BY_CALL.items() if difference.reason not in _OF_STANDALONE},
    "expand_all_final": Difference(NAME_KEPT, adjust=_with_own_name_of_all),
    "version_bad": Difference(OWN_WORDS, message=_TWICE_NOT_FOUND),
    "s2_patch_unknown_field": _mistake('Unrecognized field "offs". The known fields are offsets'),
    "s2_patch_null_partition": _mistake("The partition for a source connector offset must be an object"),
    **{
        name: Difference(MISTAKE, 400, adjust=lambda body: body | {"error_code": 400})
        for name in (
            "s2_patch_bad_partition",
            "s2_patch_bad_offset_type",
            "s2_patch_negative",
            "s2_patch_missing_position",
            "s2_patch_float",
            "s2_patch_null_position",
            "s2_patch_empty_partition",
        )
    },
}
_OF_PYTHON: Final = {NULL_REFUSED, NO_OVERRIDE_KEYS, OWN_LOGGERS}
"""What connectors of Python do otherwise, and those that run in a JVM do not."""
_BY_WORKER: Final = frozenset({"s2_patch_unknown_field", "s2_patch_null_partition", "sink_offsets_patch_negative"})


def _is_of_plugin(name: str) -> bool:
    is_refusal = name.startswith(("s2_patch_", "sink_offsets_patch_")) and name not in _BY_WORKER
    return is_refusal or name == "version_bad"


def _in_a_jvm(differences: Mapping[str, Difference]) -> dict[str, Difference]:
    """The differences of connectors that run in a JVM: what their plugins refuse is answered as in Java."""
    kept = {
        name: difference
        for name, difference in differences.items()
        if difference.reason not in _OF_PYTHON and not _is_of_plugin(name)
    }
    return kept | dict.fromkeys(
        ("sink_offsets_patch_unknown_topic", "sink_offsets_patch_unknown_partition"),
        Difference(SAYS_MORE, message="Failed to alter consumer group offsets for connector snk-a: "),
    )


JAVA_BY_CALL: Final = _in_a_jvm(DISTRIBUTED_BY_CALL)
JAVA_STANDALONE_BY_CALL: Final = _in_a_jvm(BY_CALL)
_SLASH: Final = {
    "name": "a/b",
    "config": {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": "/data/none",
        "topic": "t-sp",
        "name": "a/b",
    },
    "tasks": [{"connector": "a/b", "task": 0}],
    "type": "source",
}
_HOIST: Final = {
    "field": {
        "name": "field",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "MEDIUM",
        "group": None,
        "width": "NONE",
        "display_name": "field",
        "dependents": [],
    }
}
_TWO_TASKS: Final = [{"connector": "snk-two", "task": 0}, {"connector": "snk-two", "task": 1}]
_TWO_LOGGERS: Final = ["org.apache.kafka.connect.runtime", "org.apache.kafka.connect.runtime.WorkerSourceTask"]

"""JSON Schemas in the shapes of public ones: those of CloudEvents, and of the webhooks of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from converters.json_schema import JsonSchemaConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

EVENT: dict[str, Any] = {
    "$ref": "#/definitions/event",
    "definitions": {
        "event": {
            "type": "object",
            "properties": {
                "id": {"description": "Which event it is.", "$ref": "#/definitions/idOf"},
                "source": {"$ref": "#/definitions/sourceOf"},
                "time": {"$ref": "#/definitions/timeOf"},
                "data": {"$ref": "#/definitions/dataOf", "examples": ["x"]},
                "data_base64": {"$ref": "#/definitions/bytesOf"},
            },
            "required": ["id", "source"],
        },
        "idOf": {"type": "string", "minLength": 1},
        "sourceOf": {"type": "string", "format": "uri-reference", "minLength": 1},
        "timeOf": {"type": ["string", "null"], "format": "date-time"},
        "dataOf": {"type": ["object", "string", "number", "array", "boolean", "null"]},
        "bytesOf": {"type": ["string", "null"], "contentEncoding": "base64"},
    },
}
"""As CloudEvents' schema: everything by reference, and data of any type."""

USER = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "$id": "common/user.schema.json",
    "type": "object",
    "required": ["login", "id"],
    "properties": {
        "login": {"type": "string"},
        "id": {"type": "integer"},
        "name": {"type": ["string", "null"]},
        "type": {"type": "string", "enum": ["Bot", "User", "Organization"]},
    },
    "additionalProperties": False,
    "title": "User",
}
HOOK = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "$id": "issues$opened",
    "type": "object",
    "required": ["action", "issue", "sender"],
    "properties": {
        "action": {"type": "string", "enum": ["opened"]},
        "changes": {
            "type": "object",
            "properties": {"old": {"oneOf": [{"$ref": "common/user.schema.json"}, {"type": "null"}]}},
        },
        "issue": {
            "allOf": [
                {"$ref": "common/user.schema.json"},
                {"type": "object", "required": ["state"], "properties": {"state": {"type": "string"}}},
            ]
        },
        "labels": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "sender": {"$ref": "common/user.schema.json"},
        "installation": {"$ref": "#/definitions/installation"},
    },
    "definitions": {"installation": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    "additionalProperties": False,
    "title": "issue opened event",
}
"""As the webhooks of GitHub: a file for each, references to others by their paths, enums, allOf, optional objects."""


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


def read(memory: MemoryRegistry, document: Any, value: Any, **more: Any) -> Any:
    """What a message becomes, read and written again."""
    schema_id = memory.add("t-value", document, schemaType="JSON", **more)
    options = {"use.optional.for.nonrequired": "true", "json.fail.invalid.schema": "true"}
    converter = JsonSchemaConverter.configured({"schema.registry.url": memory.url, **options})
    message = b"\0" + schema_id.to_bytes(4, "big") + json.dumps(value).encode()
    schema, found = converter.to_connect("t", message)
    again = converter.from_connect("u", schema, found)
    assert converter.to_connect("u", again).value == found
    converter.close()
    return found


@pytest.mark.parametrize(
    ("data", "text"),
    [
        *[({"a": 1}, '{"a":1}'), ("x", '"x"'), (2.5, "2.5"), ([1], "[1]"), (True, "true"), (None, None)],
        ({"a": [10**30, -(2**70)]}, f'{{"a":[{10**30},{-(2**70)}]}}'),
    ],
)
def test_an_event(memory: MemoryRegistry, data: Any, text: str | None) -> None:
    found = read(memory, EVENT, {"id": "1", "source": "/s", "data": data})
    assert (found["id"], found["source"], found["time"], found["data_base64"]) == ("1", "/s", None, None)
    assert found["data"] == text


def test_a_webhook(memory: MemoryRegistry) -> None:
    memory.add("user", USER, schemaType="JSON")
    user = {"login": "octo", "id": 1, "name": None, "type": "User"}
    value = {
        "action": "opened",
        "changes": {"old": None},
        "issue": {**user, "state": "open"},
        "labels": [{"n": 1}],
        "sender": user,
    }
    loose = {**USER, "additionalProperties": True}
    memory.add("loose", loose, schemaType="JSON")
    reference = [{"name": "common/user.schema.json", "subject": "loose", "version": 1}]
    found = read(memory, HOOK, value, references=reference)
    assert found == {**value, "installation": None}

"""Which member of a union JSON is read as, where several objects or arrays are alike, as the kinds of an event are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from converters.json_schema import JsonSchemaConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

ONE_OF = "io.confluent.connect.json.OneOf"
LABEL = {"type": "object", "properties": {"name": {"type": "string"}, "color": {"type": "string"}}}


def event(action: str, **properties: Any) -> dict[str, Any]:
    """The schema of one kind of event."""
    return {"type": "object", "properties": {"action": {"type": "string", "enum": [action]}, **properties}}


def array(**items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


def read(memory: MemoryRegistry, document: Any, value: Any) -> Any:
    """What a message becomes; written and read again, it is the same."""
    schema_id = memory.add("t-value", document, schemaType="JSON")
    converter = JsonSchemaConverter.configured({"schema.registry.url": memory.url})
    schema, found = converter.to_connect("t", b"\0" + schema_id.to_bytes(4, "big") + json.dumps(value).encode())
    again = converter.from_connect("u", schema, found)
    assert again is not None
    assert json.loads(again[5:]) == value
    assert converter.to_connect("u", again).value == found
    converter.close()
    return found


def only(index: int, value: Any, count: int) -> dict[str, Any]:
    return {f"{ONE_OF}.field.{each}": value if each == index else None for each in range(count)}


@pytest.mark.parametrize("action", ["opened", "closed", "labeled"])
def test_a_symbol_tells_the_kinds_of_an_event_apart(memory: MemoryRegistry, action: str) -> None:
    actions = ["opened", "closed", "labeled"]
    document = {"oneOf": [event(each, label=LABEL, number={"type": "integer"}) for each in actions]}
    value = {"action": action, "label": {"name": "bug", "color": "red"}, "number": 1}
    assert read(memory, document, value) == only(actions.index(action), value, 3)


def test_a_symbol_outweighs_any_number_of_properties(memory: MemoryRegistry) -> None:
    document = {"oneOf": [event("opened", label=LABEL, number={"type": "integer"}), event("closed")]}
    found = read(memory, document, {"action": "closed"})
    assert found == only(1, {"action": "closed"}, 2)


def test_a_symbol_within_an_object_tells_too(memory: MemoryRegistry) -> None:
    document = {
        "oneOf": [
            {"type": "object", "properties": {"item": event("made")}},
            {"type": "object", "properties": {"item": event("gone")}},
        ]
    }
    assert read(memory, document, {"item": {"action": "gone"}}) == only(1, {"item": {"action": "gone"}}, 2)


def test_unions_within_unions(memory: MemoryRegistry) -> None:
    pairs = [{"oneOf": [event("a1"), event("a2")]}, {"oneOf": [event("b1"), event("b2")]}]
    inner = only(0, {"action": "b1"}, 2)
    assert read(memory, {"oneOf": pairs}, {"action": "b1"}) == only(1, inner, 2)


@pytest.mark.parametrize(
    ("document", "value", "index"),
    [
        ({"oneOf": [array(type="integer"), array(type="string")]}, ["a"], 1),
        ({"oneOf": [array(enum=["push", "fork"]), array(enum=["*"])]}, ["*"], 1),
        ({"oneOf": [array(type="array", items={"type": "integer"}), array(type="integer")]}, [1], 1),
    ],
)
def test_items_tell_arrays_apart(memory: MemoryRegistry, document: Any, value: Any, index: int) -> None:
    assert read(memory, document, value) == only(index, value, 2)


def test_types_of_properties_tell_objects_apart(memory: MemoryRegistry) -> None:
    documents = [{"type": "object", "properties": {"at": {"type": kind}}} for kind in ("integer", "boolean", "string")]
    assert read(memory, {"oneOf": documents}, {"at": "now"}) == only(2, {"at": "now"}, 3)


def test_what_fits_no_member_is_refused_by_the_best_one(memory: MemoryRegistry) -> None:
    documents = [event("opened", number={"type": "integer"}), event("closed", number={"type": "integer"})]
    schema_id = memory.add("t-value", {"oneOf": documents}, schemaType="JSON")
    converter = JsonSchemaConverter.configured({"schema.registry.url": memory.url})
    message = b"\0" + schema_id.to_bytes(4, "big") + b'{"action":"closed","number":"x"}'
    with pytest.raises(Exception, match=r"field\.1\.number"):
        converter.to_connect("t", message)
    converter.close()


def test_a_default_that_is_no_symbol_is_ignored(memory: MemoryRegistry, caplog: pytest.LogCaptureFixture) -> None:
    kind = {"type": "string", "enum": ["inline", "pipeline"], "default": "shared"}
    found = read(memory, {"type": "object", "properties": {"kind": kind}}, {"kind": "inline"})
    assert found == {"kind": "inline"}
    assert "'shared' is not a symbol" in caplog.text


def test_names_of_generalized_unions_stay(memory: MemoryRegistry) -> None:
    free = {"oneOf": [{"type": "integer"}, {}, {"oneOf": [{"type": "string"}, {"type": "boolean"}]}]}
    pair = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    document = {"type": "object", "properties": {"free": free, "list": array(oneOf=[array(), pair]), "pair": pair}}
    schema_id = memory.add("t-value", document, schemaType="JSON")
    options = {"schema.registry.url": memory.url, "generalized.sum.type.support": "true"}
    converter = JsonSchemaConverter.configured(options)
    message = b"\0" + schema_id.to_bytes(4, "big") + b'{"free":1,"list":[2],"pair":"x"}'
    schema, value = converter.to_connect("t", message)
    again = converter.from_connect("u", schema, value)
    assert converter.to_connect("u", again) == (schema, value)
    converter.close()

"""CloudEvents as Debezium's converter writes and reads them: recordings of its version 3.6.3 on the Java runtime.

``values.jsonl`` has the values in the form of the JSON converter, ``java.jsonl`` what became of each with a
configuration: ``bytes`` and the schemas ``registered``, or an ``error``, and the value ``read`` from the bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.errors import ConfigError, DataError
from converters.avro import AvroConverter
from converters.cloud_events import CloudEventsConverter
from converters.json import JsonConverter
from equipment.fakes.schema_registry import MemoryRegistry, serving

FOLDER = Path(__file__).parent / "data/cloud_events"
VALUES = (FOLDER / "values.jsonl").read_text(encoding="utf-8").splitlines()
RECORDINGS = {
    recorded["case"]: recorded
    for recorded in map(json.loads, (FOLDER / "java.jsonl").read_text(encoding="utf-8").splitlines())
}
REGISTRY = "http://registry:8081"
"""The registry's address in the recordings."""
WRITTEN = [case for case, recorded in RECORDINGS.items() if "error" not in recorded]
REFUSED = [case for case in RECORDINGS if case not in WRITTEN]
BETTER = {
    # Without the header that tracing needs, Java fails; the attribute is left out here.
    *(f"otel none {form}" for form in ("json", "json-plain", "json-avro", "avro")),
    # Java fails with a NullPointerException where a value is no struct; it is no change here.
    *(f"scalar {form}" for form in ("json", "json-plain", "json-avro", "avro")),
}
REFUSED_HERE = {f"schemaless {form}" for form in ("json", "json-plain", "json-avro", "avro")}
"""Java writes values without a schema as tombstones."""
BAD_NAME = "odd-names avro none"
"""Java registers a schema whose namespace Avro does not allow."""


@pytest.fixture(scope="module")
def served() -> Iterator[MemoryRegistry]:
    """A registry for all recordings, since starting one takes longer than they do."""
    with serving(MemoryRegistry()) as registry:
        yield registry


@pytest.fixture
def memory(served: MemoryRegistry) -> MemoryRegistry:
    """A registry without schemas."""
    served.schemas.clear()
    served.subjects.clear()
    return served


@pytest.fixture(scope="module")
def envelopes() -> JsonConverter:
    """The JSON converter that reads and shows values with their schemas."""
    return JsonConverter.configured({"schemas.enable": "true"})


def converter(recorded: dict[str, Any], memory: MemoryRegistry) -> CloudEventsConverter:
    config = recorded["config"]
    url = {key: memory.url for key in config if key == "avro.schema.registry.url"}
    return CloudEventsConverter.configured({**config, **url})


def write(found: CloudEventsConverter, recorded: dict[str, Any], envelopes: JsonConverter) -> bytes | None:
    value = envelopes.to_connect("t", VALUES[recorded["value"]].encode())
    headers = [(name, base64.b64decode(data)) for name, data in recorded.get("headers", ())]
    return found.from_connect_with_headers(recorded["topic"], headers, value.schema, value.value)


@pytest.mark.parametrize("case", [case for case in WRITTEN if case not in {*REFUSED_HERE, BAD_NAME}])
def test_changes_are_written_and_read_as_java_does(case: str, memory: MemoryRegistry, envelopes: JsonConverter) -> None:
    recorded = RECORDINGS[case]
    made = converter(recorded, memory)
    message = write(made, recorded, envelopes)
    if recorded["bytes"] is None:
        assert message is None
        return
    expected = base64.b64decode(recorded["bytes"])
    assert message is not None
    if expected[:1] == b"{":
        assert message == expected.replace(REGISTRY.encode(), memory.url.encode())
    else:
        plain = AvroConverter.configured({"schema.registry.url": memory.url})
        ours, java = (plain.to_connect("t", each) for each in (message, expected))
        assert ours.schema == java.schema
        assert ours.value == {**java.value, "dataschema": java.value["dataschema"].replace(REGISTRY, memory.url)}
        plain.close()
    registered = [each["schema"] for each in recorded["registered"]]
    assert [json.loads(each["schema"]) for each in memory.schemas] == [json.loads(each) for each in registered]
    subjects = {name: [each["id"]] for each in recorded["registered"] for name in each["subjects"] if name}
    assert memory.subjects == subjects
    if "read" in recorded:
        back = made.to_connect(recorded["topic"], expected)
        if back.schema is None and "avro.schema.registry.url" in recorded["config"]:
            # Java reads Avro within JSON as null: it takes base64 for no bytes.
            assert recorded["read"]["payload"]["data"] is None
            value = envelopes.to_connect("t", VALUES[recorded["value"]].encode()).value
            assert back.value["data"].items() <= value.items()
            assert back.value["data"]
            back.value["data"] = None
        shown = envelopes.from_connect("t", back.schema, back.value)
        assert shown is not None
        assert json.loads(shown) == recorded["read"]
    made.close()


@pytest.mark.parametrize("case", [case for case in REFUSED if case not in BETTER])
def test_what_java_refuses_is_refused(case: str, memory: MemoryRegistry, envelopes: JsonConverter) -> None:
    recorded = RECORDINGS[case]
    with pytest.raises((ConfigError, DataError)):
        write(converter(recorded, memory), recorded, envelopes)


@pytest.mark.parametrize("case", sorted(REFUSED_HERE))
def test_values_without_a_schema_are_no_tombstones(case: str, memory: MemoryRegistry, envelopes: JsonConverter) -> None:
    recorded = RECORDINGS[case]
    assert recorded["bytes"] is None
    with pytest.raises(DataError, match="without a schema"):
        write(converter(recorded, memory), recorded, envelopes)


def test_names_that_avro_does_not_allow_are_refused(memory: MemoryRegistry, envelopes: JsonConverter) -> None:
    recorded = RECORDINGS[BAD_NAME]
    made = converter(recorded, memory)
    with pytest.raises(DataError, match="my-srv"):
        write(made, recorded, envelopes)
    made.close()


@pytest.mark.parametrize("case", sorted(BETTER))
def test_java_fails_where_it_need_not(case: str, memory: MemoryRegistry, envelopes: JsonConverter) -> None:
    recorded = RECORDINGS[case]
    made = converter(recorded, memory)
    message = write(made, recorded, envelopes)
    assert (message is None) == case.startswith("scalar")
    made.close()

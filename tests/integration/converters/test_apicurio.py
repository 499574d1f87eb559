"""Avro and JSON with schemas in a real Apicurio Registry, beside recordings of Apicurio's own converters.

The recordings are of version 2.6.13 (``apicurio-registry-utils-converter``) on the Java runtime, with this registry: a
value as the JSON converter has it, the schema that Java registered, under which artifact, and the message without the
id, whose value is the registry's. ``read`` is what Java made of its own message; it is missing where Java lost the
schema of a scalar or failed.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from connect.converter import Converter
from connect.data import Schema
from connect.errors import DataError
from converters.apicurio import ApicurioAvroConverter, ExtJsonConverter
from converters.json import JsonConverter
from worker.embedded.registry.server import RegistryInfo

_DATA: Final = Path(__file__).parents[2] / "parity/data/apicurio/java.jsonl"
RECORDINGS: Final = [json.loads(line) for line in _DATA.read_text(encoding="utf-8").splitlines()]
TWO, THREE = "/apis/registry/v2", "/apis/registry/v3"
KINDS: Final[dict[str, Any]] = {"avro": ApicurioAvroConverter, "json": ExtJsonConverter}
AS_IN_2: Final = {
    "apicurio.registry.use-id": "globalId",
    "apicurio.registry.id-handler": "Legacy8ByteIdHandler",
    "apicurio.registry.headers.enabled": "true",
}
Make = Callable[..., Converter[Any]]


@pytest.fixture
def make(registry: RegistryInfo) -> Iterator[Make]:
    """Makes converters that use the run's registry."""
    made: list[Converter[Any]] = []

    def converter(kind: str, api: str, **config: str) -> Converter[Any]:
        given = {"apicurio.registry.url": registry.url.replace("/apis/ccompat/v7", api), **config}
        made.append(KINDS[kind].configured({"apicurio.registry.auto-register": "true", **given}))
        return made[-1]

    yield converter
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def envelopes() -> JsonConverter:
    """The JSON converter that shows values with their schemas."""
    return JsonConverter.configured({"schemas.enable": "true"})


def ask(registry: RegistryInfo, path: str) -> Any:
    with urllib.request.urlopen(registry.url.replace("/apis/ccompat/v7", THREE) + path, timeout=30) as answer:
        return json.load(answer)


def version_of(registry: RegistryInfo, recorded: dict[str, Any]) -> dict[str, Any]:
    """The version of the recorded artifact that has the recorded schema."""
    group, _, name = recorded["artifact"].partition("/")
    found: list[dict[str, Any]] = ask(registry, f"/groups/{group}/artifacts/{name}/versions")["versions"]
    registered = recorded["registered"]
    return next(each for each in found if ask(registry, f"/ids/globalIds/{each['globalId']}") == registered)


def frame(converter: Converter[Any], recorded: dict[str, Any], ids: dict[str, Any]) -> bytes:
    """What stands before the body of a recorded message, when its schema has these ids."""
    use = recorded["config"].get("apicurio.registry.use-id", "globalId")
    number: int = ids[use]
    if recorded["converter"] == "json":
        return b'{"schemaId":%d,"payload":' % (ids["contentId"] if THREE in converter.config.url.address else number)
    if "header" in recorded:
        return converter.reads_frame_from[recorded["header"]] + number.to_bytes(8, "big")
    return b"\0" + number.to_bytes(recorded["id_bytes"], "big")


@pytest.mark.parametrize("api", [TWO, pytest.param(THREE, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("number", range(len(RECORDINGS)))
def test_messages_are_those_of_apicurios_converters(
    make: Make, registry: RegistryInfo, envelopes: JsonConverter, number: int, api: str
) -> None:
    recorded = RECORDINGS[number]
    given = envelopes.to_connect("t", json.dumps(recorded["connect"]).encode())
    config = {**AS_IN_2, **recorded["config"]} if api == THREE else recorded["config"]
    converter = make(recorded["converter"], api, **config)
    message = converter.from_connect(recorded["topic"], given.schema, given.value)
    assert message == frame(converter, recorded, version_of(registry, recorded)) + base64.b64decode(recorded["body"])
    if recorded["converter"] == "avro":
        assert converter.writes_frame_to == recorded.get("header")


@pytest.mark.parametrize("number", range(len(RECORDINGS)))
def test_messages_of_apicurios_converters_are_read(
    make: Make, registry: RegistryInfo, envelopes: JsonConverter, number: int
) -> None:
    recorded = RECORDINGS[number]
    converter = make(recorded["converter"], TWO, **recorded["config"])
    group, _, name = recorded["artifact"].partition("/")
    kind = "AVRO" if recorded["converter"] == "avro" else "KCONNECT"
    content = {"content": json.dumps(recorded["registered"]), "contentType": "application/json"}
    body = {"artifactId": name, "artifactType": kind, "firstVersion": {"content": content}}
    url = registry.url.replace("/apis/ccompat/v7", THREE)
    request = urllib.request.Request(
        f"{url}/groups/{group}/artifacts?ifExists=FIND_OR_CREATE_VERSION",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        ids = json.load(answer)["version"]
    message = frame(converter, recorded, ids) + base64.b64decode(recorded["body"])
    found = converter.to_connect("t", message)
    shown = envelopes.from_connect("t", found.schema, found.value)
    assert shown is not None
    expected = recorded.get("read", recorded["connect"])
    assert json.loads(shown)["payload"] == expected["payload"]
    if "read" in recorded:
        assert json.loads(shown)["schema"] == expected["schema"]
    (column,) = converter.to_connect_column("t", [message] * 3)
    assert list(column) == [found.value] * 3


@pytest.mark.parametrize("api", [TWO, THREE])
@pytest.mark.parametrize("kind", ["avro", "json"])
def test_a_schema_is_looked_up_and_refused(make: Make, registry: RegistryInfo, topic: str, api: str, kind: str) -> None:
    old = Schema.struct({"a": Schema.int32()}, name="shop.E")
    only_looking = {"apicurio.registry.auto-register": "false"}
    with pytest.raises(DataError, match="auto-register=true"):
        make(kind, api, **only_looking).from_connect(topic, old, {"a": 1})
    message = make(kind, api).from_connect(topic, old, {"a": 1})
    assert make(kind, api, **only_looking).from_connect(topic, old, {"a": 1}) == message
    assert make(kind, api).to_connect(topic, message).value == {"a": 1}


@pytest.mark.parametrize("api", [TWO, THREE])
def test_the_latest_version_and_rules(make: Make, registry: RegistryInfo, topic: str, api: str) -> None:
    old = Schema.struct({"a": Schema.int32()}, name="shop.E")
    new = Schema.struct({"b": Schema.string(optional=True), "a": Schema.int32()}, name="shop.E")
    group = {"apicurio.registry.artifact.group-id": "g/h 1"}
    make("avro", api, **group).from_connect(topic, new, {"b": "x", "a": 2})
    follows = make(
        "avro", api, **group, **{"apicurio.registry.auto-register": "false", "apicurio.registry.find-latest": "true"}
    )
    message = follows.from_connect(topic, old, {"a": 1})
    assert make("avro", api).to_connect(topic, message).value == {"b": None, "a": 1}
    url = registry.url.replace("/apis/ccompat/v7", THREE)
    rule = json.dumps({"ruleType": "COMPATIBILITY", "config": "BACKWARD"}).encode()
    address = f"{url}/groups/g%2Fh%201/artifacts/{topic}-value/rules"
    request = urllib.request.Request(address, rule, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()
    with pytest.raises(DataError, match=f"artifact {topic}-value"):
        make("avro", api, **group).from_connect(topic, Schema.struct({"c": Schema.int32()}, name="shop.E"), {"c": 1})

"""Avro with schemas in AWS Glue: against moto's Glue, and beside another client's serializers, both ways."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import boto3
import pyarrow as pa
import pytest
from aws_schema_registry import DataAndSchema, SchemaRegistryClient
from aws_schema_registry.avro import AvroSchema as TheirSchema
from aws_schema_registry.serde import KafkaDeserializer, KafkaSerializer
from moto.server import ThreadedMotoServer

from connect.data import Schema, SchemaAndValue, ValueColumn, decimal_schema
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.testing import ConverterTests
from converters.glue import GlueAvroConverter, GlueAvroConverterConfig
from converters.glue.client import GlueRegistry

KEYS = {"aws.access.key.id": "key", "aws.secret.access.key": "pA55-word", "region": "eu-central-1"}
REGISTRY = "shop"
ROW = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(optional=True),
        "price": decimal_schema(2),
        "tags": Schema.map(Schema.int32(), Schema.string()),
        "nested": Schema.struct({"a": Schema.int8()}),
    },
    optional=True,
)
VALUE = {"id": 2**40, "name": None, "price": Decimal("1.50"), "tags": {1: "x"}, "nested": {"a": -5}}
PLAIN = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="shop.Row")
THEIRS = {
    "type": "record",
    "name": "shop.Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
Make = Callable[..., GlueAvroConverter]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Moto's Glue on loopback, with a registry."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    client_at(url).create_registry(RegistryName=REGISTRY)
    yield url
    server.stop()


def client_at(endpoint: str) -> Any:
    return boto3.client(
        "glue",
        endpoint_url=endpoint,
        region_name="eu-central-1",
        aws_access_key_id="key",
        aws_secret_access_key="pA55-word",
    )


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex}"


@pytest.fixture
def make(endpoint: str) -> Iterator[Make]:
    made: list[GlueAvroConverter] = []

    def converter(**props: str) -> GlueAvroConverter:
        given = {"schemaAutoRegistrationEnabled": "true", **props}
        made.append(GlueAvroConverter.configured({"endpoint": endpoint, "registry.name": REGISTRY, **KEYS, **given}))
        return made[-1]

    yield converter
    for each in made:
        each.close()


@pytest.fixture
def theirs(endpoint: str) -> SchemaRegistryClient:
    return SchemaRegistryClient(client_at(endpoint), registry_name=REGISTRY)


@pytest.mark.parametrize("compression", ["none", "ZLIB"])
def test_values_come_back_by_row_and_by_column(make: Make, topic: str, compression: str) -> None:
    converter = make(compression=compression)
    message = converter.from_connect(topic, ROW, VALUE)
    assert message is not None
    assert message[:2] == (b"\3\0" if compression == "none" else b"\3\5")
    reader = make()
    found = reader.to_connect(topic, message)
    assert found == SchemaAndValue(ROW.as_required(), VALUE)
    values = [{**VALUE, "id": number} for number in range(200)]
    messages = converter.from_connect_column(topic, ValueColumn([*values, None], ROW))
    assert messages[-1] is None
    (column, none) = reader.to_connect_column(topic, messages)
    assert (column.values(), none.values()) == (values, [None])
    (arrow,) = reader.to_connect_arrow(topic, pa.array(messages[:-1], pa.binary()))
    expected = [{**value, "tags": [(1, "x")]} for value in values]
    assert arrow.to_arrow().to_pylist() == expected


def test_nameless_types_have_the_names_of_amazons_converter(make: Make, topic: str, endpoint: str) -> None:
    make().from_connect(topic, ROW, VALUE)
    version = client_at(endpoint).get_schema_version(
        SchemaId={"RegistryName": REGISTRY, "SchemaName": topic}, SchemaVersionNumber={"LatestVersion": True}
    )
    schema = json.loads(version["SchemaDefinition"])
    amazon = "com.amazonaws.services.schemaregistry.kafkaconnect.avrodata"
    assert (schema["type"], schema["namespace"], schema["name"]) == ("record", amazon, "ConnectDefault")
    assert "io.confluent" not in version["SchemaDefinition"]
    assert schema["fields"][3]["type"]["items"]["name"] == "MapEntry"


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated:DeprecationWarning")
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_the_peer_reads_what_is_written_and_is_read(
    make: Make, theirs: SchemaRegistryClient, topic: str, compression: str | None
) -> None:
    value = {"id": 7, "name": "é" * 50}
    message = make(compression=compression or "none").from_connect(topic, PLAIN, value)
    found = KafkaDeserializer(theirs).deserialize(topic, message)
    assert found.data == value
    serializer = KafkaSerializer(theirs, schema_naming_strategy=lambda topic, *_: topic)
    written = serializer.serialize(topic, DataAndSchema(value, TheirSchema(json.dumps(THEIRS))))
    if compression:
        written = b"\3\5" + written[2:18] + zlib.compress(written[18:])
    assert make().to_connect(topic, written) == SchemaAndValue(PLAIN, value)


def test_a_known_schema_needs_no_registration(make: Make, topic: str) -> None:
    fixed = make(schemaAutoRegistrationEnabled="false", schemaName=topic)
    with pytest.raises(DataError, match="schemaAutoRegistrationEnabled=true"):
        fixed.from_connect("other", PLAIN, {"id": 1, "name": None})
    first = make().from_connect(topic, PLAIN, {"id": 1, "name": None})
    assert fixed.from_connect("other", PLAIN, {"id": 1, "name": None}) == first
    wider = Schema.struct(
        {**{field.name: field.schema for field in PLAIN.fields}, "x": Schema.int32(optional=True)}, name="shop.Row"
    )
    second = make().from_connect(topic, wider, {"id": 1, "name": None, "x": 5})
    assert first is not None
    assert second is not None
    assert first[2:18] != second[2:18]
    reader = make()
    assert [reader.to_connect(topic, message).value.get("x") for message in (first, second)] == [None, 5]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Schema.bytes(), b""),
        (Schema.bytes(), b"\0" * 200),
        (decimal_schema(2), Decimal("-1.25")),
        (Schema.string(), "text"),
        (Schema.int64(), -(2**63)),
        (Schema.array(Schema.string()), ["a", "b"]),
    ],
)
def test_what_is_no_record_comes_back(
    make: Make, theirs: SchemaRegistryClient, topic: str, schema: Schema, value: Any
) -> None:
    message = make().from_connect(topic, schema, value)
    assert make().to_connect(topic, message) == SchemaAndValue(schema, value)
    if not schema.name:
        # The peer reads it by the rules of Avro, with the length of bytes.
        assert KafkaDeserializer(theirs).deserialize(topic, message).data == value


def test_damaged_messages_are_bad_records(make: Make, topic: str, endpoint: str) -> None:
    converter = make()
    good = converter.from_connect(topic, PLAIN, {"id": 1, "name": "x"})
    long = converter.from_connect(f"{topic}-b", Schema.bytes(), b"abc")
    assert good is not None
    assert long is not None
    packed = b"\3\5" + good[2:18] + zlib.compress(good[18:])
    unknown = good[:2] + uuid.UUID(int=5).bytes + good[18:]
    messages = [b"", b"\3", good[:17], b"\0" + good[1:], b"\3\1" + good[2:], good[:-1], good + b"\0", unknown]
    messages += [
        packed[:-1],
        packed + b"\0",
        packed[:18] + b"no",
        long[:-1],
        long + b"x",
        long[:18],
        long[:18] + b"\x07abc",
    ]
    messages += [long[:18] + b"\xff" * 12, b"\3\5" + good[2:18]]
    for message in messages:
        with pytest.raises(DataError):
            converter.to_connect(topic, message)
    with pytest.raises(DataError, match="64 MiB"):
        converter.to_connect(topic, packed[:18] + zlib.compress(bytes(65 << 20), 9))
    client = client_at(endpoint)
    made = client.create_schema(
        RegistryId={"RegistryName": REGISTRY},
        SchemaName=f"{topic}-json",
        DataFormat="JSON",
        Compatibility="NONE",
        SchemaDefinition='{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}',
    )
    with pytest.raises(DataError, match="for JSON, not for Avro"):
        converter.to_connect(topic, b"\3\0" + uuid.UUID(made["SchemaVersionId"]).bytes + b"{}")


def test_a_registry_that_is_away_or_refuses(make: Make, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = b"\3\0" + uuid.uuid4().bytes
    with pytest.raises(RetriableError, match="cannot be reached"):
        make(endpoint="http://127.0.0.1:1").to_connect(topic, message)
    with pytest.raises(DataError, match="no-such"):
        make(**{"registry.name": "no-such"}).from_connect(topic, PLAIN, {"id": 1, "name": None})
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    alone = {"region": "eu-central-1", "endpoint": "http://127.0.0.1:1"}
    with pytest.raises(ConnectError, match="credentials"):
        GlueAvroConverter.configured(alone).to_connect(topic, message)


class Answers:
    """A Glue that answers as told: the status of a new version changes from answer to answer."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)

    def get_schema_by_definition(self, **_: Any) -> dict[str, str]:
        return {"SchemaVersionId": str(uuid.UUID(int=1)), "Status": self.statuses.pop(0)}

    def get_schema_version(self, **_: Any) -> dict[str, str]:
        return {"Status": self.statuses.pop(0)}


@pytest.mark.parametrize(
    ("statuses", "error"),
    [
        (["AVAILABLE"], None),
        (["PENDING", "PENDING", "AVAILABLE"], None),
        (["PENDING", "FAILURE"], DataError),
        (["FAILURE"], DataError),
        (["PENDING"] * 21, RetriableError),
    ],
)
def test_a_version_is_used_once_it_is_available(statuses: list[str], error: type[Exception] | None) -> None:
    waits: list[float] = []
    registry = GlueRegistry(GlueAvroConverterConfig.parse(KEYS), pause=waits.append)
    registry._made = Answers(*statuses)
    if error is None:
        assert registry.version("s", "{}") == uuid.UUID(int=1)
    else:
        with pytest.raises(error):
            registry.version("s", "{}")
    assert len(waits) == min(statuses.count("PENDING"), 20)


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"region": None}, "region"),
        ({"schemaNameGenerationClass": "com.acme.Own"}, "schemaName"),
        ({"secondaryDeserializer": "com.acme.Own"}, "not read"),
        ({"compression": "gzip"}, "compression"),
        ({"aws.secret.access.key": None}, "belong together"),
        ({"endpoint": "http://169.254.169.254"}, "endpoint"),
    ],
)
def test_options_that_cannot_be_are_refused(props: dict[str, Any], words: str) -> None:
    given = {key: value for key, value in {**KEYS, **props}.items() if value is not None}
    with pytest.raises(ConfigError, match=words):
        GlueAvroConverterConfig.parse(given)


@pytest.mark.thorough
class TestGlueAvro(ConverterTests):
    """The contract of converters."""

    converter_class = GlueAvroConverter

    @pytest.fixture
    def props(self, endpoint: str) -> dict[str, str]:
        more = {"schemaAutoRegistrationEnabled": "true", "compatibility": "none", "registry.name": REGISTRY}
        return {"endpoint": endpoint, **KEYS, **more}

    @pytest.fixture
    def refused(self) -> tuple[bytes, ...]:
        return (b"", b"\0", b"\3\0" + bytes(16), b"text", b"\3\5")

    def expected(self, given: SchemaAndValue) -> SchemaAndValue | None:
        if given.value is None:
            return SchemaAndValue(None, None)
        return SchemaAndValue(given.schema and given.schema.as_required(), given.value)

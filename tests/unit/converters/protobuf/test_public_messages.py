"""Public files of Protobuf: OpenTelemetry's, as its own package writes them, Google's types, and CloudEvents' shape."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import google.rpc
import google.type
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from converters.protobuf import ProtobufConverter
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.proto_schema import ProtoSchema
from converters.protobuf.to_connect import reading_of
from equipment.fakes.schema_registry import MemoryRegistry, serving

EVENT = """syntax = "proto3";
package events.v1;
import "google/protobuf/any.proto";
import "google/protobuf/timestamp.proto";
message Event {
  string id = 1;
  map<string, Attribute> attributes = 5;
  oneof data { bytes binary = 6; string text = 7; google.protobuf.Any message = 8; }
  message Attribute {
    oneof attr { bool flag = 1; int32 number = 2; google.protobuf.Timestamp time = 7; }
  }
}
"""


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    """A registry that serves on loopback."""
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


@pytest.fixture
def converter(memory: MemoryRegistry) -> Iterator[ProtobufConverter]:
    """A converter that writes in the latest schema, which is another's."""
    made = ProtobufConverter.configured(
        {
            "schema.registry.url": memory.url,
            "auto.register.schemas": "false",
            "use.latest.version": "true",
            "enhanced.protobuf.schema.support": "true",
            "optional.for.nullables": "true",
        }
    )
    yield made
    made.close()


def test_traces_of_opentelemetry(memory: MemoryRegistry, converter: ProtobufConverter) -> None:
    for module in (common_pb2, resource_pb2, trace_pb2, trace_service_pb2):
        # Clients in Python register schemas so: serialized, in base64, with what they import as references.
        file = module.DESCRIPTOR
        text = base64.b64encode(file.serialized_pb).decode()
        references = [{"name": each.name, "subject": each.name, "version": 1} for each in file.dependencies]
        memory.add(file.name, text, schemaType="PROTOBUF", references=references)
    schema_id = memory.add("t-value", text, schemaType="PROTOBUF", references=references)
    value = common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=[common_pb2.AnyValue(int_value=5)]))
    span = trace_pb2.Span(
        trace_id=b"\1" * 16,
        name="call",
        kind=trace_pb2.Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=1_700_000_000_000_000_000,
        attributes=[
            common_pb2.KeyValue(key="a", value=common_pb2.AnyValue(string_value="x")),
            common_pb2.KeyValue(key="b", value=value),
        ],
        status=trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_OK),
    )
    scope = trace_pb2.ScopeSpans(spans=[span])
    request = trace_service_pb2.ExportTraceServiceRequest(resource_spans=[trace_pb2.ResourceSpans(scope_spans=[scope])])
    message = b"\0" + schema_id.to_bytes(4, "big") + b"\0" + request.SerializeToString()
    schema, found = converter.to_connect("t", message)
    (read,) = found["resource_spans"][0]["scope_spans"][0]["spans"]
    assert (read["name"], read["kind"], read["trace_id"]) == ("call", "SPAN_KIND_CLIENT", b"\1" * 16)
    assert read["start_time_unix_nano"] == 1_700_000_000_000_000_000
    assert read["status"]["code"] == "STATUS_CODE_OK"
    first, second = (each["value"]["value_0"] for each in read["attributes"])
    assert first["string_value"] == "x"
    # A value within a value is bytes: the message it was.
    inner = common_pb2.AnyValue.FromString(second["array_value"]["values"][0])
    assert inner.int_value == 5
    assert converter.from_connect("t", schema, found) == message


def test_the_shape_of_cloudevents(memory: MemoryRegistry, converter: ProtobufConverter) -> None:
    schema_id = memory.add("t-value", EVENT, schemaType="PROTOBUF")
    data = bytes.fromhex("000a01312a070a0161120210073a0178")
    message = b"\0" + schema_id.to_bytes(4, "big") + data
    schema, value = converter.to_connect("t", message)
    assert value["id"] == "1"
    assert value["attributes"]["a"] == {"attr_0": {"flag": None, "number": 7, "time": None}}
    assert value["data_0"] == {"binary": None, "text": "x", "message": None}
    assert converter.from_connect("t", schema, value) == message


@pytest.mark.parametrize("package", [google.type, google.rpc], ids=["type", "rpc"])
def test_every_message_of_googles_files_has_a_schema(package: object) -> None:
    folder = Path(next(iter(package.__path__)))  # type: ignore[attr-defined]
    files = sorted(folder.glob("*.proto"))
    imports = "".join(f'import public "google/{folder.name}/{file.name}";\n' for file in files)
    schema = ProtoSchema(f'syntax = "proto3";\n{imports}message Root {{}}')
    config = ProtobufConverterConfig(schema_registry_url=("http://127.0.0.1:1",))
    count = 0
    for file in schema.file.dependencies:
        for message in file.message_types_by_name.values():
            assert reading_of(message, config).schema.name == message.name
            count += 1
    assert count >= 10


PACKAGED = """syntax = "proto3";
package io.events.v1;
message Event { string id = 1; Inner inner = 2; message Inner { int32 a = 1; } }
message Batch { repeated Event events = 1; }
"""


@pytest.mark.parametrize(
    ("indexes", "body"),
    [("00", "0a0131"), ("0202", "0a030a0131"), ("040000", "0805")],
    ids=["first", "second", "inner"],
)
@pytest.mark.parametrize("enhanced", ["false", "true"])
def test_a_message_of_a_package_is_written_in_its_schema_again(
    memory: MemoryRegistry, indexes: str, body: str, enhanced: str
) -> None:
    schema_id = memory.add("t-value", PACKAGED, schemaType="PROTOBUF")
    options = {"auto.register.schemas": "false", "use.latest.version": "true"}
    given = {"schema.registry.url": memory.url, "enhanced.protobuf.schema.support": enhanced, **options}
    converter = ProtobufConverter.configured(given)
    message = b"\0" + schema_id.to_bytes(4, "big") + bytes.fromhex(indexes + body)
    schema, value = converter.to_connect("t", message)
    assert converter.from_connect("t", schema, value) == message
    converter.close()

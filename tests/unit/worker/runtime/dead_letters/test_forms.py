"""Parts of dead letters as text, and back: exactly, or not at all."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from connect.data import Schema
from connect.errors import ConnectError
from converters.avro.converter import AvroConverter, AvroConverterConfig
from equipment.fakes.schema_registry import MemoryRegistry, serving
from worker.errors import BadRequestError
from worker.runtime.assembly import Assembly
from worker.runtime.dead_letters.forms import PartForms, bytes_of, header_form, text_of
from worker.security.redaction import Redaction

WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "/f"}
ORDER = Schema.struct({"id": Schema.int64(), "note": Schema.string(), "rate": Schema.float64()}, name="Order")


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    with serving(MemoryRegistry()) as memory:
        yield memory


def values(**config: str) -> PartForms:
    props = {f"value.converter{key}": value for key, value in config.items()}
    return PartForms(Assembly.resolve(WORKER, SINK | props, Redaction()), "value")


def avro(registry: MemoryRegistry, **more: str) -> PartForms:
    return values(**{"": "AvroConverter", ".schema.registry.url": registry.url, **more})


def written(registry: MemoryRegistry) -> bytes:
    converter = AvroConverter(AvroConverterConfig(schema_registry_url=(registry.url,)))
    data = converter.from_connect("t", ORDER, {"id": 2**60 + 1, "note": "ü", "rate": 0.1})
    assert data is not None
    return data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("zwölf\n\t{}".encode(), "zwölf\n\t{}"),
        (b"a\r\nb", None),
        (b"a\x00b", None),
        ("\u202e".encode(), None),
        (b"\xff", None),
    ],
)
def test_bytes_are_text_only_where_an_editor_gives_back_the_same(data: bytes, text: str | None) -> None:
    assert text_of(data) == text


def test_every_form_is_read_back() -> None:
    assert bytes_of({"text": "ü"}, "key") == "ü".encode()
    assert bytes_of({"base64": "/w=="}, "key") == b"\xff"
    assert bytes_of({"hex": "00 ff"}, "key") == b"\x00\xff"
    assert [header_form(data) for data in (None, b"x", b"\x00")] == [None, {"text": "x"}, {"base64": "AA=="}]


@pytest.mark.parametrize("form", [{"base64": "/w=x"}, {"base64": "ü"}, {"hex": "0"}, {"json": "1"}, {"text": "\ud800"}])
def test_what_is_no_such_form_names_the_part(form: dict[str, str]) -> None:
    with pytest.raises(BadRequestError, match="header trace"):
        bytes_of(form, "header trace")


def test_a_value_without_a_schema_is_text() -> None:
    forms = values(**{"": "JsonConverter", ".schemas.enable": "false"})
    shown = forms.document("t", b'{"id": 1}')
    assert shown is not None
    assert (shown["text"], shown["base64"], shown["json"]) == ('{"id": 1}', "eyJpZCI6IDF9", None)
    assert shown["no_json"] == "it has no schema"
    assert forms.document("t", None) is None
    assert forms.encoded("t", b"old", {"text": "new"}) == b"new"


def test_a_number_in_bytes_is_edited_as_json() -> None:
    forms = values(**{"": "LongConverter"})
    five = struct.pack(">q", 5)
    assert forms.as_json("t", five) == "5"
    assert forms.encoded("t", five, {"json": str(2**62)}) == struct.pack(">q", 2**62)


def test_avro_is_edited_as_json_to_the_last_digit(registry: MemoryRegistry) -> None:
    data, forms = written(registry), avro(registry)
    text = forms.as_json("t", data)
    assert text == f'{{"id":{2**60 + 1},"note":"ü","rate":0.1}}'
    assert forms.encoded("t", data, {"json": text}) == data
    edited = forms.encoded("t", data, {"json": text.replace('"ü"', '"mended"')})
    assert edited[:5] == data[:5], "by the same schema"
    assert AvroConverter(AvroConverterConfig(schema_registry_url=(registry.url,))).to_connect("t", edited).value == {
        "id": 2**60 + 1,
        "note": "mended",
        "rate": 0.1,
    }


def test_nothing_is_registered(registry: MemoryRegistry) -> None:
    data = written(registry)
    registry.subjects.clear()
    before = len(registry.schemas)
    forms = avro(registry)
    assert forms.encoded("t", data, {"json": forms.as_json("t", data)}) == data
    assert (len(registry.schemas), registry.subjects) == (before, {})


@pytest.mark.parametrize(
    "text",
    [
        '{"id":"5","note":"n","rate":1}',
        '{"id":true,"note":"n","rate":1}',
        '{"id":9223372036854775808,"note":"n","rate":1}',
        '{"id":5,"note":7,"rate":1}',
        '{"id":5,"note":"n","rate":0.10000000000000000001}',
        '{"id":5,"note":"n"}',
        '{"id":5,"note":"n","rate":1,"more":2}',
        '{"id":5,"note":null,"rate":1}',
        '{"id":5}}, "payload": {"id":6',
        "[" * 100_000,
        "not JSON",
        "",
    ],
)
def test_json_that_would_be_taken_for_something_else_is_refused(registry: MemoryRegistry, text: str) -> None:
    data = written(registry)
    with pytest.raises(BadRequestError, match="value"):
        avro(registry).encoded("t", data, {"json": text})


def test_where_there_is_no_schema_json_is_refused() -> None:
    with pytest.raises(BadRequestError, match="it is null now"):
        values(**{"": "LongConverter"}).encoded("t", None, {"json": "5"})


def test_a_registry_that_is_away_leaves_the_other_forms(registry: MemoryRegistry) -> None:
    data = written(registry)
    registry.troubles.extend([500] * 50)
    shown = avro(registry, **{".max.retries": "0"}).document("t", data)
    assert shown is not None
    assert shown["json"] is None
    assert shown["no_json"]
    with pytest.raises(ConnectError):
        avro(registry, **{".max.retries": "0"}).as_json("t", data)

"""Round trips recorded from the converters of Apache Kafka Connect 4.3.1.

The recording names its inputs and shows values as text (``Long:5``); ``INPUTS`` has the values for the names,
``described`` and ``shown`` bring ours to that text.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from connect.data import Schema, Type, date_schema, decimal_schema, time_schema, timestamp_schema
from connect.data.numerals import double_text, float_text, single
from connect.errors import DataError
from connect.internals.java.value_text import value_text
from converters.simple_header import SimpleHeaderConverter
from equipment.vectors import DATA
from parity.test_converters import CONVERTERS

ROW = Schema.struct(
    {
        "id": Schema.int64(),
        "name": Schema.string(optional=True),
        "amt": decimal_schema(2),
        "n": Schema.int32(default=7),
        "opt": Schema.int32(optional=True, default=9),
        "inner": Schema.struct({"x": Schema.float64()}, optional=True),
        "arr": Schema.array(Schema.string(), optional=True),
        "m": Schema.map(Schema.string(), Schema.int32(), optional=True),
        "b": Schema.bytes(optional=True),
        "ts": timestamp_schema(optional=True),
    },
    name="com.acme.Row",
    version=3,
    doc="a row",
)
MOMENT = dt.datetime(2025, 10, 9, 8, 53, 20, 123000, dt.UTC)
FULL_ROW = {
    "id": 42,
    "name": 'Zoë "q" \u2028 /',
    "amt": Decimal("-12.34"),
    "n": 1,
    "inner": {"x": 1.0},
    "arr": ["a", "b"],
    "m": {"j": 2, "k": 1},
    "b": b"\x00\x01\xff",
    "ts": MOMENT,
}
SCHEMALESS = {
    "s": "x",
    "i": 5,
    "l": 5,
    "f": 1.5,
    "d": 2.0,
    "n": None,
    "list": [1, "two", None],
    "bytes": b"hi",
    "nested": {"k": True},
}
STRING, INT32, FLOAT64 = Schema.string(), Schema.int32(), Schema.float64()
INPUTS: dict[str, tuple[Schema | None, Any]] = {
    "null_null": (None, None),
    "int8": (Schema.int8(), -7),
    "int16": (Schema.int16(), 300),
    "int32": (INT32, 70000),
    "int64": (Schema.int64(), 9007199254740993),
    "int64_min": (Schema.int64(), -(2**63)),
    "float32": (Schema.float32(), single(1.1)),
    "float32_small": (Schema.float32(), single(1e-10)),
    "float64": (FLOAT64, 1.1),
    "float64_int": (FLOAT64, 3.0),
    "float64_big": (FLOAT64, 1e20),
    "float64_max": (FLOAT64, 1.7976931348623157e308),
    "float64_nan": (FLOAT64, float("nan")),
    "float64_inf": (FLOAT64, float("inf")),
    "float64_negzero": (FLOAT64, -0.0),
    "boolean": (Schema.boolean(), True),
    "string": (STRING, 'line "1"\té€😀</x>\x01'),
    "bytes": (Schema.bytes(), b"\x01\x02\x03\x04\x05"),
    "bytes_empty": (Schema.bytes(), b""),
    "optional_string_null": (Schema.string(optional=True), None),
    "string_null_not_optional": (STRING, None),
    "default_string_null": (Schema.string(optional=True, default="dflt"), None),
    "array_int": (Schema.array(INT32), [1, 2, 3]),
    "array_optional_null": (Schema.array(Schema.int32(optional=True)), [1, None]),
    "map_string": (Schema.map(STRING, INT32), {"a": 1, "b": 2}),
    "map_int_key": (Schema.map(INT32, STRING), {1: "a", 2: "b"}),
    "struct": (ROW, FULL_ROW),
    "struct_sparse": (ROW, {"id": 1, "amt": Decimal("0.00"), "n": 5}),
    "decimal": (decimal_schema(2), Decimal("12345.67")),
    "decimal_neg": (decimal_schema(0), Decimal(-1)),
    "decimal_zero": (decimal_schema(2), Decimal("0.00")),
    "date": (date_schema(), dt.date(2025, 10, 9)),
    "time": (time_schema(), dt.time(8, 53, 20, 123000)),
    "timestamp": (timestamp_schema(), MOMENT),
    "schemaless_map": (None, SCHEMALESS),
    "schemaless_string": (None, "plain"),
    "schemaless_long": (None, 5),
    "schemaless_list": (None, [1, 2]),
    "schemaless_bytes": (None, b"\t"),
    "schemaless_intkey_map": (None, {1: "x"}),
    "schemaless_date": (None, MOMENT),
    "schemaless_decimal": (None, Decimal("1.50")),
    "type_mismatch": (INT32, "x"),
    "named_param": (
        Schema.string(name="x.Y", version=2, doc="doc", parameters={"p1": "v1", "p2": "v2"}),
        "v",
    ),
}
ARGUMENTS: dict[str, tuple[Schema | None, Any]] = {
    "null": (None, None),
    "String:abcé": (STRING, "abcé"),
    "String:abc": (None, "abc"),
    "Long:5": (Schema.int64(), 5),
    "Integer:5": (INT32, 5),
    "Short:5": (Schema.int16(), 5),
    "Float:1.5": (Schema.float32(), 1.5),
    "Double:1.5": (FLOAT64, 1.5),
    "Boolean:true": (Schema.boolean(), True),
    "bytes:AQI=": (Schema.bytes(), b"\x01\x02"),
    "row": (ROW, FULL_ROW),
    "map": (None, SCHEMALESS),
    "list": (None, [1, 2]),
    "Date:Thu Oct 09 08:53:20 UTC 2025": (None, MOMENT),
}
HEADERS: list[tuple[Schema | None, Any]] = [
    (STRING, "x"),
    (INT32, 5),
    (Schema.bytes(), b"\x01\x02"),
    (Schema.array(INT32), [1, 2]),
    (timestamp_schema(), MOMENT),
    (date_schema(), MOMENT.date()),
    (time_schema(), MOMENT.time()),
    (decimal_schema(2), Decimal("1.50")),
    (ROW, FULL_ROW),
]
HEADER_CONVERTER = SimpleHeaderConverter.configured({})

NEGATIVE_ZERO = "the sign of a negative zero is kept, as it stands in the text; Java loses it"
NO_ELEMENT_TYPE = "an array has a schema if its elements have one; Java's has an array schema without an element type"
NULL_HEADER = "text that says null is a null; Java fails"
HEADER_TEXT = "text that is not written back the same stays text; Java makes a number of it"
WHOLE = "a whole number keeps its digits, or is refused where they do not fit; Java keeps the low bits"
NOT_A_NUMBER = "what is written for it is read; Java reads 0"
REFUSED: Any = object()
ADDRESS = "bytes are written in base64; Java writes the address of an array, another one each time"
DIFFERENCES: dict[str, tuple[Any, str]] = {
    **{
        f"JsonConverter-{config}-float64_negzero-roundtrip": ("Double:-0.0", NEGATIVE_ZERO)
        for config in (
            "schemas.enable=true",
            "schemas.enable=false",
            "schemas.enable=true,decimal.format=NUMERIC",
            "schemas.enable=false,decimal.format=NUMERIC",
            "schemas.enable=false,replace.null.with.default=false",
        )
    },
    **{
        f"JsonConverter-{config}-{case}-roundtrip": (value, NOT_A_NUMBER)
        for config in ("schemas.enable=true", "schemas.enable=true,decimal.format=NUMERIC")
        for case, value in (("float64_nan", "Double:NaN"), ("float64_inf", "Double:Infinity"))
    },
    "JsonConverter-schemas.enable=false-12345678901234567890-to": ("Long:12345678901234567890", WHOLE),
    'JsonConverter-schemas.enable=true-{"schema":{"type":"int8"},"payload":300}-to': (REFUSED, WHOLE),
    'SimpleHeaderConverter-[1,"a"]-to': ((None, ["Long:1", "String:a"]), NO_ELEMENT_TYPE),
    "SimpleHeaderConverter-null-to": ((None, None), NULL_HEADER),
    "SimpleHeaderConverter-1e5-to": (("STRING", "String:1e5"), HEADER_TEXT),
    "StringConverter-bytes:AQI=-from": ("AQI=", ADDRESS),
    "StringConverter-row-from": (
        'Struct{id=42,name=Zoë "q" \u2028 /,amt=-12.34,n=1,inner=Struct{x=1.0},arr=[a, b],m={j=2, k=1},b=AAH/,'
        "ts=Thu Oct 09 08:53:20 UTC 2025}",
        ADDRESS,
    ),
    "StringConverter-map-from": (
        "{s=x, i=5, l=5, f=1.5, d=2.0, n=null, list=[1, two, null], bytes=aGk=, nested={k=true}}",
        ADDRESS,
    ),
}
"""What Sluice answers otherwise than Java, and why, by recording. ``docs/converters/json.md`` has it for users."""

RECORDS = [
    json.loads(line) for line in (DATA / "records" / "converters.jsonl").read_text(encoding="utf-8").strip().split("\n")
]
WRITTEN = [record for record in RECORDS if "case" in record and record["dir"] == "from"]
RETURNED = [record for record in RECORDS if "case" in record and record["dir"] == "roundtrip"]
SIMPLE = [record for record in RECORDS if record["converter"] == "SimpleHeaderConverter"]
READ = [record for record in RECORDS if "case" not in record and record["dir"] == "to" and record not in SIMPLE]
GIVEN = [record for record in RECORDS if "case" not in record and record["dir"] == "from" and record not in SIMPLE]
HEADERS_READ = [record for record in SIMPLE if record["dir"] == "to"]
HEADERS_WRITTEN = [record for record in SIMPLE if record["dir"] == "from"]


def name_of(record: dict[str, Any]) -> str:
    parts = (record["converter"], record.get("config"), record.get("case"), record.get("input"), record.get("hex"))
    return "-".join(str(part) for part in parts if part is not None)


def name_of_difference(record: dict[str, Any]) -> str:
    given = record.get("in")
    kind = {dict: "row" if "id" in (given or ()) else "map", str: given}.get(type(given))
    parts = [record.get(part) for part in ("converter", "config", "case", "input")]
    return "-".join(part for part in (*parts, kind, record["dir"]) if part is not None)


def answer_to(record: dict[str, Any], javas: Any) -> Any:
    """What Sluice is to answer: what Java did, unless the table of differences says otherwise."""
    return DIFFERENCES.get(name_of_difference(record), (javas, ""))[0]


def converter_of(record: dict[str, Any]) -> Any:
    props = dict(pair.split("=") for pair in record.get("config", "").split(",") if pair)
    return CONVERTERS[record["converter"]].configured(props)


def described(schema: Schema | None) -> str | None:
    """The recording's text of a schema."""
    if schema is None:
        return None
    text = schema.type.name
    for label, part in (("name", schema.name), ("v", schema.version)):
        text += f" {label}={part}" if part is not None else ""
    if schema.parameters:
        text += f" params={{{', '.join(f'{key}={value}' for key, value in schema.parameters.items())}}}"
    text += f" doc={schema.doc}" if schema.doc else ""
    text += " optional" if schema.optional else ""
    text += f" default={schema.default}" if schema.default is not None else ""
    if schema.type is Type.STRUCT:
        text += f"{{{''.join(f'{field.name}:{described(field.schema)};' for field in schema.fields)}}}"
    elif schema.type is Type.ARRAY:
        text += f"<{described(schema.value_schema) or 'null'}>"
    elif schema.type is Type.MAP:
        text += f"<{described(schema.key_schema)},{described(schema.value_schema)}>"
    return text


def shown(value: Any, schema: Schema | None) -> Any:
    """The recording's form of a value that was read."""
    kind = schema.type if schema is not None else None
    match value:
        case None:
            return None
        case str():
            return f"String:{value}"
        case bool():
            return f"Boolean:{str(value).lower()}"
        case int():
            names = {Type.INT8: "Byte", Type.INT16: "Short", Type.INT32: "Integer"}
            return f"{names.get(kind, 'Long')}:{value}"
        case float():
            return f"Float:{float_text(value)}" if kind is Type.FLOAT32 else f"Double:{double_text(value)}"
        case bytes():
            return f"bytes:{base64.b64encode(value).decode()}"
        case Decimal():
            return f"BigDecimal:{value}"
        case dt.date() | dt.time():
            return f"Date:{value_text(schema, value)}"
        case list():
            return [shown(item, schema and schema.value_schema) for item in value]
        case dict() if kind is Type.STRUCT:
            return {field.name: shown(value[field.name], field.schema) for field in schema.fields}
        case dict():
            key_names = {Type.INT32: "Integer"} if schema is not None else {}
            key_kind = key_names.get(schema.key_schema.type, "String") if schema is not None else "String"
            return {f"{key}({key_kind})": shown(item, schema and schema.value_schema) for key, item in value.items()}
        case _:
            raise AssertionError(value)


@pytest.mark.parametrize("record", WRITTEN, ids=name_of)
def test_writes_what_java_wrote(record: dict[str, Any]) -> None:
    schema, value = INPUTS[record["case"]]
    assert described(schema) == record["schema"]
    if "error" in record:
        with pytest.raises(DataError):
            converter_of(record).from_connect("topic", schema, value)
        return
    expected = None if record["bytes"] is None else record["bytes"].encode()
    assert converter_of(record).from_connect("topic", schema, value) == expected


@pytest.mark.parametrize("record", RETURNED, ids=name_of)
def test_reads_back_what_java_read(record: dict[str, Any]) -> None:
    converter = converter_of(record)
    written = converter.from_connect("topic", *INPUTS[record["case"]])
    for schema, value in (
        converter.to_connect("topic", written),
        *((column.schema, column[0]) for column in converter.to_connect_column("topic", [written])),
    ):
        assert described(schema) == record["schema"]
        assert shown(value, schema) == answer_to(record, record["value"])


@pytest.mark.parametrize("record", READ, ids=name_of)
def test_reads_what_java_read(record: dict[str, Any]) -> None:
    if "input" in record:
        data = None if record["input"] is None else record["input"].encode()
    else:
        data = None if record["hex"] is None else bytes.fromhex(record["hex"])
    expected = REFUSED if "error" in record else answer_to(record, record["value"])
    if expected is REFUSED:
        with pytest.raises(DataError):
            converter_of(record).to_connect("topic", data)
        return
    schema, value = converter_of(record).to_connect("topic", data)
    assert described(schema) == record["schema"]
    assert shown(value, schema) == expected


def argument_of(record: dict[str, Any]) -> tuple[Schema | None, Any]:
    given = record["in"]
    if isinstance(given, dict):
        return ARGUMENTS["row" if "id" in given else "map"]
    if isinstance(given, list):
        return ARGUMENTS["list"]
    return ARGUMENTS["null" if given is None else given]


@pytest.mark.parametrize("record", GIVEN, ids=lambda record: f"{name_of(record)}-{str(record['in'])[:20]}")
def test_takes_and_refuses_what_java_did(record: dict[str, Any]) -> None:
    schema, value = argument_of(record)
    assert described(schema) == record["schema"]
    if "error" in record:
        with pytest.raises(DataError):
            converter_of(record).from_connect("topic", schema, value)
        return
    java = None if record.get("hex") is None else bytes.fromhex(record["hex"])
    expected = answer_to(record, java)
    written = converter_of(record).from_connect("topic", schema, value)
    assert written == (expected.encode() if isinstance(expected, str) else expected)


def test_all_recordings_are_replayed() -> None:
    replayed = (WRITTEN, RETURNED, READ, GIVEN, HEADERS_READ, HEADERS_WRITTEN)
    assert sum(map(len, replayed)) == len(RECORDS) == 684
    assert DIFFERENCES.keys() <= {name_of_difference(record) for records in replayed for record in records}


@pytest.mark.parametrize("record", HEADERS_READ, ids=name_of)
def test_reads_headers_as_java_did(record: dict[str, Any]) -> None:
    java = None if "error" in record else (record["schema"], record["value"])
    schema, value = HEADER_CONVERTER.to_connect_header("topic", "key", record["input"].encode())
    assert (described(schema), shown(value, schema)) == answer_to(record, java)


def header_of(record: dict[str, Any]) -> tuple[Schema | None, Any]:
    if record["schema"] is None:
        return None, SCHEMALESS if record["in"] is not None else None
    return next(pair for pair in HEADERS if described(pair[0]) == record["schema"])


@pytest.mark.parametrize("record", HEADERS_WRITTEN, ids=lambda record: f"{name_of(record)}-{record['schema']}"[:70])
def test_writes_headers_as_java_did(record: dict[str, Any]) -> None:
    written = HEADER_CONVERTER.from_connect_header("topic", "key", *header_of(record))
    assert (None if written is None else written.decode()) == record["bytes"]

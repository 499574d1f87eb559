"""Reads the behaviour vectors of Kafka Connect: schemas, values and records in their notation.

``schema_of``, ``value_of`` and ``record_of`` convert them to Sluice's. To compare a result with the one that a vector
expects, bring both to one form: ``encoded(value, schema)`` and ``canonical(document)``; for schemas compare
``schema_of(document)``, since equal schemas are one object. Python has one type of whole numbers and one of floats, so
widths are not compared: the schema has them. A value that Python cannot represent (a Time of 25 hours) raises an
``UnrepresentableError``.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

from connect.data import (
    Header,
    Headers,
    Record,
    Schema,
    SchemaAndValue,
    SinkRecord,
    SourceRecord,
    Type,
    logical,
)

DATA = Path(__file__).parents[1] / "parity" / "data"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
MILLISECOND = dt.timedelta(milliseconds=1)


class UnrepresentableError(Exception):
    """A value of a vector has no counterpart in Python's types."""


def cases(suite: str) -> list[dict[str, Any]]:
    """The cases of ``data/vectors/<suite>.json``."""
    text = (DATA / "vectors" / f"{suite}.json").read_text(encoding="utf-8")
    return json.loads(text)["cases"]


# -- from the notation of the vectors ----------------------------------------------------------------------------


def schema_of(document: dict[str, Any] | None) -> Schema | None:
    """The schema that a document describes; ``None`` if there is none."""
    if document is None:
        return None
    attributes = {
        name: document[name]
        for name in ("optional", "name", "version", "doc", "parameters")
        if document.get(name) is not None
    }
    if document["type"] == "struct":
        attributes["fields"] = {field["name"]: schema_of(field["schema"]) for field in document["fields"]}
    if document["type"] == "array":
        attributes["value_schema"] = schema_of(document["items"])
    if document["type"] == "map":
        attributes["key_schema"] = schema_of(document["keys"])
        attributes["value_schema"] = schema_of(document["values"])
    schema = Schema(Type(document["type"]), **attributes)
    default = document.get("default")
    return schema if default is None else schema.replace(default=value_of(default, schema))


def value_of(document: Any, schema: Schema | None = None) -> Any:
    """The value that a document represents. The schema distinguishes dates, times and timestamps."""
    if not isinstance(document, dict):
        return document
    tag, content = document["t"], document.get("v")
    match tag:
        case "int8" | "int16" | "int32" | "int64" | "bigint":
            return int(content)
        case "float32" if schema is not None and schema.type is Type.FLOAT32:
            return struct.unpack("f", struct.pack("f", float(content)))[0]
        # Without a schema a single is the double of the same digits, and the vectors hold digits.
        case "float32" | "float64":
            return float(content)
        case "bytes" | "bytebuffer":
            return base64.b64decode(document["b64"])
        case "decimal":
            return Decimal(content)
        case "date":
            return _moment(document["ms"], schema)
        case "list":
            return [value_of(item, schema and schema.value_schema) for item in content]
        case "map":
            key_schema, value_schema = (schema.key_schema, schema.value_schema) if schema else (None, None)
            return {value_of(key, key_schema): value_of(item, value_schema) for key, item in content}
        case "struct":
            own = schema_of(document["schema"]) if "schema" in document else schema
            assert own is not None
            fields = {field.name: field.schema for field in own.fields}
            return {name: value_of(item, fields.get(name)) for name, item in content.items()}
        case _:
            raise AssertionError(f"unknown tag {tag}")


def _moment(milliseconds: int, schema: Schema | None) -> Any:
    moment = EPOCH + milliseconds * MILLISECOND
    name = schema.name if schema is not None else None
    if name == logical.DATE_NAME:
        if (moment - EPOCH) % DAY:
            raise UnrepresentableError(f"{moment} is not the beginning of a day")
        return moment.date()
    if name == logical.TIME_NAME:
        if not EPOCH <= moment < EPOCH + DAY:
            raise UnrepresentableError(f"{moment} is not a time of the first day")
        return moment.time()
    return moment


def schema_and_value_of(document: dict[str, Any]) -> SchemaAndValue:
    """The schema and the value of a document ``{"schema", "value"}``."""
    schema = schema_of(document["schema"])
    return SchemaAndValue(schema, value_of(document["value"], schema))


def record_of(document: dict[str, Any]) -> Record:
    """The source or sink record that a document describes."""
    key, value = schema_and_value_of(document["key"]), schema_and_value_of(document["value"])
    headers = [(header["key"], schema_and_value_of(header)) for header in document.get("headers", [])]
    shared: dict[str, Any] = {
        "topic": document["topic"],
        "partition": document.get("partition"),
        "timestamp": document.get("timestamp"),
        "key": key.value,
        "key_schema": key.schema,
        "value": value.value,
        "value_schema": value.schema,
        "headers": Headers(Header(name, pair.value, pair.schema) for name, pair in headers),
    }
    if document["kind"] == "sink":
        offset = document.get("offset", -1)
        return SinkRecord(
            **shared,
            offset=offset,
            original_topic=document["topic"],
            original_partition=document.get("partition") or 0,
            original_offset=offset,
        )
    return SourceRecord(
        **shared,
        source_partition=_offset(document.get("source_partition")),
        source_offset=_offset(document.get("source_offset")),
    )


def _offset(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        return {}
    return value_of(document) if "t" in document else {key: value_of(item) for key, item in document.items()}


# -- to one form, for comparison ---------------------------------------------------------------------------------


def encoded(value: Any, schema: Schema | None = None) -> Any:
    """A value in the form of :func:`canonical`: JSON that is equal exactly when the values are the same."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return {"t": "int", "v": value}
        case float():
            return {"t": "float", "v": value.hex()}
        case bytes() | bytearray() | memoryview():
            return {"t": "bytes", "b64": base64.b64encode(value).decode()}
        case Decimal():
            return {"t": "decimal", "v": str(value)}
        case dt.datetime():
            return {"t": "date", "ms": (value - EPOCH) // MILLISECOND}
        case dt.date():
            return {"t": "date", "ms": (value - EPOCH.date()) // MILLISECOND}
        case dt.time():
            return {"t": "date", "ms": (dt.datetime.combine(EPOCH, value, dt.UTC) - EPOCH) // MILLISECOND}
        case dict() if schema is not None and schema.type is Type.STRUCT:
            unknown = value.keys() - set(schema.field_names)
            assert not unknown, f"no fields of {schema}: {unknown}"
            return {
                "t": "struct",
                "v": {field.name: encoded(value.get(field.name), field.schema) for field in schema.fields},
            }
        case dict():
            key_schema, value_schema = (schema.key_schema, schema.value_schema) if schema else (None, None)
            pairs = [[encoded(key, key_schema), encoded(item, value_schema)] for key, item in value.items()]
            return {"t": "map", "v": sorted(pairs, key=json.dumps)}
        case list() | tuple():
            return {"t": "list", "v": [encoded(item, schema and schema.value_schema) for item in value]}
        case _:
            raise AssertionError(f"{value!r} is of no type of Kafka Connect's")


def canonical(document: Any, schema: Schema | None = None) -> Any:
    """The value of a vector with the widths of numbers left out and maps sorted; the schema as for :func:`value_of`."""
    if not isinstance(document, dict):
        return document
    tag, content = document["t"], document.get("v")
    match tag:
        case "int8" | "int16" | "int32" | "int64" | "bigint":
            return {"t": "int", "v": int(content)}
        case "float32" | "float64":
            return {"t": "float", "v": value_of(document, schema).hex()}
        case "bytes" | "bytebuffer":
            return {"t": "bytes", "b64": document["b64"]}
        case "list":
            return {"t": "list", "v": [canonical(item, schema and schema.value_schema) for item in content]}
        case "map":
            key_schema, value_schema = (schema.key_schema, schema.value_schema) if schema else (None, None)
            pairs = [[canonical(key, key_schema), canonical(item, value_schema)] for key, item in content]
            return {"t": "map", "v": sorted(pairs, key=json.dumps)}
        case "struct":
            own = schema_of(document["schema"]) if "schema" in document else schema
            fields = {field.name: field.schema for field in own.fields} if own is not None else {}
            return {"t": "struct", "v": {name: canonical(item, fields.get(name)) for name, item in content.items()}}
        case _:
            return {key: item for key, item in document.items() if key in {"t", "v", "ms"}}

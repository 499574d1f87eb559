"""What of a record is written to a file: its value, its key, its headers, or several parts of it in an envelope."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from connect.data import Column, Headers, Schema, SinkBatch, Type, ValueColumn
from connect.data.values.format import convert_to_string
from connect.errors import DataError
from connect.kits.files.formats.json_values import json_encoder
from connect.kits.files.formats.record_writer import FileFormat
from connect.kits.files.formats.text_lines import ByteArrayFormat, JsonFormat
from connectors.objects.format_config import FormatOptions

__all__ = ["RecordView", "views_of"]

_HEADERS: Final = Schema.struct(
    {
        "headers": Schema.array(
            Schema.struct({"key": Schema.string(), "value": Schema.string(optional=True)}, name="RecordHeader"),
        )
    },
    name="RecordHeaders",
)
_HEADER_MAP: Final = Schema.map(Schema.string(), Schema.string(optional=True))


@dataclass(frozen=True, slots=True)
class RecordView:
    """A part of records, and the format it is written in. ``infix`` stands before the format's own extension."""

    infix: str
    format: FileFormat
    column: Callable[[SinkBatch], Column]
    schema_key: Callable[[SinkBatch], object]
    """What distinguishes records that cannot share a file: their schemas."""


def views_of(options: FormatOptions) -> Sequence[RecordView]:
    """Return the views by which records are written; the first one is that of the values."""
    if options.has_output_type:
        return [_envelope_view(options)]
    views = [RecordView("", options.value_format(), lambda batch: batch.value, lambda batch: batch.value.schema)]
    if options.store_kafka_keys:
        form = options.keys_format()
        views.append(RecordView(".keys", form, lambda batch: _keys(batch, form), lambda batch: batch.key.schema))
    if options.store_kafka_headers:
        views.append(RecordView(".headers", options.headers_format(), _headers, lambda _: None))
    return views


def _keys(batch: SinkBatch, form: FileFormat) -> Column:
    """Return the keys; formats of records have them in a record."""
    if isinstance(form, JsonFormat | ByteArrayFormat) or not _is_of_records(form):
        return batch.key
    schema = batch.key.schema
    made = None if schema is None else Schema.struct({"key": schema.as_optional()}, name="RecordKey")
    return ValueColumn([{"key": key} for key in batch.key.values()], made)


def _is_of_records(form: FileFormat) -> bool:
    return form.needs_struct or form.extension == ".avro"


def _headers(batch: SinkBatch) -> Column:
    return ValueColumn([{"headers": _listed(headers)} for headers in batch.headers], _HEADERS)


def _listed(headers: Headers) -> list[dict[str, str | None]]:
    return [{"key": header.key, "value": convert_to_string(header.schema, header.value)} for header in headers]


# -- the parts that format.output.fields lists ----------------------------------------------------------------


def _envelope_view(options: FormatOptions) -> RecordView:
    fields = tuple(name.lower() for name in options.format_output_fields)
    bare = fields[0] if len(fields) == 1 and not options.format_output_envelope else None
    kind = options.format_output_type

    def schema_key(batch: SinkBatch) -> object:
        parts = {"key": batch.key.schema, "value": batch.value.schema}
        return tuple(schema for name, schema in parts.items() if name in fields)

    if kind == "csv":
        plain = options.format_output_fields_value_encoding.lower() == "none"
        form = ByteArrayFormat(options.compression, options.s3_compression_level, "", b"\n")
        return RecordView("", form, lambda batch: _csv_lines(batch, fields, plain=plain), lambda _: None)
    numeric = options.json_decimal_format.upper() == "NUMERIC"
    if kind in ("json", "jsonl"):
        return RecordView(
            "",
            options.value_format(),
            lambda batch: _json_envelopes(batch, fields, bare, numeric=numeric),
            # The parts of an envelope are encoded by their schemas before.
            lambda batch: None if bare is None else schema_key(batch),
        )
    return RecordView("", options.value_format(), lambda batch: _structs(batch, fields, bare), schema_key)


def _json_envelopes(batch: SinkBatch, fields: Sequence[str], bare: str | None, *, numeric: bool) -> Column:
    """Return each record as an object, whose parts are encoded by their schemas already."""
    if bare == "value":
        return batch.value
    if bare == "key":
        return batch.key
    parts: dict[str, Iterable[Any]] = {}
    for name in fields:
        match name:
            case "key":
                parts[name] = _fragments(batch.key, numeric=numeric)
            case "value":
                parts[name] = _fragments(batch.value, numeric=numeric)
            case "offset":
                parts[name] = batch.original_offsets
            case "timestamp":
                parts[name] = map(_iso_text, batch.timestamps)
            case _:
                parts[name] = [
                    [{"key": header.key, "value": _json_value(header.value)} for header in headers]
                    for headers in batch.headers
                ]
    if bare is not None:
        return ValueColumn(list(parts[bare]))
    return ValueColumn([dict(zip(fields, row, strict=True)) for row in zip(*parts.values(), strict=True)])


def _fragments(column: Column, *, numeric: bool) -> list[Any]:
    encode = json_encoder(column.schema, numeric_decimals=numeric)
    return [orjson.Fragment(line[:-1]) for line in encode(column.values())]


def _json_value(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _iso_text(timestamp: int | None) -> str | None:
    if timestamp is None or timestamp < 0:
        return None
    moment = dt.datetime.fromtimestamp(timestamp / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds" if timestamp % 1000 else "seconds").replace("+00:00", "Z")


def _structs(batch: SinkBatch, fields: Sequence[str], bare: str | None) -> Column:
    """Return each record as a struct, for formats that have columns or schemas."""
    if bare == "value" and (batch.value.schema is None or batch.value.schema.type is Type.STRUCT):
        return batch.value
    parts: dict[str, Sequence[Any]] = {
        "key": batch.key.values(),
        "value": batch.value.values(),
        "offset": batch.original_offsets,
        "timestamp": batch.timestamps,
        "headers": [_header_map(headers) for headers in batch.headers] if "headers" in fields else (),
    }
    rows = zip(*(parts[name] for name in fields), strict=True)
    return ValueColumn([dict(zip(fields, row, strict=True)) for row in rows], _struct_schema(batch, fields))


def _struct_schema(batch: SinkBatch, fields: Sequence[str]) -> Schema | None:
    schemas = {
        "key": batch.key.schema and batch.key.schema.as_optional(),
        "value": batch.value.schema and batch.value.schema.as_optional(),
        "offset": Schema.int64(),
        "timestamp": Schema.int64(optional=True),
        "headers": _HEADER_MAP,
    }
    chosen = {name: schemas[name] for name in fields}
    if "key" in chosen and chosen["key"] is None and not any(key is not None for key in batch.key.values()):
        chosen["key"] = Schema.string(optional=True)
    known = {name: schema for name, schema in chosen.items() if schema is not None}
    return Schema.struct(known, name="connector_records") if len(known) == len(chosen) else None


def _header_map(headers: Headers) -> dict[str, str | None]:
    found = {header.key: convert_to_string(header.schema, header.value) for header in headers}
    if len(found) < len(headers):
        raise DataError(
            "The record has several headers of one name, and the map of headers has one for each: use jsonl or json."
        )
    return found


def _csv_lines(batch: SinkBatch, fields: Sequence[str], *, plain: bool) -> Column:
    cells: dict[str, Callable[[int], bytes]] = {}
    keys, values = batch.key.values(), batch.value.values()
    cells["key"] = lambda at: base64.b64encode(_as_bytes(keys[at], "key"))
    if plain:
        cells["value"] = lambda at: _one_line(_as_bytes(values[at], "value"))
    else:
        cells["value"] = lambda at: base64.b64encode(_as_bytes(values[at], "value"))
    cells["offset"] = lambda at: b"%d" % batch.original_offsets[at]
    cells["timestamp"] = lambda at: b"" if batch.timestamps[at] is None else b"%d" % (batch.timestamps[at] or 0)
    cells["headers"] = lambda at: _csv_headers(batch.headers[at])
    lines = [b",".join(cells[name](at) for name in fields) for at in range(len(batch))]
    return ValueColumn(lines)


def _as_bytes(value: Any, part: str) -> bytes:
    match value:
        case None:
            return b""
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return value.encode("utf-8", "surrogatepass")
    raise DataError(
        f"format.output.type=csv writes bytes and texts, and the {part} is a {type(value).__name__}: use the "
        f"ByteArrayConverter (or StringConverter) as {part}.converter, or another type."
    )


def _one_line(value: bytes) -> bytes:
    if b"\n" in value or b"\r" in value:
        raise DataError(
            "The value has a line break, so that it would be two lines of the file: use "
            "format.output.fields.value.encoding=base64."
        )
    return value


def _csv_headers(headers: Headers) -> bytes:
    pairs = []
    for header in headers:
        value = header.value if isinstance(header.value, bytes) else convert_to_string(header.schema, header.value)
        pairs.append(base64.b64encode(header.key.encode()) + b":" + base64.b64encode(_as_bytes(value, "header")) + b";")
    return b"".join(pairs)

"""Rows of objects as records: of topics and partitions that names tell, with keys and headers from beside them."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.data import NO_HEADERS, Header, Headers, Schema, SourceBatch, SourceRecord, ValueColumn
from connect.errors import ConnectError, DataError
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, Reading
from connect.kits.files.systems.system import SourceFile
from connect.source import ErrantSourceRecordReporter
from connectors.objects.source.companions import Companion, headers_of, unwrapped_key
from connectors.objects.source.config import ObjectSourceConfig
from connectors.objects.source.unread_objects import FoundObject, object_offset, object_partition

__all__ = ["ObjectShape"]

_TEXT: Final = Schema.string()
_BYTES: Final = Schema.bytes()


class ObjectShape:
    """Makes the records of one object after the other."""

    def __init__(
        self,
        config: ObjectSourceConfig,
        found: Callable[[FileState], FoundObject],
        reading: Callable[[str], Reading],
        reporter: ErrantSourceRecordReporter,
    ) -> None:
        self._config = config
        self._found = found
        self._reading = reading
        self._reporter = reporter
        self._bucket = config.address.host
        self._companions: dict[str, Companion] = {}
        self.counted: dict[str, int] = {}
        """How many records of an object Java's source has published, whose offsets tell nothing else."""
        self._decoded_parts = frozenset(config.envelope_base64)

    def __call__(self, rows: Rows, state: FileState, member: str | None) -> SourceBatch | list[SourceRecord]:  # noqa: ARG002
        """Return the records of some rows."""
        found = self._found(state)
        skipped = self._skipped(state, rows)
        if skipped:
            rows = rows.slice(skipped, len(rows))
        if not len(rows):
            return []
        if self._config.envelope:
            return self._unpacked(rows, found)
        if found.name.is_tombstones:
            return self._tombstones(rows, found)
        offsets = [object_offset(offset, found.file) for offset in rows.offsets]
        numbers = [int(offset["row"]) for offset in rows.offsets]
        return SourceBatch.of(
            self._topic(found),
            rows.column,
            key=self._keys(found, numbers),
            headers=self._headers(found, numbers),
            partitions=[found.name.partition] * len(rows),
            source_partition=object_partition(self._bucket, found.file),
            source_offsets=offsets,
        )

    def close(self) -> None:
        """Close the objects with keys and headers."""
        for companion in self._companions.values():
            companion.close()
        self._companions.clear()

    def _skipped(self, state: FileState, rows: Rows) -> int:
        """Return how many of the rows Java's source has published."""
        done = self.counted.get(state.file.name, 0)
        return sum(int(offset["row"]) <= done for offset in rows.offsets) if done else 0

    def _topic(self, found: FoundObject) -> str:
        topic = self._config.topic or found.name.topic
        if topic is None:
            raise ConnectError(f"The name of {found.file.path} tells no topic: set topic.")
        return topic

    def _keys(self, found: FoundObject, numbers: Sequence[int]) -> ValueColumn | None:
        if self._config.keys_are_names:
            return ValueColumn([found.file.name.encode()] * len(numbers), _BYTES)
        if found.keys is None:
            return None
        schema, keys = self._companion("keys", found.keys).values(numbers)
        pairs = [unwrapped_key(schema, key) for key in keys]
        return ValueColumn([key for _, key in pairs], pairs[0][0] if pairs else None)

    def _headers(self, found: FoundObject, numbers: Sequence[int]) -> list[Headers] | None:
        if found.headers is None:
            return None
        _, values = self._companion("headers", found.headers).values(numbers)
        return list(map(headers_of, values))

    def _companion(self, part: str, file: SourceFile) -> Companion:
        kept = self._companions.get(part)
        if kept is None or kept.file != file:
            if kept is not None:
                kept.close()
            kept = self._companions[part] = Companion(self._reading(part), file)
        return kept

    def _tombstones(self, rows: Rows, found: FoundObject) -> SourceBatch:
        """Return records without values; the rows are their keys."""
        numbers = [int(offset["row"]) for offset in rows.offsets]
        pairs = [unwrapped_key(rows.column.schema, key) for key in rows.column]
        return SourceBatch.of(
            self._topic(found),
            ValueColumn([None] * len(rows)),
            key=ValueColumn([key for _, key in pairs], pairs[0][0] if pairs else None),
            headers=self._headers(found, numbers),
            partitions=[found.name.partition] * len(rows),
            source_partition=object_partition(self._bucket, found.file),
            source_offsets=[object_offset(offset, found.file) for offset in rows.offsets],
        )

    # -- envelopes -----------------------------------------------------------------------------------------------

    def _unpacked(self, rows: Rows, found: FoundObject) -> list[SourceRecord]:
        records: list[SourceRecord] = []
        fields = {} if rows.column.schema is None else {field.name: field.schema for field in rows.column.schema.fields}
        for value, offset in zip(rows.column, rows.offsets, strict=True):
            place = {
                "source_partition": object_partition(self._bucket, found.file),
                "source_offset": object_offset(offset, found.file),
            }
            try:
                records.append(self._record(value, fields, found).replace(**place))
            except DataError as error:
                told = DataError(f"{found.file.path}, record {offset['row']}: {error}")
                record = SourceRecord(self._topic(found), str(value))
                self._reporter.report(record.replace(**place), told)
        return records

    def _record(self, value: Any, fields: dict[str, Schema], found: FoundObject) -> SourceRecord:
        if not isinstance(value, dict) or not value.keys() <= {"key", "value", "offset", "timestamp", "headers"}:
            raise DataError("it is not an object with key, value, offset, timestamp and headers; set envelope=false")
        key_schema, key = self._decoded("key", fields.get("key"), value.get("key"))
        value_schema, inner = self._decoded("value", fields.get("value"), value.get("value"))
        return SourceRecord(
            self._topic(found),
            inner,
            value_schema,
            key,
            key_schema,
            found.name.partition,
            _milliseconds(value.get("timestamp")),
            self._listed_headers(value.get("headers")),
        )

    def _decoded(self, part: str, schema: Schema | None, value: Any) -> tuple[Schema | None, Any]:
        if part not in self._decoded_parts or not isinstance(value, str):
            return schema, value
        try:
            return _BYTES, base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise DataError(f"{value[:50]!r} in {part} is not base64; take {part} out of envelope.base64") from error

    def _listed_headers(self, listed: Any) -> Headers:
        if not listed:
            return NO_HEADERS
        if isinstance(listed, dict):
            listed = [{"key": key, "value": value} for key, value in listed.items()]
        if not isinstance(listed, list) or not all(isinstance(each, dict) and "key" in each for each in listed):
            raise DataError("its headers are not a list of objects with key and value")
        pairs = [(each["key"], self._decoded("headers", None, each.get("value"))) for each in listed]
        return Headers(
            Header(name, value, schema or (_TEXT if isinstance(value, str) else None))
            for name, (schema, value) in pairs
        )


def _milliseconds(value: Any) -> int | None:
    """Return a timestamp from milliseconds or a text such as 2024-01-01T00:00:00.123Z."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, dt.datetime):
        return round(value.timestamp() * 1000)
    try:
        moment = dt.datetime.fromisoformat(str(value))
    except ValueError as error:
        raise DataError(f"its timestamp {value!r} is neither a number nor a time") from error
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - epoch) // dt.timedelta(milliseconds=1)

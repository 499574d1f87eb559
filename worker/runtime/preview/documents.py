"""Records of a preview as JSON documents without secrets (invariant I8), up to a total size."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

from connect.bulk import TablePreview
from connect.data import Headers, Record, Schema, SinkRecord, Type
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.record_trace import EncodedRecord, SinkTrace, SourceTrace, TracedStep
from connect.internals.chain.specs import TransformationSpec
from connect.internals.chain.tolerance import StageError
from worker.security.redaction import Redaction

__all__ = ["CUT", "MORE", "LimitedDocuments", "RecordDocuments"]

Document: TypeAlias = dict[str, Any]

_SAFE_INTEGER: Final = 2**53
"""The largest number that all readers of JSON represent exactly."""

_DEEPEST: Final = 40

MORE: Final = "there may be more"
CUT: Final = f"what is shown has reached its limit of bytes, and {MORE}"
_MOST_CHARACTERS: Final = 100
"""The length at which a text is cut."""
_MOST_MEMBERS: Final = 50
"""How many members and items remain of a value that is cut, over all levels."""
_PARTS: Final = ("key", "value", "headers")


class RecordDocuments:
    """Makes the documents of one preview: ``steps`` are the connector's transformations, in order."""

    def __init__(self, specs: Sequence[TransformationSpec], outcome: str, redaction: Redaction) -> None:
        """``outcome`` describes what happens to a failed record."""
        self._specs = specs
        self._outcome = outcome
        self._redaction = redaction

    def of_source(self, task: int, trace: SourceTrace, not_converted: str | None) -> Document:
        """Return a polled record; ``not_converted`` says why the last step has no bytes."""
        polled = trace.polled
        steps = [{"step": "polled", "record": _record(polled)}, *self._transformed(trace.steps)]
        if trace.error is not None:
            steps.append({"step": "converted", **self._failed(trace.error)})
        elif trace.encoded is not None:
            steps.append({"step": "produced", "record": _encoded(trace.encoded)})
        elif not_converted is not None and self._goes_on(trace.steps):
            steps.append({"step": "produced", "note": not_converted})
        origin = {"partition": _plain(polled.source_partition), "offset": _plain(polled.source_offset)}
        return self._document(task, origin, steps)

    def of_sink(self, raw: RawRecord, trace: SinkTrace) -> Document:
        """Return a consumed record."""
        steps: list[Document] = [{"step": "consumed", "record": _raw(raw)}]
        if trace.converted is not None:
            steps += [{"step": "converted", "record": _record(trace.converted)}, *self._transformed(trace.steps)]
            if self._goes_on(trace.steps):
                steps.append({"step": "put", "record": steps[-1]["record"]})
        elif trace.error is not None:
            steps.append({"step": "converted", **self._failed(trace.error)})
        origin = {"topic": raw.topic, "partition": raw.partition, "offset": raw.offset}
        return self._document(None, origin, steps)

    def of_table(self, preview: TablePreview) -> Document:
        """Return the part of a load that goes into one table."""
        columns = [{"name": field.name, "type": _schema(field.schema)} for field in preview.schema.fields]
        rows = [{name: _plain(value) for name, value in row.items()} for row in preview.rows]
        document = {"table": preview.table, "place": preview.place, "folders": list(preview.folders)}
        hidden: Document = self._hidden({**document, "columns": columns, "rows": rows})
        return hidden

    def given_up(self, task: int, record: Record, error: Exception) -> Document:
        """Return a record that the source task itself gives up, since it cannot parse it."""
        steps = [{"step": "polled", "record": _record(record), "error": str(error), "outcome": self._outcome}]
        return self._document(task, None, steps)

    def _document(self, task: int | None, origin: Document | None, steps: list[Document]) -> Document:
        document: Document = self._hidden({"task": task, "origin": origin, "steps": steps})
        return document

    def _transformed(self, steps: Sequence[TracedStep[Any]]) -> list[Document]:
        found: list[Document] = []
        for spec, step in zip(self._specs, steps, strict=False):
            document: Document = {"step": spec.alias, "plugin": spec.type}
            if spec.predicate is not None:
                document |= {"predicate": spec.predicate.alias, "negate": spec.negate, "chosen": step.chosen}
            if step.error is not None:
                document |= self._failed(step.error)
            elif step.after is None:
                document["dropped"] = True
            else:
                document["record"] = _record(step.after)
            found.append(document)
        return found

    def _goes_on(self, steps: Sequence[TracedStep[Any]]) -> bool:
        return not steps or steps[-1].after is not None

    def _failed(self, error: StageError) -> Document:
        cause = error.cause
        text = str(cause) if type(cause).__module__.startswith("connect.") else f"{type(cause).__name__}: {cause}"
        return {"plugin": error.executing, "error": text, "outcome": self._outcome}

    def _hidden(self, document: Any) -> Any:
        match document:
            case str():
                return self._redaction.redacted(document)
            case dict():
                return {self._redaction.redacted(key): self._hidden(value) for key, value in document.items()}
            case list():
                return [self._hidden(item) for item in document]
            case _:
                return document


def _record(record: Record) -> Document:
    document = {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key_schema": _schema(record.key_schema),
        "key": _plain(record.key),
        "value_schema": _schema(record.value_schema),
        "value": _plain(record.value),
        "headers": _headers(record.headers),
    }
    return document | ({"offset": record.offset} if isinstance(record, SinkRecord) else {})


def _headers(headers: Headers) -> list[Document]:
    return [{"key": header.key, "schema": _schema(header.schema), "value": _plain(header.value)} for header in headers]


def _encoded(record: EncodedRecord) -> Document:
    return _of_bytes(record.topic, record.partition, record.timestamp, record.key, record.value, record.headers)


def _raw(record: RawRecord) -> Document:
    return _of_bytes(record.topic, record.partition, record.timestamp, record.key, record.value, record.headers)


def _of_bytes(
    topic: str,
    partition: int | None,
    timestamp: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> Document:
    return {
        "topic": topic,
        "partition": partition,
        "timestamp": timestamp,
        "key": _text(key),
        "value": _text(value),
        "headers": [{"key": name, "value": _text(data)} for name, data in headers],
    }


def _text(data: bytes | None) -> str | None:
    """Bytes as text if they are UTF-8, else as Base64."""
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"


def _schema(schema: Schema | None) -> str | None:
    """Return a schema in one line: ``order{id: int64, paid: Timestamp?}``."""
    if schema is None:
        return None
    name = schema.name.rpartition(".")[2] if schema.name else schema.type.value
    if schema.type is Type.STRUCT:
        name += "{" + ", ".join(f"{field.name}: {_schema(field.schema)}" for field in schema.fields) + "}"
    elif schema.type is Type.ARRAY:
        name += f"<{_schema(schema.value_schema)}>"
    elif schema.type is Type.MAP:
        name += f"<{_schema(schema.key_schema)}, {_schema(schema.value_schema)}>"
    return f"{name}?" if schema.optional else name


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON, with text for types that JSON lacks."""
    if depth > _DEEPEST:
        return "..."
    match value:
        case Mapping():
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case bytes() | bytearray() | memoryview():
            return _text(bytes(value))
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
    known = isinstance(value, bool | str | None)
    exact = (isinstance(value, int) and abs(value) <= _SAFE_INTEGER) or (
        isinstance(value, float) and math.isfinite(value)
    )
    return value if known or exact else str(value)


class LimitedDocuments:
    """Passes documents on to ``show``. The one that exceeds ``most`` bytes is shortened, and is the last."""

    def __init__(self, show: Callable[[Document], None], most: int) -> None:
        self._show = show
        self._left = most

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self._left <= 0

    def __call__(self, document: Document) -> None:
        """Show a document, unless the limit is reached."""
        if self.full:
            return
        size = len(orjson.dumps(document))
        self._show(document if size <= self._left else _cut(document))
        self._left -= size


def _cut(document: Document) -> Document:
    """Return a document with its long values cut."""
    if "rows" in document:
        few = [_Cut().of(row) for row in document["rows"][:1]]
        columns = [{**column, "type": _short(column["type"])} for column in document["columns"][:_MOST_MEMBERS]]
        return {**document, "folders": document["folders"][:1], "columns": columns, "rows": few, "cut": True}
    steps = [_cut_step(step) for step in document["steps"]]
    return {**document, "origin": _Cut().of(document["origin"]), "steps": steps, "cut": True}


def _cut_step(step: Document) -> Document:
    found = {key: _short(value) if isinstance(value, str) else value for key, value in step.items()}
    if "record" in step:
        record = step["record"]
        whole = {key: _short(value) if isinstance(value, str) else value for key, value in record.items()}
        found["record"] = whole | {part: _Cut().of(record[part]) for part in _PARTS}
    return found


class _Cut:
    """Cuts one value."""

    def __init__(self) -> None:
        self._left = _MOST_MEMBERS

    def of(self, value: Any) -> Any:
        """Return the beginning of a value."""
        match value:
            case str():
                return _short(value)
            case dict():
                return {_short(key): self.of(item) for key, item in value.items() if self._has_room()}
            case list():
                return [self.of(item) for item in value if self._has_room()]
            case _:
                return value

    def _has_room(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… ({len(text)} characters)"

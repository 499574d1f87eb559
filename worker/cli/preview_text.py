"""Formats the records of a preview: the input and output of each transformation, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["changes", "end_text", "has_failed", "preview_text", "record_text", "table_text"]

Document: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[str, str, str]
"""The name of a part of a record, its text before a step and its text after it; an empty text before means none."""

_MOST_CHARACTERS: Final = 100
_WIDEST_BEFORE: Final = 46
_WIDEST_CELL: Final = 30
_ABSENT: Final = "(none)"
_PLAIN: Final = ("topic", "key schema", "value schema")
_WHOLE: Final = ("polled", "consumed", "converted", "produced", "put")
"""The steps that show the whole record; the others show only what they change."""


def preview_text(document: Document) -> str:
    """Return the result of a preview as text: its records, its tables, and why there are no more."""
    records = [record_text(number, record) for number, record in enumerate(document["records"], 1)]
    tables = [table_text(table) for table in document["tables"]]
    return "\n\n".join([*records, *tables, end_text(document)])


def end_text(document: Document) -> str:
    """Return the number of records, and why there are no more."""
    shown = len(document["records"])
    records = f"{shown} {'record' if shown == 1 else 'records'}"
    trace = f"{document['trace'].rstrip()}\n" if document["trace"] else ""
    if document["failed"]:
        return f"{trace}{records}, then it fails: {document['end']}"
    return f"{records}; {document['end']}. Nothing was produced, written or committed."


def has_failed(document: Document) -> bool:
    """Return whether a record of a preview, or the connector, would fail."""
    return document["failed"] or any("error" in step for record in document["records"] for step in record["steps"])


def record_text(number: int, document: Document) -> str:
    """One record: its origin, followed by each step."""
    lines = [f"record {number}  {_origin(document)}"]
    width = max(len(step["step"]) for step in document["steps"])
    before: Document | None = None
    for step in document["steps"]:
        lines += _step_lines(step, before, width)
        before = step.get("record", before)
    return "\n".join(lines)


def table_text(document: Document) -> str:
    """Return the rows that a load would write to a table, below its columns and their types."""
    columns = document["columns"]
    names = [column["name"] for column in columns]
    cells = [[json.dumps(row.get(name), ensure_ascii=False) for name in names] for row in document["rows"]]
    lines = [names, [column["type"].removesuffix("?") for column in columns], *cells]
    widths = [min(max(len(line[place]) for line in lines), _WIDEST_CELL) for place in range(len(names))]
    shown = [f"table {document['table']}  {document['place']}"]
    shown += [f"  folder {folder}" for folder in document["folders"]]
    for line in lines:
        fitted = (_cut_to(cell, width).ljust(width) for cell, width in zip(line, widths, strict=True))
        shown.append(("  " + "  ".join(fitted)).rstrip())
    rows = f"{len(cells)} {'row' if len(cells) == 1 else 'rows'}"
    return "\n".join([*shown, f"  {rows}"])


def changes(before: Document, after: Document) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a record that differ: ``value.name`` with the old and the new value, ``...`` for none."""
    for part in ("topic", "partition", "timestamp", "key_schema", "key", "value_schema", "value"):
        yield from _changed(part.replace("_", " "), before.get(part), after.get(part))
    yield from _changed("headers", _headers(before), _headers(after))


def _changed(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            yield from _changed(f"{path}.{name}", before.get(name, ...), after.get(name, ...))
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def _headers(record: Document) -> dict[str, Any]:
    """Return the headers by key; if several have the same key, they are numbered."""
    found: dict[str, Any] = {}
    for header in record.get("headers") or ():
        name, number = header["key"], 1
        while name in found:
            number += 1
            name = f"{header['key']}[{number}]"
        found[name] = header["value"]
    return found


def _step_lines(step: Document, before: Document | None, width: int) -> Iterator[str]:
    label = f"  {step['step']:<{width}}  "
    for line in _detail_lines(step, before):
        yield f"{label}{line}".rstrip()
        label = " " * len(label)


def _detail_lines(step: Document, before: Document | None) -> Iterator[str]:
    record = step.get("record")
    if record is not None and (step["step"] in _WHOLE or before is None):
        yield from _aligned([(name, "", text) for name, text in _whole(record)])
    elif record is not None and not step.get("chosen", True):
        yield f"not chosen by predicate {step['predicate']}{' (negated)' if step['negate'] else ''}"
    elif record is not None and before is not None:
        rows = [(path, _shown(old, path), _shown(new, path)) for path, old, new in changes(before, record)]
        yield from _aligned(rows) if rows else ["unchanged"]
    if step.get("dropped"):
        yield "dropped: it goes no further"
    if "note" in step:
        yield step["note"]
    if "error" in step:
        by = f" by {step['plugin']}" if "plugin" in step else ""
        yield f"failed{by}: {step['error']}"
        yield f"then: {step['outcome']}"


def _whole(record: Document) -> Iterator[tuple[str, str]]:
    yield "topic", record["topic"] if record["partition"] is None else f"{record['topic']}-{record['partition']}"
    for part in ("key", "value"):
        schema = record.get(f"{part}_schema")
        if part == "value" or record[part] is not None or schema is not None:
            # Without a schema entry these are bytes, before or after conversion, shown as plain text.
            shown = _shown(record[part]) if f"{part}_schema" in record else _bytes(record[part])
            yield part, shown
            if schema is not None:
                yield f"{part} schema", _cut(schema)
    for name, value in _headers(record).items():
        yield f"header {name}", _shown(value)


def _aligned(rows: list[Row]) -> Iterator[str]:
    names = max(len(name) for name, _, _ in rows)
    befores = min(max(len(before) for _, before, _ in rows), _WIDEST_BEFORE)
    for name, before, after in rows:
        if not before:
            yield f"{name:<{names}}  {after}"
        elif len(before) <= befores:
            yield f"{name:<{names}}  {before:<{befores}}  ->  {after}"
        else:
            # Values that do not fit side by side are printed one below the other.
            yield f"{name:<{names}}  {before}"
            yield f"{'':<{names}}  {'':<{befores}}  ->  {after}"


def _shown(value: Any, path: str = "") -> str:
    if value is ... or (value is None and path in _PLAIN):
        return _ABSENT
    return _cut(value if path in _PLAIN else json.dumps(value, ensure_ascii=False))


def _bytes(text: str | None) -> str:
    return "null" if text is None else _cut(" ".join(text.splitlines()))


def _cut(text: str) -> str:
    return _cut_to(text, _MOST_CHARACTERS)


def _cut_to(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _origin(document: Document) -> str:
    origin = document["origin"]
    if origin is None:
        return "the task gives it up"
    if "topic" in origin:
        return f"{origin['topic']}-{origin['partition']} at offset {origin['offset']}"
    return f"{json.dumps(origin['partition'], ensure_ascii=False)} {json.dumps(origin['offset'], ensure_ascii=False)}"

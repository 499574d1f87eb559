"""Whatever the names, options and values are: by column as by row, nothing shared, and no error but a ``DataError``."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.data import Batch, Headers, Record, Schema, SinkBatch, SinkRecord, SourceBatch
from connect.errors import DataError
from equipment.examples import examples
from equipment.strategies.transforms import OPTIONS, PREDICATES, nested, runs, transformations

PROPERTY = settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def batch_of(records: list[Record]) -> Batch[Any]:
    kind = SinkBatch if isinstance(records[0], SinkRecord) else SourceBatch
    (batch,) = kind.from_records(records)  # type: ignore[arg-type]
    return batch


def told(value: Any) -> object:
    """All there is to a value: its types, and the order of its fields."""
    match value:
        case Mapping():
            return [type(value), [(told(key), told(item)) for key, item in value.items()]]
        case Headers():
            return [(header.key, id(header.schema), told(header.value)) for header in value]
        case list() | tuple():
            return [type(value), [told(item) for item in value]]
        case float() | Decimal() | dt.date() | dt.time():
            return [type(value), repr(value)]
        case Schema():
            return id(value)
        case _:
            return [type(value), value]


def told_record(record: Record | None) -> object:
    return None if record is None else [told(getattr(record, name)) for name in record.__dataclass_fields__]


def by_row(made: Any, records: list[Record]) -> list[Any]:
    """What becomes of each record: another one, nothing, or a refusal."""
    results: list[Any] = []
    for record in records:
        try:
            results.append(made.apply(record))
        except DataError:
            results.append(DataError)
    return results


def containers(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            yield from (found for item in value.values() for found in containers(item))
            yield value
        case list():
            yield from (found for item in value for found in containers(item))
            yield value
        case Headers():
            yield from (found for header in value for found in containers(header.value))


def spoil(record: Record) -> None:
    """Change all that can be changed in a record."""
    for held in [*containers(record.value), *containers(record.key), *containers(record.headers)]:
        if isinstance(held, dict):
            held["spoilt"] = "spoilt"
        else:
            held.append("spoilt")


def defaults(schema: Schema | None) -> list[object]:
    if schema is None:
        return []
    parts = [schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields)]
    return [told(schema.default), *(found for part in parts for found in defaults(part))]


@pytest.mark.parametrize("name", OPTIONS)
@PROPERTY
@given(data=st.data())
def test_columns_are_transformed_as_rows_are(name: str, data: st.DataObject) -> None:
    made, records = data.draw(transformations(name)), data.draw(runs())
    if made is None:
        return
    before = [told_record(record) for record in records]
    rows = by_row(made, records)
    try:
        columns = [record for part in made.apply_batch(batch_of(records)) for record in part]
    except Exception:
        assert DataError in rows
    else:
        assert [told_record(record) for record in columns] == [told_record(row) for row in rows if row is not None]
    assert [told_record(record) for record in records] == before


@pytest.mark.parametrize("columns", [False, True], ids=["row", "column"])
@pytest.mark.parametrize("name", OPTIONS)
@PROPERTY
@given(data=st.data())
def test_a_result_that_is_changed_changes_nothing_else(columns: bool, name: str, data: st.DataObject) -> None:
    made, records = data.draw(transformations(name)), data.draw(runs())
    if made is None or DataError in (known := by_row(made, copy.deepcopy(records))):
        return
    expected = [told_record(record) for record in known if record is not None]
    known_defaults = [(defaults(row.key_schema), defaults(row.value_schema)) for row in known if row is not None]
    if columns:
        results = [record for part in made.apply_batch(batch_of(records)) for record in part]
    else:
        results = [record for record in map(made.apply, copy.deepcopy(records)) if record is not None]
    for index, result in enumerate(results):
        assert told_record(result) == expected[index]
        spoil(result)
        assert (defaults(result.key_schema), defaults(result.value_schema)) == known_defaults[index]


@pytest.mark.parametrize("predicate", PREDICATES, ids=lambda predicate: type(predicate).__name__)
@PROPERTY
@given(records=runs())
def test_columns_are_tested_as_rows_are(predicate: Any, records: list[Record]) -> None:
    rows: list[Any] = []
    for record in records:
        try:
            rows.append(predicate.test(record))
        except DataError:
            rows.append(DataError)
    try:
        columns = list(predicate.test_batch(batch_of(records)))
    except Exception:
        assert DataError in rows
    else:
        assert columns == rows


@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=examples(5), deadline=None)
@given(data=st.data())
def test_what_is_nested_very_deep_is_refused_with_a_data_error_at_worst(name: str, data: st.DataObject) -> None:
    made = data.draw(transformations(name))
    deep = nested(3000)
    for value in (deep, {"a": deep}, [deep]):
        record = SinkRecord("orders", value, None, value, None, 0, 0, Headers(), 3)
        if made is not None:
            by_row(made, [record])

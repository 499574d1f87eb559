"""Reads records as changes: which row each one is about, and whether it deletes the row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from connect.data import Schema, SinkBatch, Type, ValueColumn
from connect.errors import DataError
from connectors.spark.schema import table_schema

__all__ = ["CHANGE_COLUMN", "ChangePlan", "change_schema", "key_columns"]

CHANGE_COLUMN: Final = "_sluice_change"
_DELETED: Final = "__deleted"
_OPERATION: Final = "__op"
_UNAVAILABLE: Final = ("__debezium_unavailable_value", b"__debezium_unavailable_value")
_WRITTEN: Final = ("c", "r", "u")


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """How records describe changes; plain data, sent to the executors."""

    envelope: str = "none"
    """``none`` if values are rows; ``debezium`` and ``flattened`` as written by Debezium and its flattening
    transformation.
    """
    keys: tuple[str, ...] = ()
    """The key columns; if there are none, the fields of the record's key are used."""

    def rows(
        self, batch: SinkBatch, reject: Callable[[int, Exception], None], known: Collection[str] = ()
    ) -> tuple[SinkBatch | None, int]:
        """Return the changes in a batch as rows, and the number of records that describe none.

        ``known`` are the columns by which rows are found, if they are known: a change with another key is rejected.
        """
        rows: list[Mapping[str, Any]] = []
        places: list[int] = []
        ignored = 0
        origins = zip(batch.original_partitions, batch.original_offsets, strict=True)
        for place, (value, key, (partition, offset)) in enumerate(zip(batch.value, batch.key, origins, strict=True)):
            try:
                change = self._change(value, key)
                if change is not None and known:
                    _check_same(change[1], known)
            except DataError as error:
                reject(offset, error)
                continue
            if change is None:
                ignored += 1
                continue
            row, named, deleted = change
            about = {"deleted": deleted, "partition": partition, "offset": offset, "key": named}
            rows.append({**row, **named, CHANGE_COLUMN: about})
            places.append(place)
        if not rows:
            return None, ignored
        # Values without a schema are rows whose types are still unknown; without values, only the key has any.
        untyped = batch.value.schema is None and any(value is not None for value in batch.value)
        schema = None if untyped else _schema(self, batch.value.schema, batch.key.schema)
        return replace(batch.take(places), value=ValueColumn(rows, schema)), ignored

    def _change(self, value: Any, key: Any) -> tuple[Mapping[str, Any], Mapping[str, Any], bool] | None:
        """Return the row, its key, and whether it is deleted; ``None`` if the record describes no row."""
        row, deleted = self._unpacked(value)
        if row is None:
            return None
        named = self._key(row, key)
        if deleted:
            return {}, named, True
        if self.envelope != "none":
            _check_available(row)
        return row, named, False

    def _unpacked(self, value: Any) -> tuple[Mapping[str, Any] | None, bool]:
        if value is None:
            return {}, True
        if not isinstance(value, Mapping):
            raise DataError("the value has no fields, but a row to replace needs some (HoistField creates one)")
        if self.envelope == "debezium":
            return _of_envelope(value)
        if self.envelope == "flattened":
            deleted = value.get(_DELETED) in ("true", True) or value.get(_OPERATION) == "d"
            return {name: item for name, item in value.items() if name != _DELETED}, deleted
        return value, False

    def _key(self, row: Mapping[str, Any], key: Any) -> Mapping[str, Any]:
        named = self._named_key(row, key)
        for name, item in named.items():
            if item is None:
                raise DataError(f"the row's key has no value for {name}, which rows are found by")
            if isinstance(item, (Mapping, list)):
                raise DataError(f"the key field {name} has fields or elements itself, so no row can match it")
        return named

    def _named_key(self, row: Mapping[str, Any], key: Any) -> Mapping[str, Any]:
        names = self.keys
        if not names:
            if isinstance(key, Mapping) and key:
                return key
            raise DataError(
                f"the record's key is {'null' if key is None else 'one value without a name'}: set upsert.keys to the "
                "columns that make the key of a row, or give the records keys with fields (ValueToKey)"
            )
        if isinstance(key, Mapping) and all(name in key for name in names):
            return {name: key[name] for name in names}
        if len(names) == 1 and key is not None and not isinstance(key, Mapping) and names[0] not in row:
            return {names[0]: key}
        missing = [name for name in names if name not in row]
        if missing:
            raise DataError(f"neither its key nor its value has the field {missing[0]} listed in upsert.keys")
        return {name: row[name] for name in names}


def _of_envelope(value: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the row in a Debezium envelope; for a deleted row, whatever is known of it."""
    operation = value.get("op")
    if operation in _WRITTEN:
        after = value.get("after")
        if not isinstance(after, Mapping):
            raise DataError(f"its envelope has op={operation} and no row in the field after")
        return after, False
    if operation == "d":
        before = value.get("before")
        return before if isinstance(before, Mapping) else {}, True
    if operation == "m":
        return None, False
    if operation == "t":
        raise DataError(
            "it says that the table was truncated (op=t), which this sink does not replicate: delete the rows "
            "there, and let the source leave out such events (skipped.operations=t)"
        )
    raise DataError("it is not a Debezium envelope, because its field op names no operation: see upsert.envelope")


def _check_same(named: Mapping[str, Any], known: Collection[str]) -> None:
    if named.keys() != set(known):
        raise DataError(
            f"the key of the change is {', '.join(named)}, but the rows of the table are found by {', '.join(known)}. "
            "If the primary key has changed, set upsert.keys to columns that all rows and changes have, or load into "
            "another table"
        )


def _check_available(row: Mapping[str, Any]) -> None:
    for name, item in row.items():
        if isinstance(item, (str, bytes)) and item in _UNAVAILABLE:
            raise DataError(
                f"Debezium has no value for column {name}, because PostgreSQL omits large values that an "
                "update does not change: use ALTER TABLE ... REPLICA IDENTITY FULL there, so that rows are "
                "complete"
            )


@lru_cache(maxsize=256)
def _schema(plan: ChangePlan, value: Schema | None, key: Schema | None) -> Schema | None:
    """Return the schema of changes, if their records' schemas determine it."""
    row = _row_schema(plan, value)
    named = _key_schemas(plan, row, key)
    if named is None or (row is None and value is not None):
        return None
    fields = {} if row is None else {field.name: field.schema for field in row.fields}
    about = change_schema({name: fields.get(name, schema) for name, schema in named.items()})
    return Schema.struct({**named, **fields, CHANGE_COLUMN: about})


def change_schema(keys: Mapping[str, Schema]) -> Schema:
    """Return the schema of :data:`CHANGE_COLUMN` for rows with these key columns."""
    return Schema.struct(
        {
            "deleted": Schema.boolean(optional=True),
            "partition": Schema.int64(optional=True),
            "offset": Schema.int64(optional=True),
            "key": Schema.struct(keys, optional=True),
        },
        optional=True,
    )


def key_columns(schema: Schema) -> tuple[str, ...]:
    """Return the key columns in the schema of changes; none if the key is not known yet."""
    change = schema.field(CHANGE_COLUMN)
    key = None if change is None else change.schema.field("key")
    return () if key is None else key.schema.field_names


def _row_schema(plan: ChangePlan, value: Schema | None) -> Schema | None:
    if value is None or value.type is not Type.STRUCT:
        return None
    if plan.envelope == "debezium":
        after = value.field("after")
        return None if after is None or after.schema.type is not Type.STRUCT else table_schema(after.schema)
    fields = {field.name: field.schema for field in value.fields}
    if plan.envelope == "flattened":
        fields.pop(_DELETED, None)
    return table_schema(Schema.struct(fields))


def _key_schemas(plan: ChangePlan, row: Schema | None, key: Schema | None) -> Mapping[str, Schema] | None:
    """Return the schemas of the key columns, if they are known."""
    known = {} if row is None else {field.name: field.schema for field in row.fields}
    if key is not None and key.type is Type.STRUCT:
        known |= {field.name: field.schema for field in table_schema(key).fields if field.name not in known}
        names = plan.keys or key.field_names
    else:
        names = plan.keys
        if key is not None and len(names) == 1:
            known.setdefault(names[0], table_schema(Schema.struct({names[0]: key})).fields[0].schema)
    if not names or any(name not in known for name in names):
        return None
    return {name: known[name] for name in names}

"""The schemas of tables: how they follow from the schemas of values, and how they grow.

A table has a struct schema. A struct value gives its fields as columns; any other value becomes the single column
``value``. Columns are always optional, and keep none of the names, versions and defaults of the schemas they come from,
except for logical types.

A table grows by new columns, and by types that hold every value of the previous type for any reader of the old files:
``int8`` to ``int16`` to ``int32`` to ``int64``, ``int8`` and ``int16`` to ``float32``, those and ``int32`` and
``float32`` to ``float64``, and decimals to more digits. Any other change, above all ``int64`` to ``float64``, would
alter values already written (invariant I5), unless the files are rewritten and every value is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Final

from connect.data import Schema, Type
from connect.data.logical import DECIMAL_NAME, LOGICAL_NAMES
from connect.errors import SchemaError

__all__ = [
    "VALUE_COLUMN",
    "Evolution",
    "KafkaColumns",
    "branch_name",
    "in_common",
    "rewritten_columns",
    "table_schema",
    "widen",
]

VALUE_COLUMN: Final = "value"

_PRECISION: Final = "connect.decimal.precision"
_MOST_DIGITS: Final = "38"
"""The digits of a decimal whose schema does not say how many there are."""
_FLOAT32: Final = {Type.INT8, Type.INT16, Type.FLOAT32}
_FLOAT64: Final = _FLOAT32 | {Type.INT32, Type.FLOAT64}
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


@dataclass(frozen=True, slots=True)
class KafkaColumns:
    """The names of the requested Kafka columns; ``None`` for those that are not."""

    keys: str | None = None
    headers: str | None = None
    metadata: str | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names, in the order of the columns."""
        return self.keys, self.headers, self.metadata

    @property
    def need_whole_records(self) -> bool:
        """Whether records must be read with more than their values and offsets."""
        return any(self.names)


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a connector's tables change with its records (``schema.compatibility``, ``schema.conflict``)."""

    adds: bool = True
    """Whether new fields become new columns. If not, they are left out."""
    widens: bool = True
    """Whether columns may become wider."""
    rewrites: bool = False
    """Whether ``int64`` becomes ``float64``, for which the files of the table are rewritten."""
    branches: bool = False
    """Whether values that a column cannot hold, even widened, go to another column that is named after their type."""

    folds: bool = False
    """Whether the target takes names that differ only in the case of their letters for one name."""
    unwidened: frozenset[tuple[Type, Type]] = frozenset()
    """The types of columns that the target cannot widen, each with the wider type."""
    refuses: Callable[[Schema], None] | None = attribute(default=None, compare=False)
    """Raises :class:`~connect.errors.SchemaError` for fields that the target cannot hold."""

    @classmethod
    def of(cls, compatibility: str, conflict: str) -> Evolution:
        """Return the evolution that these two options describe."""
        adds, widens = compatibility != "FORWARD", compatibility in ("NONE", "BACKWARD")
        return cls(adds, widens, widens and conflict == "rewrite", adds and conflict == "new-column")

    def grown(self, table: Schema, seen: Schema) -> Schema:
        """Return the schema extended for rows of ``seen``, as far as the table may change; it may be unchanged. Rows
        that still do not fit are bad.
        """
        if self.folds:
            seen = self.without_twins(table, seen)
        if not table.fields:
            return seen
        return _widened(table, seen, "", _Rule(self._kept, self)) if self.adds else table

    def may_widen(self, column: Type, wider: Type) -> bool:
        """Return whether a column may get a wider type."""
        return self.widens and (column, wider) not in self.unwidened

    def key(self, name: str) -> str:
        """Return what the target compares names by."""
        return name.lower() if self.folds else name

    def without_twins(self, table: Schema, seen: Schema) -> Schema:
        """Return what is seen without the fields whose names differ in case alone from a column's, or from an earlier
        field's; ``seen`` itself if there are none. Records with such fields do not fit.
        """
        if seen.type is Type.ARRAY and table.type is Type.ARRAY and seen.value_schema and table.value_schema:
            items = self.without_twins(table.value_schema, seen.value_schema)
            return seen if items is seen.value_schema else seen.replace(value_schema=items)
        if seen.type is not Type.STRUCT or table.type is not Type.STRUCT:
            return seen
        names: dict[str, str] = {}
        for name in table.field_names:
            names.setdefault(self.key(name), name)
        fields: dict[str, Schema] = {}
        for field in seen.fields:
            if names.setdefault(self.key(field.name), field.name) == field.name:
                column = table.field(field.name)
                fields[field.name] = self.without_twins(column.schema if column else field.schema, field.schema)
        kept = [fields.get(field.name) is field.schema for field in seen.fields]
        return seen if all(kept) else seen.replace(fields=fields)

    def _kept(self, kept: Schema, seen: Schema, _path: str) -> Schema:
        """Return what a column becomes that cannot hold values of a type."""
        is_rewritten = self.rewrites and kept.type is Type.INT64 and seen.type in (Type.FLOAT32, Type.FLOAT64)
        return kept.replace(type=Type.FLOAT64) if is_rewritten and _are_numbers(kept, seen) else kept

    def column_of(self, name: str, seen: Schema, table: Schema) -> str | None:
        """Return the column (or nested field) for values of a field; ``None`` if there is none."""
        column = table.field(name)
        if column is None:
            return name if self.adds else None
        branch = branch_name(name, seen)
        if self.branches and table.field(branch) is not None and not _holds(column.schema, seen, self):
            return branch
        return name


def branch_name(name: str, seen: Schema) -> str:
    """Return the name of the column for values whose type the column ``name`` cannot hold."""
    return f"{name}_{_described(seen).lower()}"


_Resolve = Callable[[Schema, Schema, str], Schema]
"""Resolves a conflict between two types of a column when no type holds both without loss; takes the column's
path last.
"""


@dataclass(frozen=True, slots=True)
class _Rule:
    conflict: _Resolve
    evolution: Evolution
    tested_by: _Resolve | None = None
    """Raises where a field needs its own column, if that is allowed; otherwise any conflict is an error."""


def table_schema(value_schema: Schema) -> Schema:
    """Return the schema of a table for values with this schema."""
    column = _column(value_schema)
    if column.type is Type.STRUCT:
        return column.as_required()
    return Schema.struct({VALUE_COLUMN: column})


def widen(table: Schema, seen: Schema) -> Schema:
    """Return the smallest schema that holds the rows of both tables; ``table`` itself if it does.

    Raises :class:`~connect.errors.SchemaError` naming the column for which no type holds both without loss.
    """
    return _widened(table, seen, "", _Rule(_refuse, Evolution()))


def rewritten_columns(before: Schema, after: Schema) -> dict[str, Schema]:
    """Return the columns of a table whose new type cannot be read from its existing files."""
    kept = {field.name: field.schema for field in before.fields}
    return {
        field.name: field.schema
        for field in after.fields
        if field.name in kept and not _holds(kept[field.name], field.schema, Evolution())
    }


def in_common(first: Schema, second: Schema, *, branches: bool = False) -> Schema:
    """Return the schema for rows of both tables before anything is written; ``first`` takes precedence.

    If one has an integer where the other has a float, the result is a float; whether it holds the values exactly is
    checked when they are written.
    """
    return _widened(first, second, "", _Rule(_float_or_first, Evolution(branches=branches), _float_or_refuse))


def _float_or_first(first: Schema, second: Schema, _path: str) -> Schema:
    return first.replace(type=Type.FLOAT64) if _are_numbers(first, second) else first


def _float_or_refuse(first: Schema, second: Schema, path: str) -> Schema:
    return (_float_or_first if _are_numbers(first, second) else _refuse)(first, second, path)


def _are_numbers(first: Schema, second: Schema) -> bool:
    kinds = {Type.FLOAT32, Type.FLOAT64, *_INTEGERS}
    return {first.type, second.type} <= kinds and first.name is None and second.name is None


def _column(schema: Schema) -> Schema:
    if schema.name in LOGICAL_NAMES:
        return Schema(schema.type, optional=True, name=schema.name, parameters=schema.parameters)
    return Schema(
        schema.type,
        optional=True,
        fields={field.name: _column(field.schema) for field in schema.fields},
        key_schema=None if schema.key_schema is None else _column(schema.key_schema).as_required(),
        value_schema=None if schema.value_schema is None else _column(schema.value_schema),
    )


def _holds(column: Schema, seen: Schema, evolution: Evolution, tested_by: _Resolve | None = None) -> bool:
    """Return whether a column can hold values of a type, as it is or widened."""
    try:
        _widened(column, seen, "", _Rule(tested_by or _refuse, evolution, tested_by))
    except SchemaError:
        return False
    return True


def _widened(table: Schema, seen: Schema, path: str, rule: _Rule) -> Schema:
    if table is seen:
        return table
    if table.type is seen.type and table.name == seen.name and table.parameters == seen.parameters:
        if table.type is Type.STRUCT:
            return _struct(table, seen, path, rule)
        return _container(table, seen, path, rule) if table.value_schema is not None else table
    if (digits := _digits(table, seen)) is not None and (
        digits is table or rule.evolution.may_widen(table.type, seen.type)
    ):
        return digits
    kind = _number(table.type, seen.type) if table.name is None and seen.name is None else None
    if kind is not None and (kind is table.type or rule.evolution.may_widen(table.type, kind)):
        return table.replace(type=kind)
    return rule.conflict(table, seen, path)


def _struct(table: Schema, seen: Schema, path: str, rule: _Rule) -> Schema:
    fields = {field.name: field.schema for field in table.fields}
    for field in seen.fields:
        name = field.name
        if name in fields and _branches(fields[name], field.schema, rule):
            name = branch_name(name, field.schema)
        where = f"{path}.{name}" if path else name
        fields[name] = _widened(fields[name], field.schema, where, rule) if name in fields else field.schema
    return table.replace(fields=fields)


def _branches(column: Schema, seen: Schema, rule: _Rule) -> bool:
    """Return whether values of a type need a column of their own."""
    return rule.evolution.branches and not _holds(column, seen, rule.evolution, rule.tested_by)


def _container(table: Schema, seen: Schema, path: str, rule: _Rule) -> Schema:
    assert table.value_schema is not None
    assert seen.value_schema is not None
    if table.key_schema is not seen.key_schema:
        return rule.conflict(table, seen, path)
    return table.replace(value_schema=_widened(table.value_schema, seen.value_schema, f"{path}[]", rule))


def _number(table: Type, seen: Type) -> Type | None:
    both = {table, seen}
    if both <= set(_INTEGERS):
        return max(both, key=_INTEGERS.index)
    if both <= _FLOAT32:
        return Type.FLOAT32
    return Type.FLOAT64 if both <= _FLOAT64 else None


def _digits(table: Schema, seen: Schema) -> Schema | None:
    """Return the decimal with more digits, if both are decimals that differ in nothing else."""
    if table.name != DECIMAL_NAME or seen.name != DECIMAL_NAME:
        return None
    (first, first_digits), (second, second_digits) = map(_scale_and_digits, (table, seen))
    if first != second or not (first_digits.isdecimal() and second_digits.isdecimal()):
        return None
    return table if int(first_digits) >= int(second_digits) else seen.replace(optional=table.optional)


def _scale_and_digits(schema: Schema) -> tuple[str | None, str]:
    parameters = schema.parameters or {}
    return parameters.get("scale"), parameters.get(_PRECISION, _MOST_DIGITS)


def _refuse(table: Schema, seen: Schema, path: str) -> Schema:
    raise SchemaError(
        f'Column "{path or "value"}" of the table is {_described(table)} and cannot hold {_described(seen)} '
        "without changing values. Make the records alike, for example with the transformation Cast; or set "
        "schema.conflict=new-column to keep them in a column of their own (fractions in a column of whole numbers also "
        "have schema.conflict=rewrite); or begin another table (topics.dir) and declare its type with value.schema."
    )


def _described(schema: Schema) -> str:
    return schema.name.rpartition(".")[2] if schema.name else schema.type.value

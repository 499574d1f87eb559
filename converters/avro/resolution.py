"""Evolution: what was written in one Avro schema, read in another, by the rules of Avro's schema resolution."""

from __future__ import annotations

from typing import Final

from connect.errors import SchemaError
from converters.avro.avro_schema import AvroField, AvroSchema

__all__ = ["branch_for", "check_readable", "enum_symbols", "field_pairs"]

_PROMOTIONS: Final = frozenset(
    {
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    }
)
_NAMED: Final = ("record", "enum", "fixed")


def check_readable(writer: AvroSchema, reader: AvroSchema) -> None:
    """Refuse, by a :class:`~connect.errors.SchemaError`, two types of which one cannot be read as the other.

    What they hold is not looked at.
    """
    if writer is reader:
        return
    same = writer.kind == reader.kind and (writer.kind != "fixed" or writer.size == reader.size)
    if not same and (writer.kind, reader.kind) not in _PROMOTIONS:
        raise SchemaError(f"What is written as Avro type {_shown(writer)} cannot be read as {_shown(reader)}.")


def branch_for(writer: AvroSchema, union: AvroSchema) -> int:
    """Which member of ``union`` a value written as ``writer`` is read as: the first of that type, or a wider one."""
    if writer.kind in _NAMED:
        for index, branch in enumerate(union.branches):
            if branch.kind == writer.kind and (branch.name == writer.name or writer.name in branch.aliases):
                return index
    for index, branch in enumerate(union.branches):
        if branch.kind == writer.kind and (branch.kind != "fixed" or branch.size == writer.size):
            return index
    for index, branch in enumerate(union.branches):
        if (writer.kind, branch.kind) in _PROMOTIONS:
            return index
    members = ", ".join(map(_shown, union.branches))
    raise SchemaError(f"What is written as Avro type {_shown(writer)} cannot be read as one of {members}.")


def field_pairs(writer: AvroSchema, reader: AvroSchema) -> list[tuple[AvroField, AvroField | None]]:
    """The fields of ``writer`` in their order, each with the one of ``reader`` that it is read as, if there is one."""
    by_name = {alias: field for field in reader.fields for alias in field.aliases}
    by_name |= {field.name: field for field in reader.fields}
    return [(field, by_name.get(field.name)) for field in writer.fields]


def enum_symbols(writer: AvroSchema, reader: AvroSchema) -> tuple[str | None, ...]:
    """What each symbol of ``writer`` is in ``reader``; ``None`` for one that it does not know."""
    known = set(reader.symbols)
    return tuple(symbol if symbol in known else reader.enum_default for symbol in writer.symbols)


def _shown(schema: AvroSchema) -> str:
    return f"{schema.kind} {schema.name}" if schema.name is not None else schema.kind

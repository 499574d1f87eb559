"""Schema resolution: reads data written in one Avro schema as another, by Avro's rules."""

from __future__ import annotations

from typing import Final

from connect.errors import SchemaError
from connect.kits.avro.avro_schema import AvroField, AvroSchema

__all__ = ["Members", "check_readable", "enum_symbols", "field_pairs"]

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
_SHOWN: Final = 8


def check_readable(writer: AvroSchema, reader: AvroSchema) -> None:
    """Raise :class:`~connect.errors.SchemaError` if values of ``writer`` cannot be read as ``reader``.

    Compares only the types themselves, not their fields, elements or members.
    """
    if writer is reader:
        return
    same = writer.kind == reader.kind and (writer.kind != "fixed" or writer.size == reader.size)
    if not same and (writer.kind, reader.kind) not in _PROMOTIONS:
        raise SchemaError(f"Avro type {_title(writer)} cannot be read as {_title(reader)}.")


class Members:
    """The members of a union, looked up by the type that was written."""

    def __init__(self, union: AvroSchema) -> None:
        self._union = union
        self._by_name: dict[tuple[str, str | None], int] = {}
        self._by_kind: dict[tuple[str, int | None], int] = {}
        for index, branch in enumerate(union.branches):
            if branch.kind in _NAMED:
                for name in (branch.name, *branch.aliases):
                    self._by_name.setdefault((branch.kind, name), index)
            self._by_kind.setdefault(_shape(branch), index)

    def place_of(self, writer: AvroSchema) -> int:
        """Return the index of the member that reads values of ``writer``: the first of its type or a wider one.

        Raises :class:`~connect.errors.SchemaError` if there is none.
        """
        found = self._by_name.get((writer.kind, writer.name)) if writer.kind in _NAMED else None
        if found is None:
            found = self._by_kind.get(_shape(writer))
        if found is None:
            wider = [self._by_kind.get((kind, None)) for written, kind in _PROMOTIONS if written == writer.kind]
            found = min((index for index in wider if index is not None), default=None)
        if found is None:
            members = ", ".join(map(_title, self._union.branches[:_SHOWN]))
            more = ", ..." if len(self._union.branches) > _SHOWN else ""
            raise SchemaError(f"Avro type {_title(writer)} cannot be read as one of {members}{more}.")
        return found


def _shape(schema: AvroSchema) -> tuple[str, int | None]:
    return schema.kind, schema.size if schema.kind == "fixed" else None


def field_pairs(writer: AvroSchema, reader: AvroSchema) -> list[tuple[AvroField, AvroField | None]]:
    """Pair each field of ``writer``, in order, with the matching field of ``reader``, or ``None``."""
    by_name = {alias: field for field in reader.fields for alias in field.aliases}
    by_name |= {field.name: field for field in reader.fields}
    return [(field, by_name.get(field.name)) for field in writer.fields]


def enum_symbols(writer: AvroSchema, reader: AvroSchema) -> tuple[str | None, ...]:
    """Map the symbols of ``writer`` to those of ``reader``, or to ``None`` if the reader does not know them."""
    known = set(reader.symbols)
    return tuple(symbol if symbol in known else reader.enum_default for symbol in writer.symbols)


def _title(schema: AvroSchema) -> str:
    return f"{schema.kind} {schema.name}" if schema.name is not None else schema.kind

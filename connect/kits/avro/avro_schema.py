"""Avro schemas, parsed from the JSON that a registry keeps, with their names resolved."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from connect.errors import SchemaError
from connect.kits.avro.names import joined, split

__all__ = ["NO_DEFAULT", "PRIMITIVES", "TOO_DEEP", "AvroField", "AvroSchema", "is_null", "parse_avro"]

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NO_DEFAULT: Final[Any] = object()
"""The default of a field without one; ``None`` stands for a default of null."""

_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
_OWN: Final[dict[str, frozenset[str]]] = {
    "record": frozenset({"type", "name", "namespace", "doc", "aliases", "fields"}),
    "enum": frozenset({"type", "name", "namespace", "doc", "aliases", "symbols", "default"}),
    "fixed": frozenset({"type", "name", "namespace", "doc", "aliases", "size"}),
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
}
_FIELD_OWN: Final = frozenset({"name", "type", "doc", "default", "aliases", "order"})
_PRIMITIVE_OWN: Final = frozenset({"type"})
TOO_DEEP: Final = "The Avro schema is nested too deeply to be read."


@dataclass(eq=False, slots=True)
class AvroSchema:
    """One type of an Avro schema. Attributes that do not apply to its kind are empty.

    ``kind`` is the name of a primitive type, or ``record``, ``enum``, ``fixed``, ``array``, ``map`` or ``union``. A
    record may contain itself.
    """

    kind: str
    name: str | None = None
    """The full name of a record, an enum or a fixed."""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)
    """Properties that Avro treats as annotations or does not define, in order, such as ``connect.name``."""
    fields: list[AvroField] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    enum_default: str | None = None
    size: int = 0
    items: AvroSchema | None = None
    """The element type of an array or the value type of a map."""
    branches: tuple[AvroSchema, ...] = ()
    """The members of a union."""

    @property
    def element(self) -> AvroSchema:
        """The element type of an array or the value type of a map."""
        assert self.items is not None
        return self.items

    @property
    def full_name(self) -> str:
        """The full name of a named type, or the kind of any other type."""
        return self.name if self.name is not None else self.kind

    def field(self, name: str) -> AvroField | None:
        """Return the field of that name, or ``None``."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(eq=False, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    schema: AvroSchema
    doc: str | None = None
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)
    """Properties that Avro does not define."""


def is_null(schema: AvroSchema) -> bool:
    """Return whether the type is ``null``."""
    return schema.kind == "null"


def parse_avro(text: str, references: Iterable[str] = ()) -> AvroSchema:
    """Parse the Avro schema in ``text``, which may use the named types of ``references``.

    Each reference must come after the references that it uses itself. Raises :class:`~connect.errors.SchemaError` if
    the text is not a valid schema.
    """
    reader = _Parser()
    try:
        for reference in references:
            reader.parse(_load(reference), None)
        return reader.parse(_load(text), None)
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        # The registry returns some primitive types as JSON text and others as a bare word.
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise SchemaError(f"The Avro schema is not JSON: {error}") from error


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroSchema] = {}

    def parse(self, node: Any, namespace: str | None) -> AvroSchema:  # noqa: PLR0911 - one for each kind
        if isinstance(node, str):
            return self._reference(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        kind = node.get("type") if isinstance(node, dict) else None
        if isinstance(kind, (dict, list)):
            return self.parse(kind, namespace)
        if not isinstance(kind, str):
            raise SchemaError(f"An Avro type is a name, an array or an object with a type, not {_abridged(node)}.")
        if kind in _NAMED:
            return self._define(node, "record" if kind == "error" else kind, namespace)
        props = {key: value for key, value in node.items() if key not in _OWN.get(kind, _PRIMITIVE_OWN)}
        if kind in PRIMITIVES:
            return AvroSchema(kind, props=props)
        if kind in ("array", "map"):
            member = "items" if kind == "array" else "values"
            if member not in node:
                raise SchemaError(f'An Avro {kind} needs "{member}": {_abridged(node)}')
            return AvroSchema(kind, props=props, items=self.parse(node[member], namespace))
        return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str | None) -> AvroSchema:
        if name in PRIMITIVES:
            return AvroSchema(name)
        full_name = name if "." in name else joined(namespace, name)
        found = self._named.get(full_name) or self._named.get(name)
        if found is None:
            raise SchemaError(f"The Avro schema uses the type {name}, which neither it nor its references define.")
        return found

    def _union(self, node: list[Any], namespace: str | None) -> AvroSchema:
        branches = tuple(self.parse(member, namespace) for member in node)
        names = [branch.full_name for branch in branches]
        if len(set(names)) < len(names) or "union" in names:
            raise SchemaError(
                f"An Avro union has each type once and no unions in it, but this one has {', '.join(names)}."
            )
        return AvroSchema("union", branches=branches)

    def _define(self, node: dict[str, Any], kind: str, namespace: str | None) -> AvroSchema:
        name, given = node.get("name"), node.get("namespace")
        if not isinstance(name, str) or not name:
            raise SchemaError(f"An Avro {kind} needs a name: {_abridged(node)}")
        own_namespace = given if isinstance(given, str) else namespace
        full_name = name.lstrip(".") if "." in name else joined(own_namespace, name)
        if full_name in self._named:
            raise SchemaError(f"The Avro schema defines the type {full_name} twice.")
        props = {key: value for key, value in node.items() if key not in _OWN[kind]}
        schema = AvroSchema(kind, full_name, _text(node, "doc"), self._aliases(node, full_name), props)
        self._named[full_name] = schema
        if kind == "enum":
            self._fill_enum(schema, node)
        elif kind == "fixed":
            schema.size = _size(node)
        else:
            schema.fields = self._fields(node, split(full_name)[0])
        return schema

    @staticmethod
    def _fill_enum(schema: AvroSchema, node: dict[str, Any]) -> None:
        symbols = node.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise SchemaError(f'An Avro enum needs "symbols", a list of texts: {_abridged(node)}')
        schema.symbols = tuple(symbols)
        schema.enum_default = _text(node, "default")

    def _fields(self, node: dict[str, Any], namespace: str | None) -> list[AvroField]:
        members = node.get("fields")
        if not isinstance(members, list):
            raise SchemaError(f'An Avro record needs "fields", a list: {_abridged(node)}')
        fields: dict[str, AvroField] = {}
        for member in members:
            name = _text(member, "name") if isinstance(member, dict) else None
            if name is None or "type" not in member:
                raise SchemaError(f"A field of an Avro record needs a name and a type: {_abridged(member)}")
            if name in fields:
                raise SchemaError(f"The Avro record {node['name']} has the field {name} twice.")
            fields[name] = AvroField(
                name,
                self.parse(member["type"], namespace),
                _text(member, "doc"),
                member.get("default", NO_DEFAULT),
                self._field_aliases(member),
                {key: value for key, value in member.items() if key not in _FIELD_OWN},
            )
        return list(fields.values())

    @staticmethod
    def _field_aliases(node: dict[str, Any]) -> tuple[str, ...]:
        aliases = node.get("aliases")
        return tuple(alias for alias in aliases if isinstance(alias, str)) if isinstance(aliases, list) else ()

    @staticmethod
    def _aliases(node: dict[str, Any], full_name: str) -> tuple[str, ...]:
        aliases = node.get("aliases")
        if not isinstance(aliases, list):
            return ()
        namespace = split(full_name)[0]
        return tuple(alias if "." in alias else joined(namespace, alias) for alias in map(str, aliases))


def _text(node: dict[str, Any], member: str) -> str | None:
    text = node.get(member)
    return text if isinstance(text, str) else None


def _size(node: dict[str, Any]) -> int:
    size = node.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise SchemaError(f'An Avro fixed needs "size", a whole number from 0: {_abridged(node)}')
    return size


def _abridged(node: Any) -> str:
    text = json.dumps(node, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}..."

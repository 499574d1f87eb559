"""Translates Connect schemas to Avro schemas."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from connect.data import Field, Schema, Type, logical
from connect.errors import SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, TOO_DEEP, AvroField, AvroSchema
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import KINDS, enum_name, fixed_size, is_avro_map, is_union, part
from connect.kits.avro.defaults import Defaults, fits_field
from connect.kits.avro.names import (
    ANYTHING,
    DEFAULT_NAME,
    MAP_ENTRY,
    NAMESPACE,
    check_name,
    scrub,
    scrub_full,
    split,
)
from connect.kits.avro.structure import Forms, check_depth

__all__ = ["DECIMAL_PRECISION", "avro_from_connect", "schemaless_record"]

DECIMAL_PRECISION: Final = "connect.decimal.precision"
_FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
_LOGICAL: Final = {
    logical.DATE_NAME: "date",
    logical.TIME_NAME: "time-millis",
    logical.TIMESTAMP_NAME: "timestamp-millis",
}


def avro_from_connect(schema: Schema | None, config: AvroDataConfig) -> AvroSchema:
    """Return the Avro schema for values of a Connect schema, or of no schema if it is ``None``.

    Raises :class:`~connect.errors.SchemaError`, with advice, if Avro cannot represent the schema.
    """
    if schema is None:
        return schemaless_record()
    try:
        return check_depth(_Translation(config).translate(schema))
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error


def schemaless_record() -> AvroSchema:
    """Return the record for values without a schema. It has one field for each kind of value."""
    record = AvroSchema("record", ANYTHING)
    entry = AvroSchema("record", MAP_ENTRY, fields=[AvroField("key", record), AvroField("value", record)])
    kinds = {kind: AvroSchema(kind) for kind in ("boolean", "bytes", "double", "float", "int", "long", "string")}
    kinds |= {"array": AvroSchema("array", items=record), "map": AvroSchema("array", items=entry)}
    record.fields = [AvroField(name, _nullable(kind), default=None) for name, kind in kinds.items()]
    return record


def _nullable(schema: AvroSchema) -> AvroSchema:
    return AvroSchema("union", branches=(AvroSchema("null"), schema))


class _Translation:
    def __init__(self, config: AvroDataConfig) -> None:
        self._config = config
        self._made: dict[tuple[Schema, bool], AvroSchema] = {}
        self._forms = Forms()
        self._entries: dict[tuple[int, int], AvroSchema] = {}
        self._defaults = Defaults(config)
        self._nameless = 0

    def translate(self, schema: Schema, *, ignore_optional: bool = False) -> AvroSchema:
        """Return the Avro schema of ``schema`` or of a part of it; ``ignore_optional`` leaves out the null branch."""
        key = (schema, ignore_optional and schema.optional)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._new(schema, ignore_optional=ignore_optional)
        return made

    def _new(self, schema: Schema, *, ignore_optional: bool) -> AvroSchema:
        if is_union(schema):
            return self._union(schema)
        if schema.type is Type.STRUCT and schema.optional:
            record = self.translate(schema.as_required())
            return record if ignore_optional else _nullable(record)
        base = self._base(schema)
        self._annotate(base, schema)
        if schema.optional and not ignore_optional:
            null = AvroSchema("null")
            branches = (null, base) if schema.default is None else (base, null)
            return AvroSchema("union", branches=branches)
        return base

    def _base(self, schema: Schema) -> AvroSchema:
        match schema.type:
            case Type.STRING:
                return self._string(schema)
            case Type.BYTES:
                return self._bytes(schema)
            case Type.ARRAY:
                return AvroSchema("array", items=self.translate(part(schema.value_schema)))
            case Type.MAP:
                return self._map(schema)
            case Type.STRUCT:
                return self._record(schema)
            case _:
                return AvroSchema(KINDS[schema.type])

    def _union(self, schema: Schema) -> AvroSchema:
        members = [self.translate(field.schema.as_required(), ignore_optional=True) for field in schema.fields]
        names = [member.full_name for member in members]
        if len(set(names)) < len(names) or "union" in names:
            raise SchemaError(
                f"A union has each Avro type once and no unions in it, but this one has {', '.join(names)}: "
                f"{self._remedy(schema)}."
            )
        null = (AvroSchema("null"),) if schema.optional else ()
        return AvroSchema("union", branches=(*null, *members))

    def _remedy(self, union: Schema) -> str:
        """Say how a union can be written whose members have one Avro type."""
        marker = self._config.enum_parameter
        if not self._config.writes_enums and any(marker in field.schema.parameters for field in union.fields):
            return "set enhanced.avro.schema.support=true, which writes enums as enums and not as strings"
        return "give its members other types"

    def _string(self, schema: Schema) -> AvroSchema:
        name = enum_name(schema, self._config)
        if name is None:
            return AvroSchema("string")
        parameters = schema.parameters
        prefix = f"{self._config.enum_parameter}."
        symbols = tuple(key.removeprefix(prefix) for key in parameters if key.startswith(prefix))
        if self._config.generalized_sum_type_support:
            symbols = tuple(sorted(symbols, key=lambda symbol: int(parameters[prefix + symbol])))
        for text in (name, *symbols):
            check_name(text, "enums and their symbols")
        simple = split(self._name_of(schema))[1]
        if self._config.discard_type_doc_default:
            return AvroSchema("enum", name, parameters.get("connect.enum.doc"), symbols=symbols)
        doc = parameters.get(f"{NAMESPACE}.enum.doc.{simple}")
        default = parameters.get(f"{NAMESPACE}.enum.default.{simple}")
        return AvroSchema("enum", name, doc, symbols=symbols, enum_default=default)

    def _bytes(self, schema: Schema) -> AvroSchema:
        size = fixed_size(schema)
        base = AvroSchema("bytes") if size is None else AvroSchema("fixed", self._name_of(schema), size=size)
        if schema.name == logical.DECIMAL_NAME:
            base.props["scale"] = logical.decimal_scale(schema)
            base.props["precision"] = _precision(schema)
        return base

    def _map(self, schema: Schema) -> AvroSchema:
        if is_avro_map(schema, self._config):
            return AvroSchema("map", items=self.translate(part(schema.value_schema)))
        fields = [
            self._field(Field("key", part(schema.key_schema), 0), None),
            self._field(Field("value", part(schema.value_schema), 1), None),
        ]
        internal = {"connect.internal.type": split(MAP_ENTRY)[1]}
        if schema.name is not None:
            entry = AvroSchema("record", self._name_of(schema), props=internal, fields=fields)
            return AvroSchema("array", items=entry)
        content = (self._forms.number(fields[0].schema), self._forms.number(fields[1].schema))
        if content not in self._entries:
            # Maps with other types need an entry record of their own, which this property marks as a map entry.
            number = len(self._entries) + 1
            name, props = (MAP_ENTRY, {}) if number == 1 else (f"{MAP_ENTRY}{number}", internal)
            self._entries[content] = AvroSchema("record", name, props=dict(props), fields=fields)
        return AvroSchema("array", items=self._entries[content])

    def _record(self, schema: Schema) -> AvroSchema:
        keep_docs = not self._config.discard_type_doc_default
        doc = schema.parameters.get(f"{NAMESPACE}.record.doc" if keep_docs else "connect.record.doc")
        record = AvroSchema("record", self._name_of(schema), doc)
        for field in schema.fields:
            field_doc = schema.parameters.get(f"{NAMESPACE}.field.doc.{field.name}") if keep_docs else field.schema.doc
            record.fields.append(self._field(field, field_doc))
        names = [field.name for field in record.fields]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise SchemaError(f"Two fields are called {twice} once scrubbed: rename one of them (ReplaceField).")
        return record

    def _field(self, field: Field, doc: str | None) -> AvroField:
        schema = field.schema
        name = scrub(field.name) if self._config.scrub_invalid_names else check_name(field.name, "fields")
        avro = self.translate(schema)
        default = NO_DEFAULT
        if schema.default is not None:
            default = self._defaults.json(schema, schema.default)
        elif schema.optional:
            default = None
        if default is not NO_DEFAULT and not fits_field(avro, default):
            default = NO_DEFAULT
        return AvroField(name, avro, doc, default)

    def _name_of(self, schema: Schema) -> str:
        if schema.name is not None:
            if self._config.scrub_invalid_names:
                return scrub_full(schema.name)
            return check_name(schema.name, "named types")
        self._nameless += 1
        return DEFAULT_NAME if self._nameless == 1 else f"{DEFAULT_NAME}{self._nameless}"

    def _annotate(self, base: AvroSchema, schema: Schema) -> None:
        if self._config.connect_meta_data:
            base.props |= {key: value for key, value in self._metadata(schema).items() if key not in base.props}
        if schema.name == logical.DECIMAL_NAME:
            base.props["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            base.props["logicalType"] = _LOGICAL[schema.name]
        for key, text in schema.parameters.items():
            if key.startswith("avro"):
                base.props[key] = text

    def _metadata(self, schema: Schema) -> dict[str, Any]:
        discard = self._config.discard_type_doc_default
        found: dict[str, Any] = {"connect.doc": schema.doc, "connect.version": schema.version}
        parameters = {key: text for key, text in schema.parameters.items() if discard or key != _FIELD_DEFAULT}
        found["connect.parameters"] = parameters or None
        if schema.default is not None and (discard or _FIELD_DEFAULT not in schema.parameters):
            found["connect.default"] = self._defaults.json(schema, schema.default)
        found["connect.name"] = schema.name
        found["connect.type"] = schema.type.value if schema.type in (Type.INT8, Type.INT16) else None
        return {key: value for key, value in found.items() if value is not None}


def _precision(schema: Schema) -> int:
    text = schema.parameters.get(DECIMAL_PRECISION, "64")
    if not text.isdecimal():
        raise SchemaError(f"The parameter {DECIMAL_PRECISION} is {text!r}; it must be a whole number.")
    return int(text)

"""Translates Avro schemas to Connect schemas."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from connect.data import Field, Schema, Type, logical
from connect.data.numerals import INT32_MAX, INT32_MIN
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import NO_DEFAULT, AvroField, AvroSchema, is_null
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_map_entry, is_schemaless
from connect.kits.avro.defaults import Defaults
from connect.kits.avro.from_connect import DECIMAL_PRECISION
from connect.kits.avro.names import DEFAULT_NAME, FIXED_SIZE, GENERALIZED_UNION, NAMESPACE, UNION, split
from connect.kits.avro.structure import check_depth

__all__ = ["ConnectSchemas", "connect_from_avro", "only_branch"]

log = logging.getLogger(__name__)

_MOST_UNIONS: Final = 20_000
_FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
_PLAIN: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
}
_NARROW: Final = {"int8": Type.INT8, "int16": Type.INT16}
_LOGICAL: Final = {
    ("int", "date"): logical.DATE_NAME,
    ("int", "time-millis"): logical.TIME_NAME,
    ("long", "timestamp-millis"): logical.TIMESTAMP_NAME,
    ("bytes", "decimal"): logical.DECIMAL_NAME,
    ("fixed", "decimal"): logical.DECIMAL_NAME,
}
_NAMED: Final = ("record", "enum", "fixed")


def connect_from_avro(avro: AvroSchema, config: AvroDataConfig, version: int | None = None) -> Schema | None:
    """Return the Connect schema of values written in an Avro schema, or ``None`` for values without a schema.

    ``version`` is the schema's version in its subject; it applies if the schema does not specify one itself. Raises
    :class:`~connect.errors.SchemaError` if Connect cannot represent the schema.
    """
    if is_schemaless(avro):
        return None
    return ConnectSchemas(config).translate(check_depth(avro), version=version)


def only_branch(avro: AvroSchema, config: AvroDataConfig) -> AvroSchema | None:
    """Return the only non-null type of a union that Connect reads as that type; ``None`` for real unions."""
    present = [branch for branch in avro.branches if not is_null(branch)]
    if len(present) != 1 or (len(avro.branches) == 1 and not config.flatten_singleton_unions):
        return None
    return present[0]


class ConnectSchemas:
    """Translates Avro schemas. A type that is used often is translated once."""

    def __init__(self, config: AvroDataConfig) -> None:
        self._config = config
        self._defaults = Defaults(config)
        self._open: set[int] = set()
        self._unions = 0
        self._named: dict[tuple[object, ...], Schema] = {}

    def translate(
        self, avro: AvroSchema, *, optional: bool = False, field: AvroField | None = None, version: int | None = None
    ) -> Schema:
        """Return the Connect schema of a type, optionally with the attributes of the field it belongs to."""
        if avro.kind == "union":
            branch = only_branch(avro, self._config)
            if branch is not None:
                return self.translate(branch, optional=len(avro.branches) > 1, field=_without_default(field))
        if avro.kind not in _NAMED or version is not None:
            return self._new(avro, optional, field, version)
        key = (id(avro), optional, *self._of_field(field))
        known = self._named.get(key)
        if known is None:
            unions = self._unions
            known = self._new(avro, optional, field, None)
            if not self._config.generalized_sum_type_support or self._unions == unions:
                # Unions are numbered in the order in which they are met, so a repeated one is a different schema.
                self._named[key] = known
        return known

    def _of_field(self, field: AvroField | None) -> tuple[object, ...]:
        """Return the attributes of a field that become part of its schema."""
        if field is None:
            return (None, None)
        default = None if field.default is NO_DEFAULT else json.dumps(field.default)
        return (default, field.doc if self._config.discard_type_doc_default else None)

    def _new(self, avro: AvroSchema, optional: bool, field: AvroField | None, version: int | None) -> Schema:
        attributes = self._attributes(avro)
        attributes["optional"] = attributes.get("optional", False) or optional
        self._document(attributes, avro, field)
        _add_version(attributes, avro, version)
        self._add_parameters(attributes, avro)
        default = avro.props.get("connect.default")
        if field is not None and field.default is not NO_DEFAULT:
            if default is None and self._config.connect_meta_data and not self._config.discard_type_doc_default:
                attributes["parameters"][_FIELD_DEFAULT] = "true"
            default = field.default
        _add_name(attributes, avro)
        schema = Schema(**attributes)
        return schema if default is None else self._with_default(schema, avro, default)

    def _with_default(self, schema: Schema, avro: AvroSchema, node: Any) -> Schema:
        try:
            return schema.replace(default=self._defaults.value(schema, avro, node))
        except DataError as error:
            log.warning("Ignoring the default of the Avro schema %s, which is not valid: %s", avro.full_name, error)
            return schema

    def _attributes(self, avro: AvroSchema) -> dict[str, Any]:
        match avro.kind:
            case "record":
                return self._record(avro)
            case "enum":
                return {"type": Type.STRING, "parameters": self._enum_parameters(avro)}
            case "array":
                return self._array(avro)
            case "map":
                item = self.translate(avro.element)
                return {"type": Type.MAP, "key_schema": Schema.string(), "value_schema": item, "parameters": {}}
            case "union":
                return self._union(avro)
            case _:
                return _always_null() if is_null(avro) else _scalar(avro)

    def _record(self, avro: AvroSchema) -> dict[str, Any]:
        if id(avro) in self._open:
            raise SchemaError(
                f"The Avro record {avro.full_name} contains itself, which a Connect schema cannot: read the topic as"
                " bytes (ByteArrayConverter), or write it with a limited depth."
            )
        self._open.add(id(avro))
        keep_docs = self._config.connect_meta_data and not self._config.discard_type_doc_default
        parameters = {}
        if keep_docs and avro.doc is not None:
            parameters[f"{NAMESPACE}.record.doc"] = avro.doc
        fields = []
        try:
            for index, field in enumerate(avro.fields):
                if keep_docs and field.doc is not None:
                    parameters[f"{NAMESPACE}.field.doc.{field.name}"] = field.doc
                fields.append(Field(field.name, self.translate(field.schema, field=field), index))
        finally:
            self._open.discard(id(avro))
        return {"type": Type.STRUCT, "fields": fields, "parameters": parameters}

    def _enum_parameters(self, avro: AvroSchema) -> dict[str, str]:
        config, simple = self._config, split(avro.full_name)[1]
        parameters = {}
        if config.connect_meta_data:
            if avro.doc is not None:
                own = "connect.enum.doc" if config.discard_type_doc_default else f"{NAMESPACE}.enum.doc.{simple}"
                parameters[own] = avro.doc
            if avro.enum_default is not None and not config.discard_type_doc_default:
                parameters[f"{NAMESPACE}.enum.default.{simple}"] = avro.enum_default
        name = config.enum_parameter
        parameters[name] = avro.full_name
        for index, symbol in enumerate(avro.symbols):
            parameters[f"{name}.{symbol}"] = str(index) if config.generalized_sum_type_support else symbol
        return parameters

    def _array(self, avro: AvroSchema) -> dict[str, Any]:
        entry = avro.element
        if not is_map_entry(entry):
            return {"type": Type.ARRAY, "value_schema": self.translate(entry), "parameters": {}}
        key, value = entry.field("key"), entry.field("value")
        if key is None or value is None or len(entry.fields) != 2:
            raise SchemaError(
                "Found map encoded as array of key-value pairs, but array elements do not match the expected format."
            )
        return {
            "type": Type.MAP,
            "key_schema": self.translate(key.schema),
            "value_schema": self.translate(value.schema),
            "parameters": {},
        }

    def _union(self, avro: AvroSchema) -> dict[str, Any]:
        if all(map(is_null, avro.branches)):
            return _always_null()
        generalized = self._config.generalized_sum_type_support
        name = f"connect_union_{self._unions}" if generalized else UNION
        self._unions += 1
        if generalized and self._unions > _MOST_UNIONS:
            raise SchemaError(
                f"The Avro schema has more than {_MOST_UNIONS} unions, each counted as often as it is used: "
                "set generalized.sum.type.support=false, which does not number them."
            )
        fields: dict[str, Schema] = {}
        for index, branch in enumerate(avro.branches):
            if is_null(branch):
                continue
            field_name = avro_member_name(branch, index, self._config)
            if field_name in fields:
                raise SchemaError(
                    f"Multiple union schemas map to the Connect union field name {field_name}: set "
                    "enhanced.avro.schema.support=true, which names them with their namespaces."
                )
            fields[field_name] = self.translate(branch, optional=True)
        return {
            "type": Type.STRUCT,
            "name": name,
            "fields": fields,
            "optional": any(map(is_null, avro.branches)),
            "parameters": {GENERALIZED_UNION: name} if generalized else {},
        }

    def _document(self, attributes: dict[str, Any], avro: AvroSchema, field: AvroField | None) -> None:
        own = avro.props.get("connect.doc")
        if self._config.discard_type_doc_default:
            docs = (None if field is None else field.doc, avro.doc, own)
            attributes["doc"] = next((doc for doc in docs if isinstance(doc, str)), None)
            if self._config.connect_meta_data and avro.doc is not None:
                attributes["parameters"]["connect.record.doc"] = avro.doc
        elif self._config.connect_meta_data and isinstance(own, str):
            attributes["doc"] = own

    def _add_parameters(self, attributes: dict[str, Any], avro: AvroSchema) -> None:
        given = avro.props.get("connect.parameters")
        if self._config.connect_meta_data and given is not None:
            if not isinstance(given, dict):
                raise SchemaError(f"Expected JSON object for schema parameters but found: {given}")
            for text in given.values():
                if not isinstance(text, str):
                    raise SchemaError(f"Expected schema parameter values to be strings but found: {text}")
            attributes["parameters"] |= given
        for key, value in avro.props.items():
            if key.startswith("avro"):
                attributes["parameters"][key] = str(value)


def _without_default(field: AvroField | None) -> AvroField | None:
    return None if field is None else AvroField(field.name, field.schema, field.doc)


def _always_null() -> dict[str, Any]:
    """Return the attributes of a type whose only value is null: an optional string, as any type would do."""
    return {"type": Type.STRING, "optional": True, "parameters": {}}


def _scalar(avro: AvroSchema) -> dict[str, Any]:
    logical_type = avro.props.get("logicalType")
    lowered = logical_type.lower() if isinstance(logical_type, str) else None
    name = _LOGICAL.get((avro.kind, lowered)) if lowered is not None else None
    kind, parameters = _PLAIN[avro.kind], {}
    if name == logical.DECIMAL_NAME:
        parameters = _decimal_parameters(avro)
    elif avro.kind == "int" and logical_type is None and "connect.type" in avro.props:
        narrow = avro.props["connect.type"]
        kind = _NARROW.get(narrow, Type.INT32) if isinstance(narrow, str) else Type.INT32
    if avro.kind == "fixed":
        parameters[FIXED_SIZE] = str(avro.size)
    attributes: dict[str, Any] = {"type": kind, "parameters": parameters}
    return attributes if name is None else attributes | {"name": name, "version": 1}


def _decimal_parameters(avro: AvroSchema) -> dict[str, str]:
    scale, precision = avro.props.get("scale"), avro.props.get("precision")
    parameters = {"scale": str(_whole("scale", scale)) if isinstance(scale, (int, float)) else "0"}
    if precision is None:
        return parameters
    if not isinstance(precision, (int, float)):
        raise SchemaError(f"precision property must be a JSON Integer, not {precision!r}.")
    if precision != 64:
        parameters[DECIMAL_PRECISION] = str(_whole("precision", precision))
    return parameters


def _whole(prop: str, number: float) -> int:
    if not INT32_MIN <= number < INT32_MAX + 1:
        raise SchemaError(f"The {prop} of a decimal is {number}; it must be a whole number of 32 bits.")
    return int(number)


def _add_version(attributes: dict[str, Any], avro: AvroSchema, version: int | None) -> None:
    own = avro.props.get("connect.version")
    if own is not None and (not isinstance(own, int) or isinstance(own, bool)):
        raise SchemaError(f"Invalid Connect version found: {own}")
    fixed = attributes.get("version")
    if fixed is not None and own not in (None, fixed):
        raise SchemaError(f"The version of a logical type is {fixed}, but the Avro schema says {own}.")
    found = own if own is not None else version
    if fixed is None and found is not None and found >= 0:
        attributes["version"] = found


def _add_name(attributes: dict[str, Any], avro: AvroSchema) -> None:
    name = avro.props.get("connect.name")
    if name is None:
        # The name of a fixed with a logical type does not become the schema's name, which is Connect's logical name.
        name = avro.full_name if avro.kind in _NAMED and "name" not in attributes else None
    elif not isinstance(name, str):
        raise SchemaError(f"Invalid schema name: {name}")
    if name is None or name.startswith(DEFAULT_NAME):
        return
    if attributes.setdefault("name", name) != name:
        raise SchemaError(f"The schema has the name {attributes['name']}, but the Avro schema says {name}.")

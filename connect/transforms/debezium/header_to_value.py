"""HeaderToValue: copies or moves headers into the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from connect.config import HIGH, Config, ConfigRuleError, non_empty_list, option
from connect.data import Field, Header, Headers, Record, Schema, Type
from connect.data.values import infer_schema
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import VALUE, require_map

__all__ = ["HeaderToValue", "HeaderToValueConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "header field insertion"


class HeaderToValueConfig(Config):
    """The headers, and the fields they become."""

    headers: tuple[str, ...] = option(
        importance=HIGH, validator=non_empty_list, doc="The headers whose values become fields of the value."
    )
    fields: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The fields, in the order of the headers; a dot leads into a nested struct, which must be there.",
    )
    operation: Literal["move", "copy"] = option(
        importance=HIGH, doc="Whether the headers are copied, or moved and so removed from the record."
    )

    def check(self) -> list[ConfigError]:
        """Refuse lists of headers and fields that differ in length."""
        if len(self.fields) != len(self.headers):
            text = "'fields' config must have the same number of elements as 'headers' config."
            return [ConfigRuleError(text, "fields", "headers")]
        return []


class HeaderToValue(Transformation[HeaderToValueConfig]):
    """Copies or moves headers into the value. Records without value or without these headers pass unchanged."""

    def __init__(self, config: HeaderToValueConfig) -> None:
        super().__init__(config)
        self._places = [(key, field.split(".")) for key, field in zip(config.headers, config.fields, strict=True)]

    def apply(self, record: R) -> R | None:
        """Return the record with headers in its value."""
        if record.value is None:
            return record
        schema, value = record.value_schema, require_map(record.value, record.value_schema, _PURPOSE)
        placed: set[str] = set()
        for key, steps in self._places:
            header = record.headers.last_with_key(key)
            if header is not None and _has_room(value, steps):
                schema = None if schema is None else _with_field(schema, steps, _schema_of(header), key)
                value = _with_value(value, steps, header.value)
                placed.add(key)
        if not placed:
            return record
        new = VALUE.put(record, schema, value)
        if self.config.operation == "move":
            new.headers = Headers(header for header in record.headers if header.key not in placed)
        return new


def _has_room(value: Mapping[str, Any], steps: Sequence[str]) -> bool:
    """Return whether the structs that lead to a field are there; a null one has no fields, so its header stays."""
    current: Any = value
    for step in steps[:-1]:
        current = current.get(step)
        if current is None:
            return False
        if not isinstance(current, Mapping):
            raise DataError(f"Field {step} on the way to {'.'.join(steps)} is no struct: correct fields")
    return True


def _with_value(value: Mapping[str, Any], steps: Sequence[str], item: Any) -> dict[str, Any]:
    step, *rest = steps
    return {**value, step: _with_value(value[step], rest, item) if rest else item}


def _with_field(schema: Schema, steps: Sequence[str], added: Schema, key: str) -> Schema:
    step, *rest = steps
    field = schema.field(step) if schema.type is Type.STRUCT else None
    if not rest and field is not None:
        raise DataError(f"The value has a field {step} already: give the header {key} another one in fields")
    if rest and field is None:
        raise DataError(f"The value has no field {step} for the header {key}: correct fields")
    fields = {member.name: member.schema for member in schema.fields}
    fields[step] = _with_field(fields[step], rest, added, key) if rest else added
    members = [Field(name, of, index) for index, (name, of) in enumerate(fields.items())]
    return schema.replace(fields=members, default=None)


def _schema_of(header: Header) -> Schema:
    schema = header.schema or infer_schema(header.value)
    if schema is None:
        raise DataError(f"The header {header.key} has no schema, but the value has: give it one, or drop the header")
    return schema if header.value is not None else schema.as_optional()

"""Expression: computes a key, a value or a field from the record."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from connect.config import HIGH, MEDIUM, Config, option
from connect.data import Batch, Field, Record, Schema, Type, ValueColumn, timestamp_schema, validate
from connect.errors import ConfigError, DataError
from connect.transforms.fields.expressions import Expression as CompiledExpression
from connect.transforms.fields.key_or_value import (
    KeyOrValueTransformation,
    SchemaCache,
    require_map,
    require_struct_schema,
)

__all__ = ["Expression", "ExpressionConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_PURPOSE: Final = "computing a field"
_RESULTS: Final[Mapping[str, Schema]] = {
    "boolean": Schema.boolean(optional=True),
    "int8": Schema.int8(optional=True),
    "int16": Schema.int16(optional=True),
    "int32": Schema.int32(optional=True),
    "int64": Schema.int64(optional=True),
    "float32": Schema.float32(optional=True),
    "float64": Schema.float64(optional=True),
    "string": Schema.string(optional=True),
    "bytes": Schema.bytes(optional=True),
    "Timestamp": timestamp_schema(optional=True),
}


class ExpressionConfig(Config):
    """The expression, and the place of its result."""

    expression: str = option(importance=HIGH, doc="The expression, in the Common Expression Language (CEL).")
    field: str = option(
        default="",
        importance=HIGH,
        doc="The field that gets the result; it is added if it is missing. If empty, the whole key or value gets it.",
    )
    result_type: (
        Literal[
            "boolean",
            "int8",
            "int16",
            "int32",
            "int64",
            "float32",
            "float64",
            "string",
            "bytes",
            "Timestamp",
        ]
        | None
    ) = option(
        default=None,
        importance=MEDIUM,
        doc="The type of the result where there is a schema. Without it, a field that is there keeps its own.",
    )

    def check(self) -> list[ConfigError]:
        """Refuse malformed expressions."""
        CompiledExpression(self.expression, "expression")
        return []


class Expression(KeyOrValueTransformation[ExpressionConfig]):
    """Computes the key or value, or a field of it, from the record."""

    def __init__(self, config: ExpressionConfig) -> None:
        super().__init__(config)
        self._expression = CompiledExpression(config.expression, "expression")
        self._schemas = SchemaCache(self._schemas_of)

    def apply(self, record: R) -> R | None:
        """Return the record with the result. A key or value that is null gets no field."""
        side = self.side
        schema, data = side.read(record)
        if data is None and self.config.field:
            return record
        new_schema, result_schema = self._schemas(schema)
        result = self._result(record, result_schema)
        return side.put(record, new_schema, self._placed(data, schema, result))

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the results."""
        column = self.side.column(batch)
        values, schema = column.values(), column.schema
        if self.config.field and any(value is None for value in values):
            return super().apply_batch(batch)
        new_schema, result_schema = self._schemas(schema)
        new = [
            self._placed(value, schema, self._result(record, result_schema))
            for value, record in zip(values, batch, strict=True)
        ]
        return [self.side.put_column(batch, ValueColumn(new, new_schema))]

    def _schemas_of(self, schema: Schema | None) -> tuple[Schema | None, Schema | None]:
        """Return the new schema of the key or value, and the schema of the result."""
        if schema is None:
            return None, None
        result = None if self.config.result_type is None else _RESULTS[self.config.result_type]
        if self.config.field:
            require_struct_schema(schema, _PURPOSE)
            present = schema.field(self.config.field)
            if result is None and present is not None:
                result = present.schema
        if result is None:
            raise DataError("The result of an expression needs a type where there is a schema: set result.type")
        if not self.config.field:
            return result, result
        fields = {field.name: field.schema for field in schema.fields} | {self.config.field: result}
        members = [Field(name, member, 0) for name, member in fields.items()]
        return schema.replace(fields=members, optional=False, default=None), result

    def _result(self, record: Record, schema: Schema | None) -> Any:
        result = self._expression.evaluate(record)
        if schema is not None:
            if isinstance(result, int) and schema.type in (Type.FLOAT32, Type.FLOAT64):
                result = result if isinstance(result, bool) else float(result)
            validate(schema, result, self.config.field or self.side.name)
        elif isinstance(result, dt.timedelta):
            raise DataError(f"Expression {self.config.expression}: a record cannot hold its result, a duration")
        return result

    def _placed(self, data: Any, schema: Schema | None, result: Any) -> Any:
        if not self.config.field:
            return result
        new = dict(require_map(data, schema, _PURPOSE))
        new[self.config.field] = result
        return new

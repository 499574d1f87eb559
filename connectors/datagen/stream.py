"""The endless stream of records of one task, any part of which can be generated without the records before it."""

from __future__ import annotations

from typing import Any, Final

from connect.data import Schema
from connect.errors import SchemaError
from connect.kits.avro.avro_schema import AvroSchema, parse_avro
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.to_connect import connect_from_avro
from connectors.datagen.compiler import Compiler
from connectors.datagen.generator import Records
from connectors.datagen.random_block import RandomBlock

__all__ = ["RecordStream", "RecordType"]

_MOST_RECORDS: Final = 2048
_VALUES: Final = 100_000
"""The maximum number of values in a block, unless a single record has more."""
_LARGEST_SCHEMA: Final = 1024 * 1024


class RecordType:
    """The type of the generated records: their schema, and the generator of their fields."""

    def __init__(self, text: str) -> None:
        if len(text) > _LARGEST_SCHEMA:
            raise SchemaError(f"The schema is longer than {_LARGEST_SCHEMA} characters. Shorten it.")
        config = AvroDataConfig.parse({})
        avro = _record_of(text)
        schema = connect_from_avro(avro, config)
        if schema is None or not avro.fields:
            raise SchemaError(f"The record {avro.full_name} has no fields. Add some.")
        compiler = Compiler(config)
        self.schema: Schema = schema
        try:
            self.generator: Records = compiler.record(avro, schema)
        except OverflowError as error:
            raise SchemaError("A number in the annotations of the schema is too large.") from error
        self.unknown = compiler.unknown
        """The names of unknown annotations."""

    @property
    def block_size(self) -> int:
        """The number of records in a block. The random numbers depend on it, so it follows from the schema alone."""
        return max(1, min(_MOST_RECORDS, _VALUES // self.generator.cost))


def _record_of(text: str) -> AvroSchema:
    avro = parse_avro(text)
    if avro.kind != "record":
        raise SchemaError(f"The schema must be a record, not {avro.full_name}.")
    return avro


class RecordStream:
    """The records of one task. Equal types, seeds and tasks give equal records."""

    def __init__(self, record_type: RecordType, seed: int, task: int) -> None:
        self._type = record_type
        self._seed = seed
        self._task = task
        self._first = -1
        self._columns: dict[str, list[Any]] = {}

    def columns(self, start: int, count: int) -> dict[str, list[Any]]:
        """Return the fields of at most ``count`` records from ``start`` on, up to the end of the block."""
        size = self._type.block_size
        skipped = start % size
        self._make(start - skipped)
        end = min(skipped + count, size)
        if (skipped, end) == (0, size):
            return self._columns
        return {name: values[skipped:end] for name, values in self._columns.items()}

    def _make(self, first: int) -> None:
        if first != self._first:
            draw = RandomBlock(self._seed, self._task, first)
            self._columns = self._type.generator.columns(draw, self._type.block_size)
            self._first = first

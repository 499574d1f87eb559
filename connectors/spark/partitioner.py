"""Partitioners divide tables into folders, under the names known from the storage sinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from connect.data import Schema, Type
from connect.errors import SchemaError
from connectors.spark.config import SparkSinkConfig

__all__ = ["DefaultPartitioner", "FieldPartitioner", "Partitioner", "make_partitioner"]


class Partitioner(Protocol):
    """Tells by which columns Spark divides its output, and in which folder of the table a file belongs."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns whose values name folders and are not in the files."""

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if a table of this schema cannot be divided that way."""

    def folder(self, partition: int, written: str) -> str:
        """The folder of a file with records of this partition; ``written`` is the one in which Spark has put it."""


@dataclass(frozen=True, slots=True)
class DefaultPartitioner:
    """A folder for each partition of the topic: ``partition=0``."""

    columns: Sequence[str] = ()

    def check(self, table: Schema) -> None:
        """Accept any table."""

    def folder(self, partition: int, written: str) -> str:  # noqa: ARG002
        """``partition=`` and the number."""
        return f"partition={partition}"


@dataclass(frozen=True, slots=True)
class FieldPartitioner:
    """A folder for each value of some fields: ``origin=EWR/carrier=UA``."""

    columns: Sequence[str]

    def check(self, table: Schema) -> None:
        """Require the fields to be columns, but not all of them."""
        for name in self.columns:
            if name.startswith(("_", ".")):
                raise SchemaError(
                    f"partition.field.name={name} makes folders that readers ignore, because their names begin "
                    "with _ or '.': rename the field (ReplaceField)."
                )
            field = table.field(name)
            if field is None:
                raise SchemaError(
                    f"partition.field.name={name} is not a field of the records, which have "
                    f"{', '.join(table.field_names)}: name one of those."
                )
            if field.schema.type in (Type.STRUCT, Type.ARRAY, Type.MAP, Type.BYTES):
                raise SchemaError(
                    f"partition.field.name={name} is a field of type {field.schema.type.value}, which cannot name "
                    "a folder: choose another, or derive one with a transformation."
                )
        if set(table.field_names) <= set(self.columns):
            raise SchemaError(
                "partition.field.name names every field of the records, so that the files would have no columns: take "
                "at least one out."
            )

    def folder(self, partition: int, written: str) -> str:  # noqa: ARG002
        """The folder that Spark has made of the values."""
        return written


def make_partitioner(config: SparkSinkConfig) -> Partitioner:
    """The partitioner that ``partitioner.class`` names."""
    if config.partitioner == "FieldPartitioner":
        return FieldPartitioner(config.partition_field_name)
    return DefaultPartitioner()

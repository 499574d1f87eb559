"""Iceberg tables of a Spark sink for tests, and the session that loads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from pyiceberg.table import StaticTable

import connectors.spark
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.session import start_session
from connectors.spark.stores.access import Access
from equipment.stores.targets import JSON, LoadedTable
from equipment.workers.small_spark import SMALL_SPARK

__all__ = ["ENVELOPED", "IcebergLake", "iceberg_session"]

ENVELOPED: Final = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "true"}
"""Records with their schemas."""


@contextmanager
def iceberg_session() -> Iterator[Any]:
    """Spark with the drivers of all catalogs."""
    folder = Path(connectors.spark.__file__).parent / "iceberg"
    locks = [jar for name in ("sqlite", "postgresql") for jar in read_lock(folder / f"{name}.jars")]
    drivers = ",".join(map(str, resolve_jars(locks, home=sluice_home())))
    props = {"table.format": "iceberg", "spark.jars": drivers, "spark.sql.shuffle.partitions": "2"}
    spark = start_session({**SMALL_SPARK, **props}, "lake", Access())
    try:
        yield spark
    finally:
        spark.stop()


class IcebergLake(LoadedTable):
    """A topic, and tasks that load it into Iceberg tables below a store."""

    connector = "lake"
    own_props: ClassVar = {"table.format": "iceberg", **JSON}

    def divided_by(self, field: str) -> dict[str, str]:
        """The properties of a table that is divided by a field."""
        return {"iceberg.tables.default-partition-by": field}

    @property
    def place(self) -> str:
        """Where previews say that the table is."""
        return f"topics.{self.topic}"

    def table(self, name: str | None = None) -> StaticTable:
        """The table as pyiceberg has it."""
        return StaticTable.from_metadata(self.path(name).as_uri())

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows that pyiceberg sees."""
        found: list[dict[str, Any]] = self.table(table).scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])

    def files(self) -> list[str]:
        """The names of the files of the table."""
        if not self.path().exists():
            return []
        return [Path(item.file.file_path).name for item in self.table().scan().plan_files()]

    def files_there(self) -> set[str]:
        """The names of the data files that are there, whether the table has them or not."""
        return {path.name for path in self.path().rglob("*.parquet")}

    def statistics(self) -> list[Any]:
        """What the table knows of the columns of each file."""
        files = [item.file for item in self.table().scan().plan_files()]
        kinds = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
        return sorted((file.record_count, [repr(dict(getattr(file, kind))) for kind in kinds]) for file in files)

    def offsets(self, connector: str = "lake") -> dict[str, Any]:
        """The offsets in the summary of the newest snapshot."""
        snapshot = self.table().current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        found: dict[str, Any] = json.loads(snapshot.summary.additional_properties[f"sluice.offsets.{connector}"])
        return found

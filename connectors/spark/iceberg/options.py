"""The options of Apache Iceberg tables, under the names of Iceberg's own sink connector where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from connect.config import HIDDEN, HIGH, LOW, MEDIUM, Config, Password, non_empty, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connectors.spark.iceberg.partitions import PartitionBy, parse_partition_by

__all__ = ["IcebergCatalogOptions", "IcebergOptions"]

_GROUP: Final = "Iceberg"
_CATALOG: Final = "iceberg.catalog."
_METASTORE: Final = "iceberg.hadoop.hive.metastore.uris"
_OBJECT_STORES: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss")
_NEW_TABLES: Final[Mapping[str, str]] = {
    "format-version": "2",
    # Each load creates a version of the metadata; without these settings, all versions would be kept forever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class IcebergCatalogOptions(Config):
    """The options that say where an Iceberg catalog is and how to reach it."""

    iceberg_catalog: str = option(
        default="iceberg",
        importance=MEDIUM,
        validator=non_empty,
        group=_GROUP,
        doc=(
            "The name of the catalog; a SQL catalog stores its tables under it. Every iceberg.catalog.* key "
            "becomes a property of the catalog. Without any such key, tables are in a Hadoop catalog in the "
            "store."
        ),
    )
    iceberg_catalog_type: str | None = option(
        default=None,
        importance=HIGH,
        group=_GROUP,
        doc="The type of the catalog: rest, hive, jdbc (SQL), hadoop, glue or nessie.",
    )
    iceberg_catalog_uri: str | None = option(
        default=None,
        importance=HIGH,
        group=_GROUP,
        doc="The address of the catalog: https://..., thrift://... or jdbc:...",
    )
    iceberg_catalog_warehouse: str | None = option(
        default=None,
        importance=HIGH,
        group=_GROUP,
        doc=("The location (or, in a REST catalog, the name) of the catalog's warehouse. The default is store.url."),
    )
    iceberg_catalog_credential: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_GROUP,
        doc=("The client ID and secret for a REST catalog, as id:secret."),
    )
    iceberg_catalog_token: Password | None = option(
        default=None, importance=MEDIUM, group=_GROUP, doc="The bearer token for a REST catalog."
    )
    iceberg_catalog_jdbc_password: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_GROUP,
        doc="The password for a SQL catalog (user: iceberg.catalog.jdbc.user).",
    )
    iceberg_catalog_s3_secret_access_key: Password | None = option(
        name="iceberg.catalog.s3.secret-access-key",
        default=None,
        importance=MEDIUM,
        group=_GROUP,
        doc="The secret key for writing the catalog's tables on S3 (with iceberg.catalog.s3.access-key-id).",
    )

    def iceberg_catalog_properties(self, store: str | None) -> dict[str, str]:
        """Return the properties of the catalog: those configured, and the URL of the store, if there is one, as its
        warehouse.
        """
        given = {key: value for key, value in self.originals_with_prefix(_CATALOG).items() if value is not None}
        defaults = {} if store is None else {"warehouse": store}
        if "catalog-impl" not in given:
            defaults["type"] = "hadoop"
        return defaults | given


class IcebergOptions(IcebergCatalogOptions):
    """The options for ``table.format=iceberg``."""

    iceberg_tables: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_GROUP,
        doc="A single table for all topics, with its namespace (db.events). It replaces table.name.format.",
    )
    iceberg_tables_auto_create_enabled: bool = option(
        name="iceberg.tables.auto-create-enabled",
        default=True,
        importance=MEDIUM,
        group=_GROUP,
        doc="Whether to create missing tables. Keys iceberg.tables.auto-create-props.* set their properties.",
    )
    iceberg_tables_evolve_schema_enabled: bool = option(
        name="iceberg.tables.evolve-schema-enabled",
        default=True,
        importance=MEDIUM,
        group=_GROUP,
        doc=(
            "Whether to add missing columns to tables, and to widen the types of columns, as records need it. If not, "
            "fields without a column are left out, as with schema.compatibility=FORWARD."
        ),
    )
    iceberg_tables_default_partition_by: str = option(
        name="iceberg.tables.default-partition-by",
        default="",
        importance=MEDIUM,
        group=_GROUP,
        doc=(
            "How to partition the tables that are created: by fields, or by year, month, day, hour, bucket "
            "and truncate of them, as in day(at), bucket(16, id). For a single table, use "
            "iceberg.table.<table>.partition-by."
        ),
    )
    iceberg_tables_default_commit_branch: str = option(
        name="iceberg.tables.default-commit-branch",
        default="main",
        importance=LOW,
        validator=non_empty,
        group=_GROUP,
        doc="The branch to commit loads to. For a single table, use iceberg.table.<table>.commit-branch.",
    )

    def iceberg_mistakes(self, store: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about these options; ``store`` is the URL of the store."""
        if not self._is_iceberg():
            # Upserts into other formats also take the keys of rows from Iceberg's keys.
            ours = (key for key in self.originals if key.startswith("iceberg.") and not key.endswith("id-columns"))
            given = sorted(ours)
            if given:
                reason = "This key applies only to Iceberg tables: set table.format=iceberg, or remove the key."
                yield ConfigError(given[0], HIDDEN, reason)
            return
        if len(self.iceberg_tables) > 1:
            reason = (
                "The Spark sink writes either all topics to one table, or each topic to its own "
                "(table.name.format): name one table only."
            )
            yield ConfigError("iceberg.tables", ",".join(self.iceberg_tables), reason)
        catalog = self.originals_with_prefix(_CATALOG)
        if catalog and not (self.iceberg_catalog_type or catalog.get("catalog-impl")):
            reason = (
                "The iceberg.catalog.* keys need the type of the catalog: set it to rest, hive, jdbc, "
                "hadoop, glue or nessie."
            )
            yield ConfigError("iceberg.catalog.type", None, reason)
        if self.iceberg_catalog_type == "hive" and not (self.iceberg_catalog_uri or self.originals.get(_METASTORE)):
            reason = "A Hive catalog needs the address of its metastore, such as thrift://HOST:9083."
            yield ConfigError("iceberg.catalog.uri", None, reason)
        place = (self.iceberg_catalog_warehouse or store).partition("://")[0]
        if self.iceberg_catalog_type in (None, "hadoop") and place in _OBJECT_STORES and "lock-impl" not in catalog:
            yield ConfigRuleError(
                "A Hadoop catalog on an object store loses commits when two writers meet: name a catalog that does not "
                "(iceberg.catalog.type rest, jdbc, hive or glue), or a lock (iceberg.catalog.lock-impl).",
                "iceberg.catalog.type",
            )
        for key, text in self._partition_keys().items():
            try:
                parse_partition_by(text)
            except ValueError as error:
                yield ConfigError(key, text, str(error))

    @property
    def keeps_columns(self) -> bool:
        """Whether the columns of existing tables never change."""
        return self._is_iceberg() and not self.iceberg_tables_evolve_schema_enabled

    def iceberg_table_properties(self) -> dict[str, str]:
        """Return the properties of new tables."""
        given = self.originals_with_prefix("iceberg.tables.auto-create-props.")
        return {**_NEW_TABLES, **{key: value for key, value in given.items() if value is not None}}

    def iceberg_partitions(self, table: str, otherwise: tuple[PartitionBy, ...] = ()) -> tuple[PartitionBy, ...]:
        """Return how to partition a new table: by its own key, by the default, or as the partitioner implies."""
        own = self.originals.get(f"iceberg.table.{table}.partition-by")
        given = parse_partition_by(self.iceberg_tables_default_partition_by if own is None else own)
        return given or otherwise

    def iceberg_branch(self, table: str) -> str:
        """Return the branch of a table to which loads are committed."""
        return self.originals.get(f"iceberg.table.{table}.commit-branch") or self.iceberg_tables_default_commit_branch

    def _is_iceberg(self) -> bool:
        return self.originals.get("table.format") == "iceberg"

    def _partition_keys(self) -> dict[str, str]:
        own = {key: value for key, value in self.originals.items() if key.endswith(".partition-by") and value}
        found = {key: value for key, value in own.items() if key.startswith("iceberg.table.")}
        return found | {"iceberg.tables.default-partition-by": self.iceberg_tables_default_partition_by}

"""Iceberg's catalogs and tables, reached through the Java of the Spark session."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.data import Schema
from connect.errors import ConnectError, SchemaError
from connect.kits.objects.location import Location
from connect.kits.schema_json import schema_to_json
from connectors.spark.arrow_types import table_type
from connectors.spark.errors import root_cause
from connectors.spark.iceberg.commit import swap
from connectors.spark.iceberg.metadata import SCHEMA_PROPERTY, TableMetadata
from connectors.spark.iceberg.partitions import PartitionBy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CatalogConfig", "Change", "IcebergCatalog", "IcebergTable", "TableName", "java_instance", "load_driver"]

_DRIVERS: Final = {"jdbc:sqlite:": "org.sqlite.JDBC", "jdbc:postgresql:": "org.postgresql.Driver"}
# With the defaults of Iceberg and Hive, an unresponsive metastore, or one that grants no locks, blocks for many
# minutes.
_PATIENCE: Final[Mapping[str, str]] = {
    "iceberg.hive.lock-creation-timeout-ms": "30000",
    "iceberg.hive.lock-timeout-ms": "60000",
    "hive.metastore.client.socket.timeout": "60s",
}


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """The name of a table in a catalog."""

    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


class CatalogConfig(Protocol):
    """The part of a configuration that describes the catalog."""

    @property
    def iceberg_catalog(self) -> str:
        """The name of the catalog."""

    @property
    def has_store(self) -> bool:
        """Whether a store is configured, which is the catalog's warehouse by default."""

    @property
    def location(self) -> Location:
        """The location of the store."""

    def iceberg_catalog_properties(self, store: str | None) -> dict[str, str]:
        """Return the properties of the catalog, whose warehouse is the store by default."""

    def originals_with_prefix(self, prefix: str) -> dict[str, str | None]:
        """Return the properties whose keys begin with a prefix, with the prefix removed."""


class IcebergCatalog:
    """A catalog of Iceberg tables."""

    def __init__(self, spark: SparkSession, config: CatalogConfig) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._catalog = self._made(config)

    def names(self, namespace: Sequence[str]) -> list[str]:
        """Return the names of the tables in a namespace; none if the namespace does not exist."""
        try:
            found = self._catalog.listTables(self._namespace(namespace))
        except Exception as error:
            if _is(error, "NoSuchNamespaceException"):
                return []
            raise
        return sorted(item.name() for item in found)

    def table(self, name: TableName) -> IcebergTable | None:
        """Return the table of this name as it is now, if it exists."""
        try:
            loaded = self._catalog.loadTable(self._identifier(name))
        except Exception as error:
            if _is(error, "NoSuchTableException", "NoSuchNamespaceException"):
                return None
            raise
        return IcebergTable(self._spark, name, loaded)

    def new_table(
        self, name: TableName, schema: Schema, partitions: Sequence[PartitionBy], properties: Mapping[str, str]
    ) -> Change:
        """Return a table that exists for others once the change is committed."""
        for field in partitions:
            field.check(schema)
        self._make_namespace(name.namespace)
        columns = _java_schema(self._java, schema)
        builder = self._java.org.apache.iceberg.PartitionSpec.builderFor(columns)
        try:
            for field in partitions:
                field.add_to(builder)
            spec = builder.build()
        except Exception as error:
            raise SchemaError(f"Table {name} cannot be partitioned as configured: {root_cause(error)}") from error
        made = self._catalog.buildTable(self._identifier(name), columns).withPartitionSpec(spec)
        declared = {SCHEMA_PROPERTY: _declaration(schema)}
        transaction = made.withProperties({**properties, **declared}).createTransaction()
        return Change(self._spark, name, transaction, is_new=True)

    def _made(self, config: CatalogConfig) -> Any:
        properties = config.iceberg_catalog_properties(config.location.uri if config.has_store else None)
        hadoop = self._spark._jsparkSession.sessionState().newHadoopConf()
        for key, most in _PATIENCE.items():
            hadoop.setIfUnset(key, most)
        for key, value in config.originals_with_prefix("iceberg.hadoop.").items():
            hadoop.set(key, value)
        try:
            load_driver(self._java, properties.get("uri", ""))
            build = self._java.org.apache.iceberg.CatalogUtil.buildIcebergCatalog
            return build(config.iceberg_catalog, properties, hadoop)
        except Exception as error:
            raise ConnectError(
                f"The Iceberg catalog {config.iceberg_catalog} cannot be reached ({root_cause(error)}): check "
                "the iceberg.catalog.* keys, and that the catalog is running."
            ) from error

    def _make_namespace(self, namespace: Sequence[str]) -> None:
        for depth in range(1, len(namespace) + 1):
            place = self._namespace(namespace[:depth])
            try:
                if not self._catalog.namespaceExists(place):
                    self._catalog.createNamespace(place)
            except Exception as error:
                if not _is(error, "AlreadyExistsException"):
                    raise

    def _namespace(self, namespace: Sequence[str]) -> Any:
        parts = self._gateway.new_array(self._java.java.lang.String, len(namespace))
        for place, part in enumerate(namespace):
            parts[place] = part
        return self._java.org.apache.iceberg.catalog.Namespace.of(parts)

    def _identifier(self, name: TableName) -> Any:
        identifiers = self._java.org.apache.iceberg.catalog.TableIdentifier
        return identifiers.of(self._namespace(name.namespace), name.name)


class IcebergTable:
    """A table as it was when it was loaded from its catalog."""

    def __init__(self, spark: SparkSession, name: TableName, table: Any) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self.name = name
        self.java_table = table
        base = table.operations().current()
        self.metadata = TableMetadata.from_json(_json_of(self._java, base), str(name))

    def change(self) -> Change:
        """Begin a change to the table."""
        transactions = self._java.org.apache.iceberg.Transactions
        return Change(self._spark, self.name, transactions.newTransaction(str(self.name), self.java_table.operations()))


class Change:
    """An uncommitted change to a table, which nobody sees: its columns, its files, its properties.

    Spark writes its files against a table that may not even exist yet.
    """

    def __init__(self, spark: SparkSession, name: TableName, transaction: Any, *, is_new: bool = False) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self._transaction = transaction
        self.name = name
        self.is_new = is_new

    @property
    def base(self) -> TableMetadata:
        """The table before the change."""
        return TableMetadata.from_json(_json_of(self._java, self._transaction.startMetadata()), str(self.name))

    @property
    def base_properties(self) -> Mapping[str, str]:
        """The properties of the table before the change; empty for a new table."""
        return {} if self.is_new else self.base.properties

    @property
    def metadata(self) -> TableMetadata:
        """The table after the change."""
        return TableMetadata.from_json(_json_of(self._java, self._transaction.currentMetadata()), str(self.name))

    def widen(self, schema: Schema, before: Schema) -> None:
        """Add missing columns, and widen the types of others; all that are as ``before`` stay as they are.

        Some have a type that Connect does not tell from another one, such as a UUID from a text.
        """
        changed = [field for field in schema.fields if before.field(field.name) != field]
        try:
            update = self._transaction.updateSchema()
            update.unionByNameWith(_java_schema(self._java, Schema.struct(changed)))
            update.commit()
        except Exception as error:
            raise SchemaError(
                f"Table {self.name} cannot take the columns of the records: {root_cause(error)}. Iceberg only "
                "adds columns, and widens int to long, float to double, and decimals to more digits. Make the "
                "records alike, for example with the transformation Cast, or alter the table."
            ) from error
        self.set_properties({SCHEMA_PROPERTY: _declaration(schema)})

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table."""
        update = self._transaction.updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        update.commit()

    def write(self, frame: DataFrame, options: Mapping[str, str]) -> list[Any]:
        """Let Spark write rows into files of the table, which belong to it once they are appended."""
        coordinator = java_instance(self._spark, "org.apache.iceberg.spark.FileRewriteCoordinator")
        with self._known_to_spark() as (group, table):
            try:
                # The staged files are meant for table rewrites, but are appended here.
                frame.write.format("iceberg").options(**options).mode("append").save(group)
                return list(coordinator.fetchNewFiles(table, group))
            finally:
                coordinator.clearRewrite(table, group)

    @property
    def data_location(self) -> str:
        """The folder for new files."""
        provider = self._transaction.table().locationProvider()
        return str(provider.newDataLocation("file")).removesuffix("/file")

    def data_files(self, places: Sequence[str]) -> list[Any]:
        """Parquet files that others have written for the table, with the metrics from their footers."""
        iceberg, table = self._java.org.apache.iceberg, self._transaction.table()
        metrics = iceberg.MetricsConfig.forTable(table)
        found = []
        for place in places:
            file = table.io().newInputFile(place)
            counted = iceberg.parquet.ParquetUtil.fileMetrics(file, metrics)
            builder = iceberg.DataFiles.builder(table.spec()).withInputFile(file)
            found.append(builder.withFormat("PARQUET").withMetrics(counted).build())
        return found

    def discard_places(self, places: Sequence[str]) -> None:
        """Delete files that were written in vain, by location."""
        self._java.org.apache.iceberg.CatalogUtil.deleteFiles(self._transaction.table().io(), places, "data", True)

    def planned(self, branch: str, bounds: Mapping[str, tuple[Any, Any]]) -> list[Any]:
        """Return the scan tasks for the files of a branch, except files that have no row within the bounds."""
        metadata = self.metadata
        if metadata.head(branch) is None:
            return []
        # Tables of transactions do not plan scans themselves.
        table = self._java.org.apache.iceberg.BaseTable(self._transaction.table().operations(), str(self.name))
        expressions = self._java.org.apache.iceberg.expressions.Expressions
        # Files are selected by their statistics alone: all rows of the selected files are read.
        scan = table.newScan().ignoreResiduals()
        if metadata.has_branch(branch):
            scan = scan.useRef(branch)
        for name, (least, most) in bounds.items():
            scan = scan.filter(expressions.greaterThanOrEqual(name, least))
            scan = scan.filter(expressions.lessThanOrEqual(name, most))
        files = scan.planFiles()
        try:
            return list(self._java.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(files))
        finally:
            files.close()

    @contextmanager
    def rows(self, tasks: Sequence[Any]) -> Iterator[DataFrame]:
        """The rows of planned files in the columns that the table will have; they can be read within the ``with``
        block.
        """
        manager = self._java.org.apache.iceberg.spark.ScanTaskSetManager.get()
        with self._known_to_spark() as (group, table):
            chosen = self._java.java.util.ArrayList()
            for task in tasks:
                chosen.add(task)
            manager.stageTasks(table, group, chosen)
            try:
                yield self._spark.read.format("iceberg").load(group)
            finally:
                manager.removeTasks(table, group)

    @contextmanager
    def _known_to_spark(self) -> Iterator[tuple[str, Any]]:
        """A name under which Spark finds the changed table, which is not in any catalog yet."""
        table, group = self._transaction.table(), f"sluice-{uuid.uuid4().hex}"
        cache = java_instance(self._spark, "org.apache.iceberg.spark.SparkTableCache")
        # Iceberg uses the session of the current thread, and jobs run in their own threads.
        self._java.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._spark._jsparkSession)
        cache.add(group, table)
        try:
            yield group, table
        finally:
            cache.remove(group)

    def discard(self, files: Sequence[Any]) -> None:
        """Delete files that were written in vain; what cannot be deleted is left to table maintenance."""
        self.discard_places([str(file.location()) for file in files])

    def add_snapshot(
        self, files: Sequence[Any], replaced: Sequence[Any], branch: str, summary: Mapping[str, str]
    ) -> None:
        """Add a snapshot to a branch, with these files, in place of others, and with these entries in its summary."""
        if replaced:
            update = self._transaction.newOverwrite()
            for file in replaced:
                update.deleteFile(file)
        else:
            update = self._transaction.newAppend()
        add = update.addFile if replaced else update.appendFile
        for file in files:
            add(file)
        for key, value in summary.items():
            update.set(key, value)
        update.toBranch(branch).commit()

    def commit(self) -> None:
        """Make the change the table's newest version, in one step.

        Raises :class:`~connectors.spark.iceberg.commit.ConflictError`, and changes nothing, if the table has a newer
        version than the one this change began with.
        """
        transaction = self._transaction
        base = None if self.is_new else transaction.startMetadata()
        swap(self._java, transaction.underlyingOps(), base, transaction.currentMetadata())


def load_driver(java: Any, uri: str) -> None:
    """Load the driver of a SQL catalog: Java finds drivers by itself only in the jars it was started with."""
    for prefix, driver in _DRIVERS.items():
        if uri.startswith(prefix):
            loader = java.java.lang.Thread.currentThread().getContextClassLoader()
            java.java.lang.Class.forName(driver, True, loader)


def _java_schema(java: Any, schema: Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - pyspark takes half a second to import

    columns = from_arrow_schema(table_type(schema).columns)
    struct = java.org.apache.spark.sql.types.DataType.fromJson(columns.json())
    return java.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct)


def _declaration(schema: Schema) -> str:
    return json.dumps(schema_to_json(schema), separators=(",", ":"))


def java_instance(spark: SparkSession, name: str) -> Any:
    """Return the singleton of a class, as returned by its static ``get()``.

    py4j calls whichever method of that name Java lists first, which may be another one that is not static.
    """
    java: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    get = java.java.lang.Class.forName(name, True, loader).getMethod("get", gateway.new_array(java.java.lang.Class, 0))
    return get.invoke(None, gateway.new_array(java.java.lang.Object, 0))


def _json_of(java: Any, metadata: Any) -> str:
    return str(java.org.apache.iceberg.TableMetadataParser.toJson(metadata))


def _is(error: Exception, *names: str) -> bool:
    """Return whether an error is one of these Java exceptions."""
    thrown: Any = getattr(error, "java_exception", None)
    return thrown is not None and str(thrown.getClass().getSimpleName()) in names

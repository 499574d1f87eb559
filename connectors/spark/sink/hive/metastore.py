"""A Hive metastore, through the client that comes with Spark: a server, or one embedded in Spark's own Java."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connect.internals.chain.stack_trace import error_text
from connect.internals.jvm.home import sluice_home
from connectors.spark.errors import root_cause
from connectors.spark.hive_table import HiveColumn, HiveTable, changed_columns, partition_values
from connectors.spark.sink.options.hive import HiveOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Metastore"]

_HADOOP: Final = "org.apache.hadoop.hive"
_AT_ONCE: Final = 500
_SERDES: Final[Mapping[str, tuple[str, str, str]]] = {
    "parquet": (
        f"{_HADOOP}.ql.io.parquet.serde.ParquetHiveSerDe",
        f"{_HADOOP}.ql.io.parquet.MapredParquetInputFormat",
        f"{_HADOOP}.ql.io.parquet.MapredParquetOutputFormat",
    ),
    "orc": (
        f"{_HADOOP}.ql.io.orc.OrcSerde",
        f"{_HADOOP}.ql.io.orc.OrcInputFormat",
        f"{_HADOOP}.ql.io.orc.OrcOutputFormat",
    ),
}


class Metastore:
    """The tables of one database of a metastore. Whatever exists already stays, so every operation can be repeated."""

    def __init__(self, spark: SparkSession, options: HiveOptions, connector: str) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._database = options.hive_database
        self._where = options.hive_metastore_uris or options.hive_conf_dir or "Spark's own Java"
        try:
            self._client = self._made(context, options, connector)
            self._make_database()
        except Exception as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def register(self, name: str, table: HiveTable, source: str, location: str, folders: Iterable[str]) -> None:
        """Create the table or add the columns it lacks, and add these folders as partitions.

        ``source`` is Spark's name for the format, ``location`` Hadoop's name for the table's folder.
        """
        try:
            self._register(name, table, source, location, list(folders))
        except ConnectError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _register(self, name: str, table: HiveTable, source: str, location: str, folders: Sequence[str]) -> None:
        if not self._client.tableExists(self._database, name):
            self._client.createTable(self._new_table(name, table, source, location))
        found = self._client.getTable(self._database, name)
        self._check(name, found, table, location)
        columns = changed_columns(_columns(found.getSd().getCols()), table.columns)
        if columns is not None:
            self._change(name, found, columns)
        for start in range(0, len(folders), _AT_ONCE):
            self._add(found, location, folders[start : start + _AT_ONCE])

    def _change(self, name: str, found: Any, columns: Sequence[HiveColumn]) -> None:
        """Change the columns of a table and its partitions."""
        there = _columns(found.getSd().getCols())
        try:
            self._alter(name, found, columns)
        except Exception as error:
            first = next((place for place, (old, new) in enumerate(zip(there, columns, strict=False)) if old != new), 0)
            if "incompatible" not in error_text(error) or not first:
                raise
            # A metastore refuses to add a field to a struct, but allows columns to be dropped and added.
            self._alter(name, found, columns[:first])
            self._alter(name, found, columns)

    def _alter(self, name: str, found: Any, columns: Sequence[HiveColumn]) -> None:
        found.getSd().setCols(self._fields(columns))
        cascade = self._jvm.java.util.HashMap()
        # Existing partitions get the columns, too: Hive reads each partition with its own columns.
        cascade.put("CASCADE", "true")
        environment = self._api.EnvironmentContext(cascade)
        self._client.alter_table_with_environmentContext(self._database, name, found, environment)

    def _check(self, name: str, found: Any, table: HiveTable, location: str) -> None:
        there = found.getSd().getLocation()
        if _path(there) != _path(location):
            raise ConnectError(
                f"Hive table {self._database}.{name} is in {there}, but the connector's table is in "
                f"{location}: choose another hive.database or hive.table.name, or drop the table in Hive."
            )
        keys = [column.name for column in _columns(found.getPartitionKeys())]
        if keys != [column.name for column in table.partitions]:
            raise ConnectError(
                f"Hive table {self._database}.{name} has the partition columns {', '.join(keys) or 'none'}, "
                "which do not match the connector's folders: drop the table in Hive, and restart the task."
            )

    def _add(self, found: Any, location: str, folders: Sequence[str]) -> None:
        partitions = self._jvm.java.util.ArrayList()
        for folder in folders:
            descriptor = found.getSd().deepCopy()
            descriptor.setLocation(f"{location}/{folder}")
            partition = self._api.Partition()
            partition.setDbName(self._database)
            partition.setTableName(found.getTableName())
            partition.setValues(self._list(partition_values(folder)))
            partition.setSd(descriptor)
            partition.setParameters(self._jvm.java.util.HashMap())
            partitions.add(partition)
        self._client.add_partitions(partitions, True, False)

    # -- Java ----------------------------------------------------------------------------------------------------

    @property
    def _api(self) -> Any:
        return self._jvm.org.apache.hadoop.hive.metastore.api

    def _made(self, context: Any, options: HiveOptions, connector: str) -> Any:
        conf = self._jvm.org.apache.hadoop.hive.conf.HiveConf()
        conf.addResource(context._jsc.hadoopConfiguration())
        if options.hive_conf_dir:
            site = Path(options.hive_conf_dir) / "hive-site.xml"
            conf.addResource(self._jvm.org.apache.hadoop.fs.Path(f"file://{site.absolute()}"))
        if options.hive_metastore_uris:
            conf.set("hive.metastore.uris", options.hive_metastore_uris)
        elif not options.hive_conf_dir:
            self._set_derby(conf, connector)
        return self._jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)

    @staticmethod
    def _set_derby(conf: Any, connector: str) -> None:
        home = sluice_home() / "hive" / connector.replace("/", "%2F")
        home.mkdir(parents=True, exist_ok=True)
        for key, value in {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.disallow.incompatible.col.type.changes": "false",
            "hive.metastore.warehouse.dir": f"file://{home / 'warehouse'}",
        }.items():
            conf.set(key, value)

    def _make_database(self) -> None:
        if self._database not in self._client.getAllDatabases():
            parameters = self._jvm.java.util.HashMap()
            self._client.createDatabase(self._api.Database(self._database, "", None, parameters))

    def _new_table(self, name: str, table: HiveTable, source: str, location: str) -> Any:
        serde, reader, writer = _SERDES[source]
        information = self._api.SerDeInfo()
        information.setSerializationLib(serde)
        information.setParameters(self._map({"serialization.format": "1"}))
        descriptor = self._api.StorageDescriptor()
        descriptor.setCols(self._fields(table.columns))
        descriptor.setLocation(location)
        descriptor.setInputFormat(reader)
        descriptor.setOutputFormat(writer)
        descriptor.setSerdeInfo(information)
        descriptor.setNumBuckets(-1)
        for empty in (descriptor.setBucketCols, descriptor.setSortCols):
            empty(self._list([]))
        descriptor.setParameters(self._map({}))
        made = self._api.Table()
        made.setDbName(self._database)
        made.setTableName(name)
        made.setOwner("sluice")
        made.setSd(descriptor)
        made.setPartitionKeys(self._fields(table.partitions))
        made.setTableType("EXTERNAL_TABLE")
        made.setParameters(self._map({"EXTERNAL": "TRUE"}))
        return made

    def _fields(self, columns: Iterable[HiveColumn]) -> Any:
        return self._list([self._api.FieldSchema(column.name, column.type, None) for column in columns])

    def _list(self, items: Iterable[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _map(self, items: Mapping[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    def _failed(self, error: Exception) -> ConnectError:
        return ConnectError(
            f"The Hive metastore ({self._where}) cannot be reached, or refuses: {root_cause(error)}. The records that "
            "were loaded are committed; their table is registered when the task starts again."
        )


def _columns(fields: Any) -> list[HiveColumn]:
    return [HiveColumn(field.getName(), field.getType()) for field in fields]


def _path(location: str) -> str:
    """Return a location without the differences in spelling of ``file:/lake``, ``file:///lake`` and ``/lake/``."""
    scheme, colon, rest = location.partition(":")
    return (f"{scheme}:" if colon and scheme != "file" else "") + "/" + (rest if colon else location).strip("/")

"""Configurations of other sinks, as people have them, read as the Spark sink's."""

from __future__ import annotations

from typing import Any, Final

import pytest

from connect.config import ConfigValue
from connect.config.errors import InvalidConfigError
from connect.errors import ConfigError
from connect.internals.plugins import PluginKind, PluginRegistry
from connectors.spark.format_session import format_session
from connectors.spark.sink.config import SparkSinkConfig

pytest.importorskip("pyspark")

S3_TUTORIAL: Final = {
    "name": "s3-sink",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "1",
    "topics": "s3_topic",
    "s3.region": "eu-central-1",
    "s3.bucket.name": "confluent-kafka-connect-s3-testing",
    "s3.part.size": "5242880",
    "flush.size": "3",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "schema.compatibility": "NONE",
    "schema.generator.class": "io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator",
}
S3_HOURLY: Final = {
    **S3_TUTORIAL,
    "connector.class": "S3SinkConnector",
    "store.url": "http://minio:9000",
    "s3.path.style.access.enabled": "true",
    "aws.access.key.id": "minio",
    "aws.secret.access.key": "minio123",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "parquet.codec": "gzip",
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "partition.duration.ms": "3600000",
    "timestamp.extractor": "RecordField",
    "timestamp.field": "created_at",
    "locale": "en-US",
    "timezone": "UTC",
    "flush.size": "100000",
    "rotate.interval.ms": "600000",
    "rotate.schedule.interval.ms": "3600000",
    "behavior.on.null.values": "ignore",
    "s3.part.retries": "10",
    "schemas.cache.config": "1000",
    "errors.tolerance": "all",
}
HDFS: Final = {
    "name": "hdfs-sink",
    "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
    "tasks.max": "1",
    "topics": "test_hdfs",
    "hdfs.url": "hdfs://localhost:9000",
    "flush.size": "3",
    "topics.dir": "/topics",
    "logs.dir": "/wal",
}
HDFS3_HIVE: Final = {
    "name": "hdfs3-parquet",
    "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
    "topics": "parquet_field_hdfs",
    "store.url": "hdfs://namenode:9000",
    "flush.size": "100000",
    "format.class": "io.confluent.connect.hdfs3.parquet.ParquetFormat",
    "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition.field.name": "f1",
    "hive.integration": "true",
    "hive.metastore.uris": "thrift://hive:9083",
    "hive.database": "lake",
    "schema.compatibility": "BACKWARD",
    "confluent.topic.bootstrap.servers": "localhost:9092",
    "confluent.topic.replication.factor": "1",
}
ICEBERG_REST: Final = {
    "name": "events-sink",
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "events",
    "iceberg.tables": "default.events",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "https://localhost",
    "iceberg.catalog.credential": "id:secret",
    "iceberg.catalog.warehouse": "lake",
    "iceberg.control.topic": "control-events",
}
TABULAR: Final = {
    "name": "events-sink",
    "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
    "topics": "events",
    "iceberg.tables": "default.events",
    "iceberg.tables.auto-create-enabled": "true",
    "iceberg.tables.evolve-schema-enabled": "true",
    "iceberg.tables.default-partition-by": "days(ts)",
    "iceberg.control.commit.interval-ms": "60000",
    "iceberg.catalog.type": "hive",
    "iceberg.catalog.uri": "thrift://hive:9083",
    "iceberg.catalog.warehouse": "s3a://bucket/warehouse",
    "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}


def parsed(config: dict[str, str], **changed: str) -> SparkSinkConfig:
    return SparkSinkConfig.parse({**config, **{key.replace("__", "."): value for key, value in changed.items()}})


def errors(config: dict[str, str]) -> dict[str, tuple[str, ...]]:
    values: tuple[ConfigValue, ...] = SparkSinkConfig.validate(config)
    return {value.name: value.errors for value in values if value.errors}


@pytest.mark.parametrize("config", [S3_TUTORIAL, S3_HOURLY, HDFS, HDFS3_HIVE, ICEBERG_REST, TABULAR])
def test_what_people_have_is_taken_as_it_is(config: dict[str, str]) -> None:
    assert errors(config) == {}
    once = parsed(config)
    assert SparkSinkConfig.parse(once.originals) == once, "a task reads what the connector has read"
    entry = PluginRegistry.discover().find(PluginKind.CONNECTOR, config["connector.class"])
    assert "connectors.spark.SparkSinkConnector" in (entry.class_name, entry.spark_class)


def test_the_sinks_of_other_clouds_name_the_store() -> None:
    google = {"connector.class": "io.confluent.connect.gcs.GcsSinkConnector", "gcs.bucket.name": "b", "topics": "t"}
    assert parsed(google).location.uri == "gs://b"
    azure = {
        "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
        "topics": "t",
        "azblob.account.name": "account",
        "azblob.account.key": "a2V5",
        "azblob.container.name": "container",
    }
    assert parsed(azure).location.uri == "abfss://container@account.dfs.core.windows.net"


def test_the_keys_of_the_s3_sink() -> None:
    tutorial, hourly = parsed(S3_TUTORIAL), parsed(S3_HOURLY)
    assert tutorial.location.uri == "s3a://confluent-kafka-connect-s3-testing"
    assert (tutorial.format, tutorial.partitioner, tutorial.flush_size) == ("AvroFormat", "DefaultPartitioner", 3)
    assert (hourly.endpoint, hourly.format, hourly.parquet_codec) == ("http://minio:9000", "ParquetFormat", "gzip")
    assert hourly.time_folders is not None
    assert hourly.time_folders.folder(0) == "year=1970/month=01/day=01/hour=00"
    (small,) = tutorial.warnings()
    assert small.startswith("flush.size=3 makes a load of every 3 records")
    retries, clock = hourly.warnings()
    assert retries.startswith("The key s3.part.retries has no effect")
    assert "rotate.record.interval.ms" in clock


def test_the_keys_of_the_hdfs_sinks() -> None:
    hdfs, hive = parsed(HDFS), parsed(HDFS3_HIVE)
    assert (hdfs.location.uri, hdfs.topics_dir, hdfs.format) == ("hdfs://localhost:9000", "topics", "AvroFormat")
    logs, small = hdfs.warnings()
    assert logs.startswith("The key logs.dir has no effect")
    assert small.startswith("flush.size=3 makes")
    assert (hive.format, hive.hive_integration, hive.hive_database) == ("ParquetFormat", True, "lake")
    assert list(hive.warnings()) == []


def test_the_keys_of_the_iceberg_sinks() -> None:
    rest, tabular = parsed(ICEBERG_REST), parsed(TABULAR)
    assert (rest.table_format, rest.iceberg_tables) == ("iceberg", ("default.events",))
    assert (rest.iceberg_tables_auto_create_enabled, rest.schema_compatibility) == (False, "FORWARD")
    assert (rest.longest_wait_ms, tabular.longest_wait_ms) == (300_000, 60_000)
    assert rest.iceberg_catalog_properties(None) == {
        "type": "rest",
        "uri": "https://localhost",
        "credential": "id:secret",
        "warehouse": "lake",
    }
    assert (tabular.iceberg_tables_auto_create_enabled, tabular.schema_compatibility) == (True, "NONE")
    assert [warning.partition(" has ")[0] for warning in rest.warnings()] == ["The key iceberg.control.topic"]
    started: Any = format_session({key: value for key, value in rest.originals.items() if value is not None})
    assert started == format_session({"table.format": "iceberg"})


@pytest.mark.parametrize(
    ("config", "key", "value", "remedy"),
    [
        (S3_TUTORIAL, "s3.ssea.name", "aws:kms", "default encryption"),
        (S3_TUTORIAL, "s3.object.tagging", "true", "Remove the key"),
        (S3_TUTORIAL, "s3.acl.canned", "public-read", "policy of the bucket"),
        (S3_TUTORIAL, "s3.credentials.provider.class", "com.example.Own", "aws.access.key.id"),
        (S3_TUTORIAL, "s3.schema.partition.affix.type", "PREFIX", "one table"),
        (S3_TUTORIAL, "format.class", "io.confluent.connect.s3.format.bytearray.ByteArrayFormat", "StringFormat"),
        (S3_TUTORIAL, "json.decimal.format", "BASE64", "are numbers"),
        (S3_TUTORIAL, "file.delim", "-", "plus sign"),
        (HDFS, "hdfs.authentication.kerberos", "true", "spark.kerberos.keytab"),
        (HDFS, "topic.capture.groups.regex", "(.*)", "one folder"),
        (ICEBERG_REST, "iceberg.tables.dynamic-enabled", "true", "table.name.format"),
        (ICEBERG_REST, "iceberg.table.default.events.route-regex", "a", "table.name.format"),
        (ICEBERG_REST, "iceberg.tables.cdc-field", "_cdc", "upsert.envelope"),
        (ICEBERG_REST, "iceberg.tables.write-props.write.format.default", "orc", "auto-create-props"),
    ],
)
def test_what_cannot_be_done_says_what_to_use(config: dict[str, str], key: str, value: str, remedy: str) -> None:
    (error,) = errors({**config, key: value})[key]
    assert remedy in error
    with pytest.raises((ConfigError, InvalidConfigError), match=key.replace(".", r"\.")):
        SparkSinkConfig.parse({**config, key: value})


def test_no_secret_is_told() -> None:
    secrets = {
        "s3.sse.customer.key": "c2VjcmV0",
        "s3.proxy.url": "https://u:c2VjcmV0@proxy",
        "s3.proxy.password": "c2VjcmV0",
    }
    found = errors({**S3_TUTORIAL, **secrets})
    assert found.keys() == secrets.keys()
    assert "c2VjcmV0" not in str(found)


def test_a_catalog_that_does_not_know_the_place_needs_one() -> None:
    hadoop = {**ICEBERG_REST, "iceberg.catalog.type": "hadoop"}
    assert "store.url" in errors(hadoop)
    assert "store.url" in errors({key: value for key, value in S3_TUTORIAL.items() if key != "s3.bucket.name"})


def test_its_own_class_is_not_translated() -> None:
    own = {"connector.class": "SparkSink", "store.url": "/lake", "hdfs.url": "hdfs://elsewhere"}
    assert parsed(own).format == "ParquetFormat"
    assert parsed(own).location.kind == "local"

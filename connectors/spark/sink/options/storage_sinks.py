"""The sinks that the Spark sink can replace: translates their configurations, and reports what it does not support.

A configuration is accepted as it is. A key that the Spark sink does not know is an error if it would change what is
stored, or who can read it, and a warning if it only tunes the other sink. A value that is the other sink's default is
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from connect.config import HIDDEN
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError

__all__ = ["as_spark_sink", "replacement_mistakes", "replacement_warnings"]

Props = Mapping[str, object]

_CLASS: Final = "connector.class"
_SMALL_LOAD: Final = 10_000
_ENCRYPTION: Final = "Files are encrypted as the bucket says: set its default encryption, and remove the key."
_TAGS: Final = "Objects have no tags; the offsets are in the names of files and in the ledger. Remove the key."
_PROXY: Final = "Set HTTPS_PROXY in the environment of the worker and of Spark's executors, and remove the key."
_KERBEROS: Final = (
    "Spark logs in to HDFS: have spark.kerberos.principal and spark.kerberos.keytab allowed and set "
    "(connector.spark.config.override.policy), or run the worker with a ticket. Remove the key."
)
_ROUTES: Final = (
    "The table of a record goes by its topic: route with a transformation that changes the topic, and name tables by "
    "table.name.format. Remove the key."
)
_CONTROL: Final = "there is no control topic: offsets are committed with the data"


_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "storage.class": UnsupportedKey(
        "The store goes by store.url or s3.bucket.name: remove the key.",
        (
            "io.confluent.connect.s3.storage.s3storage",
            "io.confluent.connect.hdfs.storage.hdfsstorage",
            "io.confluent.connect.hdfs3.storage.hdfs3storage",
        ),
    ),
    "directory.delim": UnsupportedKey("Folders are divided by a slash: remove the key.", ("/",)),
    "file.delim": UnsupportedKey("Names of files have a plus sign between their parts: remove the key.", ("+",)),
    "json.decimal.format": UnsupportedKey("Decimals in JSON files are numbers: remove the key.", ("numeric",)),
    "s3.object.tagging": UnsupportedKey(_TAGS, ("", "false")),
    "s3.object.tagging.key.value.pairs": UnsupportedKey(_TAGS),
    "s3.ssea.name": UnsupportedKey(_ENCRYPTION),
    "s3.sse.customer.key": UnsupportedKey(_ENCRYPTION),
    "s3.sse.kms.key.id": UnsupportedKey(_ENCRYPTION),
    "s3.acl.canned": UnsupportedKey("Who can read is for the policy of the bucket to say: remove the key."),
    "s3.credentials.provider.class": UnsupportedKey(
        "Keys are found where Amazon's clients look (environment, profile, the role of the machine), or given by "
        "aws.access.key.id and aws.secret.access.key. Remove the key.",
        (
            "com.amazonaws.auth.defaultawscredentialsproviderchain",
            "software.amazon.awssdk.auth.credentials.defaultcredentialsprovider",
        ),
    ),
    "s3.proxy.url": UnsupportedKey(_PROXY),
    "s3.proxy.user": UnsupportedKey(_PROXY),
    "s3.proxy.password": UnsupportedKey(_PROXY),
    "s3.schema.partition.affix.type": UnsupportedKey(
        "Folders are not named after schemas: records of all versions of a schema are in one table. Remove the key.",
        ("none",),
    ),
    "hdfs.authentication.kerberos": UnsupportedKey(_KERBEROS, ("", "false")),
    "connect.hdfs.principal": UnsupportedKey(_KERBEROS),
    "connect.hdfs.keytab": UnsupportedKey(_KERBEROS),
    "hdfs.namenode.principal": UnsupportedKey(_KERBEROS),
    "topic.capture.groups.regex": UnsupportedKey("topics.dir is one folder for all topics: remove the key."),
    "iceberg.tables.dynamic-enabled": UnsupportedKey(_ROUTES, ("", "false")),
    "iceberg.tables.route-field": UnsupportedKey(_ROUTES),
    "iceberg.tables.schema-case-insensitive": UnsupportedKey(
        "Names of columns count as they are written: field.name.adjustment.mode=hive makes all lower case.",
        ("", "false"),
    ),
    "iceberg.tables.cdc-field": UnsupportedKey(
        "Set write.mode=upsert, and upsert.envelope to debezium, or to flattened after Debezium's own transformation."
    ),
}
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "s3.wan.mode": UnsupportedKey("transfer acceleration is not used", ("false",)),
    "s3.compression.level": UnsupportedKey("the level is gzip's own", ("-1",)),
    "s3.part.retries": UnsupportedKey("requests are repeated as Amazon's clients do by themselves", ("3",)),
    "s3.retry.backoff.ms": UnsupportedKey("requests are repeated as Amazon's clients do by themselves", ("200",)),
    "retry.backoff.ms": UnsupportedKey("a load that fails is made again, after longer and longer waits", ("5000",)),
    "s3.http.send.expect.continue": UnsupportedKey("uploads are Spark's own", ("true",)),
    "s3.send.digest": UnsupportedKey("uploads are checked by their own checksums", ("false",)),
    "s3.elastic.buffer.enable": UnsupportedKey("parts of uploads wait on disk", ("false",)),
    "s3.elastic.buffer.init.capacity": UnsupportedKey("parts of uploads wait on disk", ("131072",)),
    "max.write.duration.ms": UnsupportedKey("a load is not part of a poll", ("9223372036854775807",)),
    "max.files.scan.limit": UnsupportedKey("names of files are free, by the ledger", ("100",)),
    "enable.conditional.writes": UnsupportedKey("each load is committed by a conditional write", ("true",)),
    "partitioner.max.open.files": UnsupportedKey("no file stays open between loads", ("-1",)),
    "rotate.file.on.partition.change": UnsupportedKey("a load writes one file for each folder", ("true", "false")),
    "schemas.cache.config": UnsupportedKey("schemas are kept as long as they are used", ("1000",)),
    "shutdown.timeout.ms": UnsupportedKey("task.shutdown.graceful.timeout.ms of the worker says it", ("3000",)),
    "enhanced.avro.schema.support": UnsupportedKey("the converter of the records decides", ("true", "false")),
    "connect.meta.data": UnsupportedKey("Avro files have the schema of the table", ("true", "false")),
    "allow.optional.map.keys": UnsupportedKey("keys of maps are never null", ("true", "false")),
    "report.null.values.to.dlq": UnsupportedKey("behavior.on.null.values and errors.tolerance say it", ("true",)),
    "tombstone.encoded.partition": UnsupportedKey("a record without a value is a row of nulls in its own folder"),
    "keys.format.class": UnsupportedKey("keys are a column of the table (store.kafka.keys)"),
    "headers.format.class": UnsupportedKey("headers are a column of the table (store.kafka.headers)"),
    "format.bytearray.extension": UnsupportedKey("there is no ByteArrayFormat", (".bin",)),
    "format.bytearray.separator": UnsupportedKey("there is no ByteArrayFormat"),
    "logs.dir": UnsupportedKey("the ledger is in the store, in _sluice", ("logs", "/logs")),
    "hadoop.home": UnsupportedKey("Spark brings its own Hadoop"),
    "hive.home": UnsupportedKey("Spark brings its own Hive"),
    "kerberos.ticket.renew.period.ms": UnsupportedKey("Spark renews its tickets", ("3600000",)),
    "iceberg.control.topic": UnsupportedKey(_CONTROL, ("control-iceberg",)),
    "iceberg.control.group-id-prefix": UnsupportedKey(_CONTROL, ("cg-control",)),
    "iceberg.control.group-id": UnsupportedKey(_CONTROL),
    "iceberg.control.commit.timeout-ms": UnsupportedKey(_CONTROL, ("30000",)),
    "iceberg.control.commit.threads": UnsupportedKey("Spark writes in parallel"),
    "iceberg.coordinator.transactional.prefix": UnsupportedKey(_CONTROL),
    "iceberg.connect.group-id": UnsupportedKey("the group is connect-NAME, or consumer.override.group.id"),
    "iceberg.tables.schema-force-optional": UnsupportedKey("columns that are added are optional", ("true", "false")),
}
_REFUSED_PREFIXES: Final[Mapping[str, str]] = {
    "iceberg.tables.write-props.": "Make it a property of the table (iceberg.tables.auto-create-props.* of a new one).",
}
_WITHOUT_EFFECT_PREFIXES: Final[Mapping[str, str]] = {"iceberg.kafka.": _CONTROL}


def as_spark_sink(props: Props) -> dict[str, object]:
    """Return a connector's properties translated to the Spark sink's, according to their class; its own are not
    changed.
    """
    found = dict(props)
    translate = _SINKS.get(_sink(props))
    if translate is not None:
        for key, value in translate(props).items():
            if found.get(key) is None:
                found[key] = value
    if _sink(props) in ("HdfsSink", "Hdfs3Sink") and (folder := found.get("topics.dir")):
        # These sinks start from the root of the file system, with or without a leading slash.
        found["topics.dir"] = str(folder).lstrip("/")
    return found


def replacement_mistakes(props: Mapping[str, str | None]) -> Iterator[ConfigError]:
    """Yield an error for each key of another sink that requests something the Spark sink cannot do."""
    for key, value, instead in given_keys(_REFUSED, props):
        yield ConfigError(key, HIDDEN if _is_secret(key) else value, instead)
    for key, given in props.items():
        for prefix, instead in _REFUSED_PREFIXES.items():
            if key.startswith(prefix):
                yield ConfigError(key, given, instead)
        if key.startswith("iceberg.table.") and key.endswith(".route-regex"):
            yield ConfigError(key, given, _ROUTES)


def replacement_warnings(props: Mapping[str, str | None]) -> Iterable[str]:
    """Yield what users should know when they bring the configuration of another sink."""
    yield from without_effect(_WITHOUT_EFFECT, props)
    for key in props:
        for prefix, instead in _WITHOUT_EFFECT_PREFIXES.items():
            if key.startswith(prefix):
                yield f"The key {key} has no effect: {instead}."
    if _sink(props) in _STORAGE_SINKS:
        yield from _rotation_warnings(props)


def _rotation_warnings(props: Mapping[str, str | None]) -> Iterator[str]:
    size = props.get("flush.size") or ""
    if size.isdecimal() and int(size) < _SMALL_LOAD:
        yield (
            f"flush.size={size} makes a load of every {size} records of a partition. A load takes about a second, "
            "however small it is: take 100000 or more, and rotate.interval.ms for how long records may wait."
        )
    by_records = "wallclock" not in (props.get("timestamp.extractor") or "Wallclock").lower()
    if by_records and props.get("rotate.interval.ms"):
        yield (
            "rotate.interval.ms counts the time that records wait, by the clock. For loads of one span of the records' "
            "own time set rotate.record.interval.ms as well."
        )


def _hdfs(props: Props) -> dict[str, object]:
    """Confluent's HDFS sinks: Avro by default, and an older key for the address."""
    url = props.get("hdfs.url")
    found: dict[str, object] = {"format.class": "AvroFormat"}
    return found if url is None else found | {"store.url": url}


def _iceberg(props: Props) -> dict[str, object]:
    """Iceberg's own sink: unless configured otherwise, tables must exist already and keep their columns."""
    found: dict[str, object] = {
        "table.format": "iceberg",
        "rotate.interval.ms": props.get("iceberg.control.commit.interval-ms") or "300000",
        "iceberg.tables.auto-create-enabled": "false",
    }
    if _text(props, "iceberg.tables.evolve-schema-enabled") != "true":
        # Fields without a column are left out, where the Spark sink by default would reject the records.
        found["schema.compatibility"] = "FORWARD"
    if _text(props, "iceberg.tables.upsert-mode-enabled") == "true":
        found["write.mode"] = "upsert"
    if (folder := props.get("iceberg.hadoop-conf-dir")) is not None:
        found["hadoop.conf.dir"] = folder
    return found


def _s3(_: Props) -> dict[str, object]:
    """Confluent's S3 sink, whose keys are the same as the Spark sink's."""
    return {}


def _gcs(props: Props) -> dict[str, object]:
    """Confluent's sink for Google Cloud Storage, whose bucket has a key of its own."""
    bucket = props.get("gcs.bucket.name")
    return {} if bucket is None else {"store.url": f"gs://{bucket}"}


def _azure(props: Props) -> dict[str, object]:
    """Confluent's sink for Azure, whose account and container have keys of their own."""
    account, container = props.get("azblob.account.name"), props.get("azblob.container.name")
    if account is None or container is None:
        return {}
    return {"store.url": f"abfss://{container}@{account}.dfs.core.windows.net"}


_SINKS: Final[Mapping[str, Callable[[Props], dict[str, object]]]] = {
    "S3Sink": _s3,
    "GcsSink": _gcs,
    "AzureBlobSink": _azure,
    "AzureBlobStorageSink": _azure,
    "HdfsSink": _hdfs,
    "Hdfs3Sink": _hdfs,
    "IcebergSink": _iceberg,
}
_STORAGE_SINKS: Final = ("S3Sink", "GcsSink", "AzureBlobSink", "AzureBlobStorageSink", "HdfsSink", "Hdfs3Sink")


def _sink(props: Props) -> str:
    """Return the simple name of the configured class, without its suffix."""
    return str(props.get(_CLASS) or "").rpartition(".")[2].removesuffix("Connector")


def _text(props: Props, key: str) -> str:
    return str(props.get(key) or "").strip().lower()


def _is_secret(key: str) -> bool:
    return key.startswith("s3.proxy.") or key.endswith("customer.key")

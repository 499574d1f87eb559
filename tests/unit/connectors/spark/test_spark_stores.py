"""What the keys of a store mean, and how Spark gets to know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.jvm.lock import read_lock
from connectors.spark.config import SparkSinkConfig
from connectors.spark.options.store import StoreOptions
from connectors.spark.stores.access import Access, store_access
from connectors.spark.stores.location import Location

KEYS = {"aws.access.key.id": "id", "aws.secret.access.key": "hush"}


def options(**props: str) -> StoreOptions:
    return StoreOptions.parse({key.replace("_", "."): value for key, value in props.items()})


@pytest.mark.parametrize(
    ("url", "location", "uri"),
    [
        ("/data/a b", Location("local", "/data/a b"), "file:///data/a%20b"),
        ("s3://lake/a/b/", Location("s3", "a/b", "lake"), "s3a://lake/a/b"),
        ("s3a://lake", Location("s3", "", "lake"), "s3a://lake"),
        ("S3N://lake/a%20b", Location("s3", "a b", "lake"), "s3a://lake/a b"),
        ("hdfs://nodes/lake", Location("hdfs", "lake", "nodes"), "hdfs://nodes/lake"),
        ("hdfs://host:8020/", Location("hdfs", "", "host:8020"), "hdfs://host:8020"),
    ],
)
def test_a_url_names_a_store(url: str, location: Location, uri: str) -> None:
    assert options(store_url=url).location == location
    assert location.uri == uri


def test_the_keys_of_the_s3_sink_name_a_store() -> None:
    bucket = options(**{"s3.bucket.name": "lake"})
    assert (bucket.location, bucket.endpoint) == (Location("s3", "", "lake"), None)
    minio = options(store_url="http://minio:9000", **{"s3.bucket.name": "lake"})
    assert (minio.location, minio.endpoint) == (Location("s3", "", "lake"), "http://minio:9000")
    both = options(store_url="s3://lake/a", **{"s3.bucket.name": "lake"})
    assert both.location == Location("s3", "a", "lake")


@pytest.mark.parametrize(
    ("props", "reason"),
    [
        ({}, "It names where the tables are to be"),
        ({"store.url": "gs://lake/a"}, "Google Cloud Storage is not supported"),
        ({"store.url": "abfss://c@a/x"}, "must not contain a user"),
        ({"store.url": "abfs://container/x"}, "Azure Data Lake Storage is not supported"),
        ({"store.url": "s3://id:hush@lake/a"}, "must not contain a user or a key"),
        ({"store.url": "s3:///a"}, "has no bucket"),
        ({"store.url": "s3://lake/a", "s3.bucket.name": "other"}, "is another bucket"),
        ({"store.url": "http://minio:9000"}, "needs s3.bucket.name"),
        ({"store.url": "ftp://host/a"}, "Use a path"),
        ({"store.url": "s3://lake", "aws.access.key.id": "id"}, "give both of them or neither"),
        ({"store.url": "s3://lake", "s3.endpoint": "minio:9000"}, "http"),
        ({"store.url": "s3://lake", "s3.part.size": "1"}, "5242880"),
    ],
)
def test_what_names_no_store_is_refused(props: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        SparkSinkConfig.parse(props)
    assert "hush" not in str(caught.value)


def test_a_folder_needs_nothing_of_spark_and_hdfs_its_configuration() -> None:
    assert store_access(options(store_url="/lake")) == Access()
    hdfs = options(store_url="hdfs://nodes/lake", hadoop_conf_dir="/etc/hadoop")
    assert store_access(hdfs) == Access(hadoop_conf_dir="/etc/hadoop")


def test_spark_reaches_s3_as_the_driver_does() -> None:
    keys = {"s3.endpoint": "http://minio:9000", "s3.region": "eu-central-1", **KEYS}
    access = store_access(options(store_url="s3://lake/a", **keys))
    expected = {
        "fs.s3a.endpoint": "http://minio:9000",
        "fs.s3a.endpoint.region": "eu-central-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.multipart.size": "26214400",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "hush",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    assert expected.items() <= access.settings.items()
    assert "hush" not in repr(access)
    amazon = store_access(options(store_url="s3://lake/a"))
    assert "fs.s3a.endpoint" not in amazon.settings
    assert amazon.settings["fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")


def test_the_jars_of_s3_are_pinned_and_there() -> None:
    access = store_access(options(store_url="s3://lake"))
    assert access.lock is not None
    jars = read_lock(access.lock)
    assert jars[0].coordinates == "org.apache.hadoop:hadoop-aws:3.4.2"
    assert all(isinstance(jar, Path) and jar.is_file() for jar in access.jars)

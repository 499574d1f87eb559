"""A URL names the place of a store."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.kits.objects.location import Location, parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.store import open_store

AZURE = "abfss://lake@account.dfs.core.windows.net/a"


@pytest.mark.parametrize(
    ("url", "location", "uri"),
    [
        ("/data/a b", Location("local", "/data/a b"), "file:///data/a%20b"),
        ("s3://lake/a/b/", Location("s3", "a/b", "lake"), "s3a://lake/a/b"),
        ("s3a://lake", Location("s3", "", "lake"), "s3a://lake"),
        ("S3N://lake/a%20b", Location("s3", "a b", "lake"), "s3a://lake/a b"),
        ("gs://lake/a/b", Location("gcs", "a/b", "lake"), "gs://lake/a/b"),
        (f"{AZURE}/b/", Location("azure", "a/b", AZURE[8:-2], secure=True), f"{AZURE}/b"),
        ("ABFS://lake@ACCOUNT.dfs.core.windows.net", Location("azure", "", AZURE[8:-2]), f"abfs://{AZURE[8:-2]}"),
        ("hdfs://nodes/lake", Location("hdfs", "lake", "nodes"), "hdfs://nodes/lake"),
        ("hdfs://host:8020/", Location("hdfs", "", "host:8020"), "hdfs://host:8020"),
    ],
)
def test_a_url_names_a_store(url: str, location: Location, uri: str) -> None:
    assert parse_location(url) == location
    assert location.uri == uri


def test_hdfs_is_reached_through_spark_alone() -> None:
    with pytest.raises(ConfigError, match="through Spark alone"):
        open_store(parse_location("hdfs://nodes/lake"), ObjectOptions.parse({}))

"""Stores of every kind for whole sinks: the connector keys to reach them, and third-party readers for their tables."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.stores.access import store_access
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.store import Store
from equipment.servers.azurite import AzureServer
from equipment.servers.gcs import GcsServer
from equipment.servers.hdfs import HdfsServer
from equipment.servers.s3 import S3Server
from equipment.workers.small_spark import SMALL_SPARK

__all__ = ["Lake", "azure_lake", "gcs_lake", "hdfs_lake", "local_lake", "s3_lake"]


class Reader(Protocol):
    """A third-party reader of tables."""

    def __call__(self, table: str, schema: pa.Schema) -> pa.Table:
        """Read the current rows of a table."""


@dataclass(frozen=True)
class Lake:
    """A store for a sink."""

    props: Mapping[str, str]
    """The connector keys to reach it."""
    store: Store
    """The store itself, to look behind the scenes."""
    read: Reader
    """Reads a table with pyarrow."""
    paths: Callable[[str], list[str]]
    """Lists all files below a folder, including hidden ones."""
    pause: float = 0.3
    """Seconds between two reads of a reader. A read costs as much as a load, and more over a network."""


@contextmanager
def local_lake(folder: Path) -> Iterator[Lake]:
    """A folder."""
    props = {"store.url": str(folder)}

    def read(table: str, schema: pa.Schema) -> pa.Table:
        place = folder / table
        return ds.dataset(place, schema=schema).to_table() if place.exists() else schema.empty_table()

    def paths(place: str) -> list[str]:
        return [path.relative_to(folder).as_posix() for path in (folder / place).rglob("*") if path.is_file()]

    yield Lake(props, _opened(props), read, paths)


@contextmanager
def s3_lake(server: S3Server, folder: str) -> Iterator[Lake]:
    """A prefix of a bucket."""
    props = {"store.url": f"s3://{server.bucket}/{folder}", **server.props}
    files = pyarrow.fs.S3FileSystem(
        access_key=props["aws.access.key.id"],
        secret_key=props["aws.secret.access.key"],
        region=props["s3.region"],
        scheme="http",
        endpoint_override=urlsplit(server.endpoint).netloc,
        allow_bucket_creation=False,
    )

    def read(table: str, schema: pa.Schema) -> pa.Table:
        place = pyarrow.fs.FileSelector(f"{server.bucket}/{folder}/{table}", allow_not_found=True, recursive=True)
        format_ = ds.ParquetFileFormat()
        return ds.FileSystemDatasetFactory(files, place, format_).finish(schema).to_table()

    def paths(place: str) -> list[str]:
        pages = server.client().get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=server.bucket, Prefix=f"{folder}/{place}/")
        return [item["Key"].removeprefix(f"{folder}/") for page in found for item in page.get("Contents", ())]

    yield Lake(props, _opened(props), read, paths, pause=1)


@contextmanager
def gcs_lake(server: GcsServer, folder: str) -> Iterator[Lake]:
    """A prefix of a bucket of Google Cloud Storage."""
    props = {"store.url": f"gs://{server.bucket}/{folder}", **server.props}
    client = server.client()

    def read(table: str, schema: pa.Schema) -> pa.Table:
        found = [blob.download_as_bytes() for blob in client.list_blobs(server.bucket, prefix=f"{folder}/{table}/")]
        return pa.concat_tables([schema.empty_table(), *(pq.read_table(io.BytesIO(f), schema=schema) for f in found)])

    def paths(place: str) -> list[str]:
        found = client.list_blobs(server.bucket, prefix=f"{folder}/{place}/")
        return [blob.name.removeprefix(f"{folder}/") for blob in found]

    yield Lake(props, _opened(props), read, paths, pause=1)


@contextmanager
def azure_lake(server: AzureServer, folder: str) -> Iterator[Lake]:
    """A prefix of a container of Azure."""
    props = {"store.url": server.url(folder), **server.props}
    client = server.client()

    def paths(place: str) -> list[str]:
        found = client.list_blobs(name_starts_with=f"{folder}/{place}/", include=["metadata"])
        names = [blob.name for blob in found if "hdi_isfolder" not in (blob.metadata or {})]
        return [name.removeprefix(f"{folder}/") for name in names]

    at = urlsplit(server.endpoint).netloc
    files = pyarrow.fs.AzureFileSystem(
        server.account,
        account_key=server.key,
        blob_storage_authority=at,
        blob_storage_scheme="http",
        dfs_storage_authority=at,
        dfs_storage_scheme="http",
    )

    def read(table: str, schema: pa.Schema) -> pa.Table:
        place = pyarrow.fs.FileSelector(f"{server.container}/{folder}/{table}", allow_not_found=True, recursive=True)
        format_ = ds.ParquetFileFormat()
        return ds.FileSystemDatasetFactory(files, place, format_).finish(schema).to_table()

    yield Lake(props, _opened(props), read, paths, pause=1)


@contextmanager
def hdfs_lake(server: HdfsServer, folder: str) -> Iterator[Lake]:
    """A folder of HDFS, which this process reaches through its own Spark."""
    props = {"store.url": f"{server.url}/{folder}"}
    with ExitStack() as stack:
        started: list[SparkSession] = []

        def spark() -> SparkSession:
            if not started:
                options = StoreOptions.parse(props)
                started.append(start_session(SMALL_SPARK, "reader", store_access(options)))
                stack.callback(started[0].stop)
            return started[0]

        store = open_store(StoreOptions.parse(props), spark)

        def read(table: str, schema: pa.Schema) -> pa.Table:
            files = [io.BytesIO(store.read(f"{table}/{name}")) for name in store.files(table)]
            return pa.concat_tables([schema.empty_table(), *(pq.read_table(f, schema=schema) for f in files)])

        def paths(place: str) -> list[str]:
            java: Any = spark().sparkContext
            path = java._jvm.org.apache.hadoop.fs.Path(store.uri(place))
            files = path.getFileSystem(java._jsc.hadoopConfiguration())
            if not files.exists(path):
                return []
            found = files.listFiles(path, True)
            names = []
            while found.hasNext():
                names.append(found.next().getPath().toString().removeprefix(f"{props['store.url']}/"))
            return names

        yield Lake(props, store, read, paths, pause=1)


def _opened(props: Mapping[str, str]) -> Store:
    return open_store(StoreOptions.parse(props), _no_spark)


def _no_spark() -> Any:
    raise AssertionError("this store needs no Spark")

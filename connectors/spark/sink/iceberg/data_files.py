"""Decides for which tables the executors write Parquet files themselves, and how those files name their columns.

Iceberg finds the columns of a file by the ids in it, so each column gets the id it has in the table. Spark's writer
handles everything that the executors do not write the way it would: partition folders, sort orders, and properties that
say how files are written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import types as kinds

from connect.data import Schema
from connectors.spark.arrow_types import table_type
from connectors.spark.decoding.part_files import PartFiles
from connectors.spark.iceberg.metadata import TableMetadata
from connectors.spark.stores.parts import DataFolder, DataPlace
from connectors.spark.stores.s3_parts import ObjectFolder

if TYPE_CHECKING:
    from connectors.spark.sink.config import SparkSinkConfig

__all__ = ["DataFiles", "DataWriting", "data_writing", "file_columns", "may_be_written"]

_ID: Final = b"PARQUET:field_id"
_SIZE: Final = "write.target-file-size-bytes"
_DEFAULT_SIZE: Final = 512 * 1024 * 1024
_OF_WRITERS: Final = (
    "encryption.",
    "write.location-provider.",
    "write.object-storage.",
    "write.parquet.",
    "write.spark.",
)
"""Prefixes of properties with which files would look different from these, or be elsewhere."""
_NAMES: Final[Mapping[str, Any]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}
_OF_S3: Final = ("spark.hadoop.fs.s3a.", "iceberg.hadoop.", "iceberg.catalog.io-impl", "iceberg.catalog.s3.")
_OF_SPARK: Final = ("spark.sql.parquet.", "spark.hadoop.parquet.", "spark.sql.iceberg.")
_S3: Final = ("s3", "s3a", "s3n")
_ESCAPED: Final = frozenset("%#?")
"""Characters that some parts of Iceberg take literally in a location and others do not."""


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Files of one pass that the executors write into a folder, which Iceberg calls ``location``."""

    parts: PartFiles
    folder: DataPlace
    location: str

    def places(self, names: Iterable[str]) -> list[str]:
        """Return the locations of files, as Iceberg names them."""
        return [f"{self.location}/{name}" for name in names]

    @property
    def all_places(self) -> list[str]:
        """The locations of all files of the pass, including those of attempts that do not count."""
        return self.places(self.folder.names(self.parts.mark))


@dataclass(frozen=True, slots=True)
class DataWriting:
    """How executors write files for tables: the codec, their size unless the table specifies it, and an S3 bucket."""

    codec: Literal["none", "gzip", "snappy", "zstd"]
    size: int | None = None
    bucket: ObjectFolder | None = None
    """The folder of the store, below which tables may have their files."""

    def files(self, table: TableMetadata, location: str, schema: Schema) -> DataFiles | None:
        """Return the files for rows of ``schema`` in a table whose files go to ``location``; ``None`` if Spark has to
        write them.
        """
        folder = self.folder(location)
        columns = file_columns(table.schema, table_type(schema).columns)
        if folder is None or columns is None or not may_be_written(table.document):
            return None
        size = self.size or int(table.properties.get(_SIZE, _DEFAULT_SIZE))
        return DataFiles(PartFiles(folder, str(uuid.uuid4()), self.codec, size=size, columns=columns), folder, location)

    def folder(self, location: str) -> DataPlace | None:
        """Return the folder at Iceberg's ``location``, if executors can reach it: a local or mounted folder, or one in
        the S3 store.
        """
        if _ESCAPED.intersection(location):
            return None
        parts = urlsplit(location)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            # A path without a scheme may belong to another file system, which Hadoop's configuration names.
            return DataFolder("/" + parts.path.strip("/"))
        store, path = self.bucket, parts.path.strip("/")
        if store is None or parts.scheme not in _S3 or parts.netloc != store.bucket:
            return None
        return replace(store, folder=path) if path.startswith(f"{store.folder}/" if store.folder else "") else None


class _LeftToSparkError(Exception):
    """Raised for a column that is best left to Spark's writer."""


def may_be_written(document: Mapping[str, Any]) -> bool:
    """Return whether the executors can write the files of a table, according to its metadata in Iceberg's JSON."""
    properties: Mapping[str, str] = document.get("properties", {})
    own = (key for key in properties if key != "write.parquet.compression-codec")
    if any(key.startswith(_OF_WRITERS) for key in own):
        return False
    number = document["default-spec-id"]
    is_divided = any(spec["fields"] for spec in document["partition-specs"] if spec["spec-id"] == number)
    return not is_divided and document.get("default-sort-order-id", 0) == 0


def file_columns(schema: Mapping[str, Any], columns: pa.Schema) -> pa.Schema | None:
    """Return the file columns for rows that have ``columns``, for a table with this schema in Iceberg's JSON.

    ``None`` if the table has other columns, or if one must not be null or has a default.
    """
    try:
        return pa.schema(list(_fields(schema["fields"], list(columns))))
    except _LeftToSparkError:
        return None


def _fields(documents: Sequence[Mapping[str, Any]], columns: Sequence[Any]) -> Iterator[Any]:
    by_name = {item["name"]: item for item in documents}
    if set(by_name) != {column.name for column in columns} or len(documents) != len(columns):
        raise _LeftToSparkError
    for column in columns:
        item = by_name[column.name]
        if item["required"] or "initial-default" in item or "write-default" in item:
            raise _LeftToSparkError
        yield _field(column.name, item["id"], _type(item["type"], column.type))


def _field(name: str, number: int, data_type: Any, *, nullable: bool = True) -> Any:
    return pa.field(name, data_type, nullable, metadata={_ID: str(number).encode()})


def _type(document: str | Mapping[str, Any], data_type: Any) -> Any:
    if isinstance(document, str):
        return _primitive(document, data_type)
    if document["type"] == "struct" and kinds.is_struct(data_type):
        return pa.struct(list(_fields(document["fields"], list(data_type))))
    if document["type"] == "list" and kinds.is_list(data_type) and not document["element-required"]:
        element = _type(document["element"], data_type.value_type)
        return pa.list_(_field("element", document["element-id"], element))
    if document["type"] == "map" and kinds.is_map(data_type) and not document["value-required"]:
        key = _field("key", document["key-id"], _type(document["key"], data_type.key_type), nullable=False)
        return pa.map_(key, _field("value", document["value-id"], _type(document["value"], data_type.item_type)))
    raise _LeftToSparkError


def _primitive(name: str, data_type: Any) -> Any:
    """Return the type of a column in a file: that of the rows, except for small integers, which are ``int`` in
    Iceberg.
    """
    if kinds.is_decimal128(data_type) and name == f"decimal({data_type.precision}, {data_type.scale})":
        return data_type
    wanted = _NAMES.get(name)
    if wanted is None or not (data_type.equals(wanted) or (name == "int" and kinds.is_signed_integer(data_type))):
        raise _LeftToSparkError
    if kinds.is_int64(data_type) and name == "int":
        raise _LeftToSparkError
    return wanted


def data_writing(config: SparkSinkConfig) -> DataWriting | None:
    """Return how the executors write files themselves; ``None`` if a key is set that only Spark's writer respects."""
    if any(key.startswith(_OF_SPARK) for key in config.originals):
        return None
    if config.format != "ParquetFormat" or config.has_query or config.changes is not None:
        return None
    return DataWriting(config.parquet_codec, config.target_file_size_bytes, _bucket(config))


def _bucket(config: SparkSinkConfig) -> ObjectFolder | None:
    """Return the store in S3, unless the catalog or Hadoop has its own keys for it."""
    own = any(key.startswith(_OF_S3) for key in config.originals) or config.hadoop_conf_dir is not None
    if own or not config.has_store or config.location.kind != "s3":
        return None
    place = config.location
    return ObjectFolder(config.s3_account, place.authority, place.path, config.s3_part_size)

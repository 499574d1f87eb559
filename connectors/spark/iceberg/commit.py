"""Commits a table: replaces one version of its metadata with the next, or changes nothing.

Iceberg's own transactions look up the newest version when they commit and build on it, whoever made it. That would
admit a driver that has lost its table. Here a commit applies to exactly the version that was checked.

Catalogs compare and swap by themselves. So does the Hadoop catalog on HDFS, with a rename that never replaces a file;
in a local folder its rename does replace, so there the version is created with a link, as in the ledger.
"""

from __future__ import annotations

import gzip
import re
import uuid
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connectors.spark.errors import root_cause
from connectors.spark.stores.local import LocalStore

__all__ = ["ConflictError", "swap"]

_VERSION: Final = re.compile(r"v(\d+)\.")
_CONFLICTS: Final = ("CommitFailedException", "AlreadyExistsException")
_NO_LOCK: Final = "LockException"


class ConflictError(ConnectError):
    """Another writer has changed the table first."""


def swap(java: Any, operations: Any, base: Any, updated: Any) -> None:
    """Replace the metadata ``base`` of a table with ``updated``; raises :class:`ConflictError` if ``base`` is not
    current.
    """
    folder = _local_folder(operations)
    if folder is not None:
        _link(java, folder, base, updated)
        if base is not None:
            java.org.apache.iceberg.CatalogUtil.deleteRemovedMetadataFiles(operations.io(), base, updated)
        return
    try:
        operations.commit(base, updated)
    except Exception as error:
        thrown: Any = getattr(error, "java_exception", None)
        name = "" if thrown is None else str(thrown.getClass().getSimpleName())
        if _NO_LOCK in (cause := root_cause(error)):
            raise RetriableError(
                f"The Hive metastore granted no lock for the commit ({cause}). It needs its transaction "
                "tables, which Hive's schematool creates; if they exist, another writer holds the lock."
            ) from error
        if name in _CONFLICTS:
            raise ConflictError(cause) from error
        raise RetriableError(f"The catalog did not confirm the commit ({cause}); reading the table again.") from error


def _local_folder(operations: Any) -> Path | None:
    """Return the metadata folder of a table of a Hadoop catalog in a local folder."""
    if operations.getClass().getSimpleName() != "HadoopTableOperations":
        return None
    # The Hadoop catalog, unlike Spark, gives the whole URI of a location.
    url = urlsplit(str(operations.metadataFileLocation("v")))
    if url.scheme not in ("", "file"):
        return None
    return Path(unquote(url.path)).parent


def _link(java: Any, folder: Path, base: Any, updated: Any) -> None:
    number = 1
    if base is not None:
        match = _VERSION.search(Path(str(base.metadataFileLocation())).name)
        assert match is not None
        number = int(match[1]) + 1
    data = str(java.org.apache.iceberg.TableMetadataParser.toJson(updated)).encode()
    suffix = ".metadata.json"
    if updated.properties().get("write.metadata.compression-codec") == "gzip":
        data, suffix = gzip.compress(data), ".gz.metadata.json"
    try:
        LocalStore(folder).create(f"v{number}{suffix}", data)
    except FileExistsError as error:
        raise ConflictError(f"Version {number} of the table already exists.") from error
    crash_point("after-version")
    # A reader that finds an older number here searches from it for the newest version.
    hint = folder / f".version-hint.{uuid.uuid4().hex}"
    hint.write_text(str(number), encoding="ascii")
    hint.replace(folder / "version-hint.text")

"""Lists the files below a folder with Spark, on any file system Hadoop supports, using several threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from connect.errors import ConnectError
from connectors.spark.sources.files.bookmark import FoundFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FileFilter", "listed_files", "parse_statuses"]

_SEPARATOR: Final = "\n\0"
"""A separator: no path contains a NUL."""
# Greedy: if part of the path looks like the rest of a status, it still belongs to the path.
_STATUS: Final = re.compile(
    r"\w+\{path=(.*); isDirectory=false; length=(\d+); replication=\d+; blocksize=\d+; modification_time=(\d+); ",
    re.DOTALL,
)


class FileFilter:
    """Decides whether to read a file, by its path below the folder."""

    def __init__(self, pattern: str, *, recursive: bool) -> None:
        self._pattern = pattern
        self._recursive = recursive

    def takes(self, name: str) -> bool:
        """Return whether to read a file."""
        folder, _, last = name.rpartition("/")
        if folder and not self._recursive:
            return False
        return fnmatchcase(name if "/" in self._pattern else last, self._pattern)


def listed_files(spark: SparkSession, folder: str, chosen: FileFilter) -> Iterator[FoundFile]:
    """Return the selected files below a folder as they are now, in no particular order.

    Raises :class:`~connect.errors.ConnectError` if the folder does not exist.
    """
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(_as_path(folder))
    files = path.getFileSystem(session.sessionState().newHadoopConf())
    if not files.exists(path):
        raise ConnectError(f"The folder {folder} does not exist: check store.url and topics.dir, or create it.")
    python = jvm.org.apache.spark.api.python.PythonUtils
    sources = jvm.org.apache.spark.sql.execution.datasources
    uncached = getattr(getattr(sources, "NoopCache$"), "MODULE$")
    none = jvm.scala.Option.empty()
    options = python.toScalaMap({"recursiveFileLookup": "true"})
    index = sources.InMemoryFileIndex(session, python.toSeq([path]), options, none, uncached, none, none)
    # One call for all of them: a call for each would take a minute for 100,000 files.
    text = str(index.allFiles().mkString(_SEPARATOR))
    return parse_statuses(text, str(files.makeQualified(path)), chosen)


def parse_statuses(text: str, root: str, chosen: FileFilter) -> Iterator[FoundFile]:
    """Parse the selected files from Hadoop's textual statuses of the files below ``root``."""
    prefix = f"{root.rstrip('/')}/"
    for status in _parts(text):
        match = _STATUS.match(status)
        if match is None:
            raise ConnectError(
                f"Hadoop describes a file in an unknown form ({status[:200]}): use the version of PySpark that "
                "Sluice requires."
            )
        path, size, modified = match[1], int(match[2]), int(match[3])
        name = path.removeprefix(prefix)
        if chosen.takes(name):
            yield FoundFile(path, name, size, modified)


def _parts(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(_SEPARATOR, start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + len(_SEPARATOR)


def _as_path(uri: str) -> str:
    """Return a URI as the text of a path, which Hadoop encodes itself."""
    return unquote(uri) if uri.startswith("file:") else uri

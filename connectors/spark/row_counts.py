"""Counts the rows of files: in footers and block headers where there are any, and never by decoding values.

Whatever is wrong with a file is a ``ValueError`` or an ``OSError``.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["of_csv", "of_lines", "of_orc", "of_parquet"]

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"


def of_parquet(file: BinaryIO) -> int:
    """The rows of a Parquet file, from its footer."""
    try:
        return int(pq.read_metadata(file).num_rows)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def of_orc(file: BinaryIO) -> int:
    """The rows of an ORC file, from its footer."""
    from pyarrow import orc  # noqa: PLC0415 - only this format needs it

    try:
        return int(orc.ORCFile(file).nrows)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def of_lines(file: BinaryIO) -> int:
    """The lines of a text file, gzipped or not, the last of which has to end."""
    count, last = 0, b"\n"
    content = _plain(file)
    try:
        while chunk := content.read(_CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    except (EOFError, zlib.error) as error:
        raise ValueError(f"its compression is broken: {error}") from error
    if last != b"\n":
        raise ValueError("its last line has no end")
    return count


def of_csv(file: BinaryIO) -> int:
    """The records of a CSV file with a header, gzipped or not; values may have line breaks."""
    csv.field_size_limit(sys.maxsize)
    try:
        rows = csv.reader(io.TextIOWrapper(_plain(file), encoding="utf-8", newline=""), strict=True)
        return max(0, sum(1 for _ in rows) - 1)
    except (csv.Error, EOFError, zlib.error) as error:
        raise ValueError(f"it is no CSV: {error}") from error


def _plain(file: BinaryIO) -> Any:
    start = file.read(len(_GZIP))
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if start == _GZIP else file

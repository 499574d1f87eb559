"""The options of the directory sink."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    matches,
    non_empty,
    option,
)
from connect.errors import ConfigError
from connect.kits.files.systems.address import Address, parse_address
from connect.kits.files.systems.options import FileSystemOptions

__all__ = ["Compression", "DirectorySinkConfig", "SinkFormat"]


class SinkFormat(StrEnum):
    """The formats of files that are written."""

    JSONL = "jsonl"
    CSV = "csv"
    TEXT = "text"
    BYTES = "bytes"


class Compression(StrEnum):
    """How files are compressed."""

    NONE = "none"
    GZIP = "gzip"


class DirectorySinkConfig(FileSystemOptions):
    """The options of the directory sink."""

    passed_keys = ()

    path: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="Folder for the files: a path, or a URL such as sftp://HOST/FOLDER, ftp://, ftps://, "
        "smb://HOST/SHARE/FOLDER, s3://BUCKET/FOLDER, gs:// or abfss://. Folders are made as needed.",
    )
    format: SinkFormat = option(
        default=SinkFormat.JSONL,
        importance=HIGH,
        doc="Format of the files. jsonl: each value as a line of JSON. csv: the fields of structs and objects, with a "
        "header. text: each text as a line. bytes: each value's bytes, without anything between them.",
    )
    compression: Compression = option(
        default=Compression.NONE, importance=MEDIUM, doc="Whether files are compressed with gzip."
    )
    delimiter: str = option(
        default=",",
        importance=LOW,
        validator=matches(r"[^\r\n\"]", "one character"),
        doc="Character between columns of CSV.",
    )
    flush_size: int = option(
        default=10_000,
        importance=HIGH,
        validator=at_least(1),
        doc="Maximum number of records in a file. A file has records of one partition of one topic.",
    )
    rotate_bytes: Long = option(
        default=128 * 1024 * 1024,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Size at which a file is complete, before compression.",
    )
    rotate_interval_ms: Long = option(
        default=60_000,
        importance=HIGH,
        validator=at_least(0),
        doc="How long after its first record a file is complete, by the clock, even if no more records come. With 0, "
        "files are complete whenever offsets are committed.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        mistakes = list(self.system_mistakes("path", self.path))
        yield from mistakes
        if not mistakes and self.address.scheme in ("http", "https"):
            yield ConfigRuleError("Files at http:// can only be read: name another folder", "path")

    @property
    def address(self) -> Address:
        """The address of the folder."""
        return parse_address("path", self.path)

    @property
    def extension(self) -> str:
        """What the names of files end with."""
        form = {SinkFormat.TEXT: ".txt", SinkFormat.BYTES: ".bin"}.get(self.format, f".{self.format}")
        return form + (".gz" if self.compression is Compression.GZIP else "")

"""Names of files and folders of records, as the storage sinks make them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["SHARED", "FileNames", "escaped"]

SHARED: Final = "all"
"""What the names of files of several partitions have in place of a partition."""

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f/\\%]")
"""What would divide a name into two, or what a store or file system refuses; and the sign that escapes it."""


def escaped(text: str, delimiter: str = "/") -> str:
    """Return a text as a part of a path: what would end the part is written as ``%`` and two hexadecimal digits."""
    safe = _UNSAFE.sub(_hexadecimal, text)
    if delimiter != "/" and delimiter:
        safe = safe.replace(delimiter, "".join(f"%{byte:02X}" for byte in delimiter.encode()))
    return {".": "%2E", "..": "%2E%2E"}.get(safe, safe)


def _hexadecimal(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names folders ``FOLDER/TOPIC`` and files ``TOPIC+PARTITION+OFFSET``; the offset is that of the first record."""

    folder: str = "topics"
    directory_delimiter: str = "/"
    file_delimiter: str = "+"
    pad_width: int = 10

    def name(self, topic: str, partition: int, offset: int, ending: str) -> str:
        """Return the name of a file in its folder."""
        return f"{self.start(topic, partition)}{offset:0{self.pad_width}d}{ending}"

    def start(self, topic: str, partition: int) -> str:
        """Return the beginning of the names of all files of a topic partition."""
        return f"{topic}{self.file_delimiter}{partition}{self.file_delimiter}"

    def shared_name(self, topic: str, number: int, mark: str, ending: str) -> str:
        """Return the name of a file of several partitions, which have so many records before it; the mark tells it
        from others.
        """
        return f"{self.shared_start(topic)}{number:0{self.pad_width}d}-{mark}{ending}"

    def shared_start(self, topic: str) -> str:
        """Return the beginning of the names of all files of several partitions."""
        return f"{topic}{self.file_delimiter}{SHARED}{self.file_delimiter}"

    def topic_folder(self, topic: str) -> str:
        """Return the folder that has all files of a topic."""
        return self.directory_delimiter.join(part for part in (self.folder, topic) if part)

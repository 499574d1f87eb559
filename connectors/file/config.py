"""The options of the file connectors."""

from __future__ import annotations

from connect.config import HIGH, LOW, Config, at_least, non_empty, option

__all__ = ["FileStreamSinkConfig", "FileStreamSourceConfig"]


class FileStreamSourceConfig(Config):
    """What to read and where to publish it."""

    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to read. Without it the standard input is read, which has no offsets.",
    )
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the lines to.")
    batch_size: int = option(
        default=2000,
        importance=LOW,
        doc="Most records in one poll. A poll also ends with what one read of the file gave.",
    )
    line_max_bytes: int = option(
        default=64 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1),
        doc="Longest line in bytes, its end not counted. A longer one is not held in memory but reported as "
        "a record that cannot be read: errors.tolerance decides whether the task fails or goes on after it.",
    )


class FileStreamSinkConfig(Config):
    """Where to write."""

    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to append to; made if it does not exist. Without it, the standard output.",
    )

"""The options of the file connectors."""

from __future__ import annotations

from connect.config import HIGH, LOW, Config, Long, at_least, non_empty, option

__all__ = ["FileStreamSinkConfig", "FileStreamSourceConfig", "FileStreamTaskConfig"]


class FileStreamSourceConfig(Config):
    """The options of the file source."""

    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to read. Without it the connector reads the standard input, which has no offsets.",
    )
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the lines to.")
    batch_size: int = option(
        default=2000,
        importance=LOW,
        doc="Most records in one poll. A poll returns at most what one read of the file gave.",
    )
    line_max_bytes: int = option(
        default=64 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1),
        doc="Longest line in bytes, without its end. A longer line is not held in memory but reported as "
        "a record that cannot be read: errors.tolerance decides whether the task fails or continues after it.",
    )


class FileStreamTaskConfig(FileStreamSourceConfig):
    """The options of a task: those of the connector, and where it is to end."""

    split_end: Long | None = option(
        default=None, importance=LOW, internal=True, doc="The byte position that is the end of a split."
    )


class FileStreamSinkConfig(Config):
    """The options of the file sink."""

    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to append to; it is created if missing. Without it, the standard output is used.",
    )

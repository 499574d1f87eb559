"""The options of the file connectors."""

from __future__ import annotations

from connect.config import HIGH, LOW, Config, Long, at_least, non_empty, option

__all__ = ["FileStreamSinkConfig", "FileStreamSourceConfig", "FileStreamTaskConfig"]


class FileStreamSourceConfig(Config):
    """The options of the file source."""

    passed_keys = ()
    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to read. Without it, the connector reads standard input, which has no offsets.",
    )
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the lines to.")
    batch_size: int = option(
        default=2000,
        importance=LOW,
        doc="Maximum number of records per poll. A poll returns at most the lines of one read of the file.",
    )
    line_max_bytes: int = option(
        default=64 * 1024 * 1024,
        importance=LOW,
        validator=at_least(1),
        doc="Maximum length of a line in bytes, without its line ending. A longer line is not kept in memory but "
        "reported as an unreadable record: errors.tolerance decides whether the task fails or skips it.",
    )


class FileStreamTaskConfig(FileStreamSourceConfig):
    """The options of a task: those of the connector, and where a split ends."""

    split_end: Long | None = option(
        default=None, importance=LOW, internal=True, doc="The byte position where a split ends."
    )


class FileStreamSinkConfig(Config):
    """The options of the file sink."""

    passed_keys = ()
    file: str | None = option(
        default=None,
        importance=HIGH,
        doc="Path of the file to append to; it is created if missing. Without it, the connector writes to standard "
        "output.",
    )

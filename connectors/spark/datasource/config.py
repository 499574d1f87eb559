"""The options of the data source: framework keys that apply without a worker, and its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from connect.config import HIGH, LOW, MEDIUM, Config, ConfigRuleError, Long, at_least, option
from connect.errors import ConfigError
from connect.internals.chain.tolerance import ErrorPolicy

__all__ = ["DataSourceConfig"]

_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"


class DataSourceConfig(Config):
    """The options of ``spark.read`` and ``df.write`` that the data source reads; the others are the connector's."""

    connector_class: str = option(
        importance=HIGH,
        doc="The connector: a dotted path, a simple name with or without the suffix Connector, or a Java class.",
    )
    tasks_max: int | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1),
        doc=(
            "The maximum number of partitions for a read (and of the DataFrame). By default the number of the "
            "driver's cores for a source that can be split, and 1 for any other."
        ),
    )
    topics: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The topic for DataFrames that are written: their rows are its records, as the sink sees them.",
    )
    key_column: str = option(
        default="",
        importance=MEDIUM,
        doc=(
            "The column for the records' keys: added when reading, removed from the rows when writing. None if empty."
        ),
    )
    headers_column: str = option(
        default="",
        importance=LOW,
        doc=(
            "The column for the records' headers, a list of structs of key and value, both strings: added "
            "when reading, removed from the rows when writing. None if empty."
        ),
    )
    metadata_column: str = option(
        default="",
        importance=LOW,
        doc=(
            "The column for the origin of a record: a struct of topic, partition, timestamp, source_partition "
            "and source_offset, the last two as JSON. Only for reading; none if empty."
        ),
    )
    max_records_per_trigger: int = option(
        default=10_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc=(
            "The approximate maximum number of records in a micro-batch of a stream. It is held in the driver's memory."
        ),
    )
    plugin_path: tuple[str, ...] = option(default=(), importance=LOW, doc="Folders of plugins, as in a worker's file.")
    plugin_import_allowlist: tuple[str, ...] = option(
        default=(), importance=LOW, doc="Classes that may be plugins though no plugins.toml lists them."
    )
    config_providers: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Aliases of config providers beside env, file and dir; each needs config.providers.ALIAS.class.",
    )
    transforms: tuple[str, ...] = option(default=(), importance=LOW, doc="Aliases of transformations, in order.")
    predicates: tuple[str, ...] = option(default=(), importance=LOW, doc="Aliases of predicates.")
    errors_tolerance: Literal["none", "all"] = option(
        default="none",
        importance=MEDIUM,
        doc=("What to do with a record that cannot be processed: none fails the query, all leaves it out and logs it."),
    )
    errors_tolerance_limit: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        doc=("The maximum number of records that a Spark task may leave out."),
    )
    errors_tolerance_rate: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        doc=("The maximum number of records that it may leave out per minute."),
    )
    errors_retry_timeout: Long = option(
        default=0, importance=LOW, doc="How long, in milliseconds, to retry a failed transformation."
    )
    errors_retry_delay_max_ms: Long = option(
        default=60_000, importance=LOW, doc="The longest wait, in milliseconds, between two attempts."
    )
    errors_deadletterqueue_topic_name: str = option(
        default="", importance=LOW, doc="Must not be set: there is no Kafka for a dead letter queue."
    )

    def check(self) -> Iterable[ConfigError]:
        """Reject options that need a worker, and columns with the same name."""
        if self.errors_deadletterqueue_topic_name:
            yield ConfigRuleError(
                f"{_DEAD_LETTERS} needs Kafka, which Spark's data source does not have: remove it. With "
                "errors.tolerance=all records that are left out go to the log.",
                _DEAD_LETTERS,
            )
        named = {"key.column": self.key_column, "headers.column": self.headers_column}
        named["metadata.column"] = self.metadata_column
        names = [name for name in named.values() if name]
        for key, name in named.items():
            if names.count(name) > 1:
                yield ConfigError(key, name, "Two columns cannot have one name: give each a name of its own.")

    @property
    def policy(self) -> ErrorPolicy:
        """The error policy from the ``errors.*`` keys."""
        return ErrorPolicy(
            tolerates_errors=self.errors_tolerance == "all",
            retry_timeout=self.errors_retry_timeout,
            retry_delay_max=self.errors_retry_delay_max_ms,
            tolerance_limit=self.errors_tolerance_limit,
            tolerance_rate=self.errors_tolerance_rate,
        )

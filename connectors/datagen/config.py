"""The options of the datagen source."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import HIGH, LOW, MEDIUM, Config, ConfigRuleError, Long, non_empty, one_of, option
from connect.errors import ConfigError, ConnectError
from connectors.datagen.quickstarts import QUICKSTARTS
from connectors.datagen.stream import RecordType

__all__ = ["DatagenConfig", "DatagenTaskConfig"]

_SCHEMA_KEYS = ("schema.string", "schema.filename", "quickstart")


class DatagenConfig(Config):
    """The options of the datagen source."""

    passed_keys = ()
    kafka_topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the records to.")
    max_interval: Long = option(
        default=500,
        importance=HIGH,
        doc="Maximum time between two records of a task, in milliseconds; the actual time is random, half of this on "
        "average. With 0 or less there is no pause.",
    )
    iterations: int = option(
        default=-1,
        importance=HIGH,
        doc="Number of records that each task generates; with less than 1 there is no limit.",
    )
    schema_string: str = option(
        default="",
        importance=HIGH,
        doc="Avro schema of the records as JSON, with arg.properties that say which values to generate.",
    )
    schema_filename: str = option(
        default="",
        importance=HIGH,
        doc="Path of a file with such a schema, present on every worker that may run a task. The worker's key "
        "datagen.allowed.paths restricts it.",
    )
    quickstart: str = option(
        default="",
        importance=HIGH,
        validator=one_of("", *QUICKSTARTS, ignore_case=True),
        doc="Name of a built-in schema.",
    )
    schema_keyfield: str = option(
        default="",
        importance=HIGH,
        doc="Top-level field to use as the key. By default the one of the quickstart, if any.",
    )
    random_seed: Long | None = option(
        default=None,
        importance=LOW,
        doc="Seed of the random numbers: with the same seed and schema each task generates the same records. Without "
        "it each task chooses a seed at its first start and keeps it in its offsets.",
    )
    record_headers: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether records have the headers task.generation, task.id and current.iteration. Without them generation "
        "is faster.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        given = [key for key in _SCHEMA_KEYS if self.originals.get(key)]
        if len(given) != 1:
            yield ConfigRuleError(
                f"Set exactly one of {', '.join(_SCHEMA_KEYS)}; {'none' if not given else 'several'} of them is set",
                *_SCHEMA_KEYS,
            )
            return
        if self.schema_filename:
            # The task reads the file: the worker has to allow the path first.
            return
        try:
            record_type = RecordType(self.schema_text)
        except ConnectError as error:
            yield ConfigRuleError(f"No records can be made: {error}", given[0])
            return
        if self.schema_keyfield and record_type.schema.field(self.schema_keyfield) is None:
            names = ", ".join(record_type.schema.field_names)
            yield ConfigError("schema.keyfield", self.schema_keyfield, f"The schema has no such field; it has {names}")

    @property
    def schema_text(self) -> str:
        """The schema, unless it is in a file."""
        return QUICKSTARTS[self.quickstart.lower()].text if self.quickstart else self.schema_string

    @property
    def key_field(self) -> str | None:
        """The key field; ``None`` if there is none."""
        if self.schema_keyfield or not self.quickstart:
            return self.schema_keyfield or None
        return QUICKSTARTS[self.quickstart.lower()].key_field


class DatagenTaskConfig(DatagenConfig):
    """The options of one task."""

    task_id: int = option(default=0, importance=LOW, internal=True, doc="The index of the task.")

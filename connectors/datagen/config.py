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

    kafka_topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish the records to.")
    max_interval: Long = option(
        default=500,
        importance=HIGH,
        doc="Longest time between two records of a task, in milliseconds; the time is random, and half of this on "
        "average. With 0 or less there is no pause.",
    )
    iterations: int = option(
        default=-1,
        importance=HIGH,
        doc="Records that each task makes before it has nothing more to do; with less than 1 it never ends.",
    )
    schema_string: str = option(
        default="",
        importance=HIGH,
        doc="Avro schema of the records, as JSON, with arg.properties that say what values to make.",
    )
    schema_filename: str = option(
        default="",
        importance=HIGH,
        doc="Path of a file with such a schema, on every worker that may run a task. The worker's key "
        "datagen.allowed.paths limits it.",
    )
    quickstart: str = option(
        default="",
        importance=HIGH,
        validator=one_of("", *QUICKSTARTS, ignore_case=True),
        doc="Name of a schema that comes with Sluice.",
    )
    schema_keyfield: str = option(
        default="",
        importance=HIGH,
        doc="Field of the record, not of a record in it, that is the key. Without it that of the quickstart, or none.",
    )
    random_seed: Long | None = option(
        default=None,
        importance=LOW,
        doc="Seed of the random numbers: with the same seed and schema each task makes the same records. Without it "
        "every task chooses one when it begins, and keeps it with its offsets.",
    )
    record_headers: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether records have the headers task.generation, task.id and current.iteration. Without them they are "
        "made faster.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several options that is broken."""
        given = [key for key in _SCHEMA_KEYS if self.originals.get(key)]
        if len(given) != 1:
            yield ConfigRuleError(
                f"Set exactly one of {', '.join(_SCHEMA_KEYS)}; {'none' if not given else 'several'} of them is set",
                *_SCHEMA_KEYS,
            )
            return
        if self.schema_filename:
            # Reading it is the task's: the worker has to allow the path first.
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
        """The schema, if it is not in a file."""
        return QUICKSTARTS[self.quickstart.lower()].text if self.quickstart else self.schema_string

    @property
    def key_field(self) -> str | None:
        """The field that is the key; ``None`` if there is none."""
        if self.schema_keyfield or not self.quickstart:
            return self.schema_keyfield or None
        return QUICKSTARTS[self.quickstart.lower()].key_field


class DatagenTaskConfig(DatagenConfig):
    """The options of one task."""

    task_id: int = option(default=0, importance=LOW, internal=True, doc="Which of the tasks this is.")

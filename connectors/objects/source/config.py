"""The options of the sources of objects: what all share, and what each kind of store adds."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Final, Self, cast

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    ConfigValue,
    Long,
    at_least,
    between,
    matches,
    non_empty,
    option,
)
from connect.config.unsupported_keys import UnsupportedKey, given_keys
from connect.errors import ConfigError
from connect.kits.files.readers.delimited import schema_name
from connect.kits.files.readers.options import FileFormat, ReadingOptions
from connect.kits.files.systems.address import Address, parse_address
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.s3_login import PROVIDER_KEYS, PROVIDERS, S3LoginOptions
from connect.kits.objects.sqs import SqsQueue
from connect.kits.objects.store import open_store, store_problem
from connectors.objects.source.names import RestoredNames, TemplateNames, TopicNames

__all__ = [
    "AzureBlobSourceConfig",
    "Distribution",
    "FinishedAction",
    "GcsSourceConfig",
    "ObjectSourceConfig",
    "S3SourceConfig",
    "SourceMode",
]

_FORMATS: Final = {
    "avro": "avro",
    "json": "jsonl",
    "parquet": "parquet",
    "orc": "orc",
    "bytearray": "bytes",
    "string": "text",
}
_HELD: Final = "Use AvroFormat, JsonFormat, ParquetFormat, OrcFormat, ByteArrayFormat or StringFormat."
_ROWS: Final = (
    "Its files cannot be restored exactly: they have no types, so that a number is like its text and bytes like any, "
    "and those of Java do not tell null from an empty text. Read them as rows (mode=GENERIC, format=csv or tsv), or "
    "back up in another format."
)
_CLASSES: Final = "Java classes cannot run here: set keys, or a role of the machine, and remove the key."
_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "s3.credentials.provider.class": UnsupportedKey(_CLASSES, ("", *PROVIDERS)),
    "aws.credentials.provider": UnsupportedKey(_CLASSES, ("",)),
    "folders": UnsupportedKey("Name one folder with topics.dir or the prefix.", ("",)),
}


class SourceMode(StrEnum):
    """What objects there are."""

    GENERIC = "GENERIC"
    RESTORE_BACKUP = "RESTORE_BACKUP"


class Distribution(StrEnum):
    """How tasks share objects."""

    OBJECT_HASH = "object_hash"
    PARTITION = "partition"


class FinishedAction(StrEnum):
    """What to do with an object after the offset of its last record is committed."""

    LEAVE = "leave"
    MOVE = "move"
    DELETE = "delete"


class _RestoredReading(ReadingOptions):
    """How files of sinks are read, in which each byte is of a record."""

    has_mark = False


class ObjectSourceConfig(ReadingOptions, ObjectOptions):
    """The options that all sources of objects have."""

    passed_keys = tuple(_REFUSED)

    mode: SourceMode | None = option(
        default=None,
        importance=HIGH,
        ignore_case=True,
        doc="RESTORE_BACKUP reads what a storage sink wrote under topics.dir, GENERIC any objects. By default what a "
        "sink wrote if format.class is set.",
    )
    topic: str | None = option(
        default=None, importance=HIGH, validator=non_empty, doc="Topic for the records, if names do not tell it."
    )
    prefix: str = option(default="", importance=HIGH, doc="What the keys of the objects to read begin with.")
    file_name_template: str = option(
        default=".*",
        importance=HIGH,
        doc="In mode GENERIC, what is found in the keys of objects to read: a regular expression, or a template with "
        "{{topic}}, {{partition}}, {{start_offset}} and {{timestamp}}.",
    )
    topic_regex_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="In mode GENERIC, topics and the keys of their objects, as topic:regex; others are not read.",
    )
    input_format: str | None = option(
        default=None, importance=MEDIUM, doc="The same as format, under the name of Aiven's sources."
    )
    transformer_max_buffer_size: int | None = option(
        default=None,
        importance=LOW,
        doc="The same as bytes.chunk.size, under the name of Aiven's sources, whose default is 4096.",
    )
    file_compression_type: str = option(
        default="none",
        importance=MEDIUM,
        doc="none or gzip. Objects with keys on .gz are unpacked in any case; with gzip there must be no others.",
    )
    distribution_type: Distribution = option(
        default=Distribution.OBJECT_HASH,
        importance=MEDIUM,
        doc="Whether tasks share objects by a hash of their keys or by the partitions in their names. In mode "
        "RESTORE_BACKUP always by topic and partition, so that the order of offsets is kept.",
    )
    format_class: str | None = option(
        default=None, importance=HIGH, doc="In mode RESTORE_BACKUP, the format of the sink: AvroFormat, JsonFormat ..."
    )
    keys_format_class: str = option(
        default="AvroFormat", importance=LOW, doc="In mode RESTORE_BACKUP, the format of objects with keys."
    )
    headers_format_class: str = option(
        default="AvroFormat", importance=LOW, doc="In mode RESTORE_BACKUP, the format of objects with headers."
    )
    format_bytearray_separator: str = option(
        default="\\n", importance=LOW, doc="In mode RESTORE_BACKUP, what ends each value of ByteArrayFormat."
    )
    topics_dir: str = option(
        default="topics", importance=MEDIUM, doc="In mode RESTORE_BACKUP, the folder of the topics."
    )
    directory_delim: str = option(default="/", importance=LOW, doc="What is between folders.")
    file_delim: str = option(default="+", importance=LOW, doc="What is between topic, partition and offset.")
    tombstone_encoded_partition: str = option(
        default="tombstone", importance=LOW, doc="The folder with the keys of records without a value."
    )
    store_kafka_keys: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether each object must have one with keys beside it. Without this, keys are read where there are some; "
        "set it to restore while the sink still writes.",
    )
    store_kafka_headers: bool = option(
        default=False, importance=MEDIUM, doc="Whether each object must have one with headers beside it."
    )
    envelope: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether rows are whole records, as Aiven's sinks write them with format.output.fields: their fields key, "
        "value, timestamp and headers become those of the record.",
    )
    envelope_base64: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The parts of an envelope whose texts are bytes in base64, as Aiven's sinks write: key, value, headers.",
    )
    max_poll_records: int = option(default=500, importance=LOW, validator=at_least(1), doc="Most records of a poll.")
    record_batch_max_size: int | None = option(
        default=None,
        importance=LOW,
        validator=at_least(1),
        doc="The same as max.poll.records, under the name of Confluent's sources.",
    )
    poll_interval_ms: Long = option(
        default=60_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="How often to list objects while there are no new ones.",
    )
    native_start_key: str | None = option(
        default=None, importance=LOW, doc="Only objects whose keys come after this one are read."
    )
    finished_action: FinishedAction = option(
        default=FinishedAction.LEAVE,
        importance=MEDIUM,
        doc="What to do with an object after all its records are published and its offset is committed.",
    )
    finished_prefix: str | None = option(
        default=None, importance=MEDIUM, doc="What is put before the key of an object for finished.action=move."
    )
    behavior_on_error: str = option(
        default="fail", importance=LOW, doc="Must be fail; set errors.tolerance=all to pass over bad records."
    )
    task_index: int = option(default=0, importance=LOW, internal=True, doc="The index of the task.")
    task_count: int = option(default=1, importance=LOW, internal=True, doc="The number of tasks.")
    split_objects: str = option(
        default="", importance=LOW, internal=True, doc="The keys of the objects of a split, as JSON."
    )

    other_keys: ClassVar[Mapping[str, str]] = {}
    """Keys of Java's sources, and what they are here."""
    scheme: ClassVar[str]

    @classmethod
    def parse(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> Self:
        """Parse properties, including those under other names."""
        return super().parse(cls._own(props), secret_keys=secret_keys)

    @classmethod
    def validate(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> tuple[ConfigValue, ...]:
        """Validate properties, including those under other names."""
        return super().validate(cls._own(props), secret_keys=secret_keys)

    @classmethod
    def _own(cls, props: Mapping[str, object]) -> Mapping[str, object]:
        given = dict(props)
        for key, own in cls.other_keys.items():
            if given.get(key) is not None and given.get(own) is None:
                given[own] = given[key]
        return given

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from self.reading_mistakes(self.file_name_template)
        yield from self._format_mistakes()
        try:
            names = self.names
        except (ValueError, re.error) as error:
            yield ConfigError("file.name.template", self.file_name_template, f"{error}.")
            return
        if self.topic is None and not names.tells_topic:
            yield ConfigError("topic", None, "Name the topic, or have file.name.template tell it by {{topic}}.")
        if self.distribution_type is Distribution.PARTITION and not names.tells_partition:
            told = "file.name.template does not tell the partition by {{partition}}: use object_hash."
            yield ConfigError("distribution.type", "partition", told)
        if self.finished_action is FinishedAction.MOVE and not self.finished_prefix:
            yield ConfigError("finished.prefix", None, "finished.action=move needs it: name a prefix.")
        elif self.finished_action is FinishedAction.MOVE and str(self.finished_prefix).startswith(self.key_prefix):
            told = "Objects with it would be read again: it must not begin with the prefix of the objects to read."
            yield ConfigError("finished.prefix", self.finished_prefix, told)
        for key, value, allowed in (
            ("behavior.on.error", self.behavior_on_error.lower(), ("fail",)),
            ("file.compression.type", self.file_compression_type.lower(), ("none", "gzip")),
            *(("envelope.base64", part, ("key", "value", "headers")) for part in self.envelope_base64),
        ):
            if value not in allowed:
                yield ConfigError(key, value, f"Use {' or '.join(allowed)}.")
        for key, value, why in given_keys(_REFUSED, self.originals):
            yield ConfigError(key, value, why)
        yield from self.store_mistakes()

    def _format_mistakes(self) -> Iterable[ConfigError]:
        if self.input_format is not None and self.input_format.lower() not in ("bytes", "avro", "jsonl", "parquet"):
            yield ConfigError("input.format", self.input_format, "Use bytes, avro, jsonl or parquet.")
        classes = {
            "format.class": self.format_class,
            "keys.format.class": self.keys_format_class,
            "headers.format.class": self.headers_format_class,
        }
        for key, name in classes.items():
            if name is not None and _form_of(name) is None:
                yield ConfigError(key, name, _ROWS if name.endswith(("CsvFormat", "TsvFormat")) else _HELD)
        if self.restores and self.format_class is None:
            yield ConfigError("format.class", None, "mode=RESTORE_BACKUP needs the format that the sink wrote.")

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        try:
            place = parse_location(self.url, key=self.bucket_key)
        except ConfigError as error:
            yield error
        else:
            yield from self.object_mistakes(place, self.url, self.bucket_key)

    bucket_key: ClassVar[str]

    def check_system(self) -> Iterable[ConfigError]:
        """Look into the bucket, and yield why it cannot be read."""
        store = open_store(parse_location(self.url), self)
        if problem := store_problem(store, self.key_prefix.rpartition("/")[0], writes=False):
            yield ConfigRuleError(problem, self.bucket_key)

    @property
    def keys_of_split(self) -> Sequence[str] | None:
        """The objects of a split; ``None`` for an endless task."""
        return cast("list[str]", json.loads(self.split_objects)) if self.split_objects else None

    @property
    def queue(self) -> SqsQueue | None:
        """The queue whose messages tell of new objects."""
        return None

    @property
    def url(self) -> str:
        """The URL of the bucket."""
        raise NotImplementedError

    @property
    def address(self) -> Address:
        """The address of the bucket."""
        return parse_address(self.bucket_key, self.url)

    @property
    def struct_name(self) -> str:
        """The name of the schema of rows that have none of their own."""
        return schema_name(self.topic) if self.topic else "Row"

    @property
    def restores(self) -> bool:
        """Whether the objects are those of a storage sink."""
        if self.mode is None:
            return self.format_class is not None
        return self.mode is SourceMode.RESTORE_BACKUP

    @cached_property
    def names(self) -> TemplateNames | TopicNames | RestoredNames:
        """What the names of objects tell."""
        if self.restores:
            folder = self.directory_delim.join(part for part in (self.prefix.rstrip("/"), self.topics_dir) if part)
            return RestoredNames(folder, self.file_delim, self.directory_delim, self.tombstone_encoded_partition)
        if self.topic_regex_list:
            return TopicNames(self.topic_regex_list)
        return TemplateNames(self.file_name_template)

    @property
    def key_prefix(self) -> str:
        """What the keys of the objects to read begin with."""
        if not self.restores:
            return self.prefix
        return "".join(f"{part}{self.directory_delim}" for part in (self.prefix.rstrip("/"), self.topics_dir) if part)

    @property
    def batch_size(self) -> int:
        """The most records of a poll."""
        return self.record_batch_max_size or self.max_poll_records

    def reading_of(self, part: str) -> ReadingOptions:
        """Return how objects with values, keys or headers are read."""
        if not self.restores:
            return self._generic_reading()
        form = _form_of(
            {"keys": self.keys_format_class, "headers": self.headers_format_class}.get(part, self.format_class)
        )
        own = {"format": form or "avro", "record.max.bytes": str(self.record_max_bytes), "settle.ms": "0"}
        if form == "bytes":
            own["bytes.separator"] = self.format_bytearray_separator
        return _RestoredReading.parse(own)

    def _generic_reading(self) -> ReadingOptions:
        given = {key: value for key, value in self.originals.items() if value is not None}
        given |= {"settle.ms": "0"}
        if self.input_format is not None or self.is_aiven:
            given["format"] = (self.input_format or "bytes").lower()
        if given.get("format") == FileFormat.BYTES and self.is_aiven:
            given["bytes.chunk.size"] = str(self.transformer_max_buffer_size or 4096)
        return ReadingOptions.parse(given)

    @property
    def is_aiven(self) -> bool:
        """Whether the defaults are those of Aiven's sources."""
        return False

    @property
    def keys_are_names(self) -> bool:
        """Whether the key of a record is that of its object, as bytes."""
        return False


class S3SourceConfig(S3LoginOptions, ObjectSourceConfig):
    """The options of the S3 source: its own, Aiven's and Confluent's."""

    aws_s3_bucket_name: str | None = option(
        default=None,
        importance=HIGH,
        doc="The bucket, under the name of Aiven's source; input.format is then bytes by default.",
    )

    sqs_url: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=matches(r"https?://[^/@]+/.+", "URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME"),
        doc="The queue of Amazon SQS that is told of new objects by S3, SNS or EventBridge. The bucket is then listed "
        "once, when the task starts. There is one task.",
    )
    sqs_visibility_timeout_seconds: int = option(
        default=120,
        importance=LOW,
        validator=between(1, 43_200),
        doc="After how long the messages of a killed task come again. It is renewed while an object is read.",
    )

    other_keys: ClassVar[Mapping[str, str]] = {
        "aws.s3.prefix": "prefix",
        "aws.s3.region": "s3.region",
        "aws.s3.endpoint": "s3.endpoint",
        "store.url": "s3.endpoint",
        "s3.poll.interval.ms": "poll.interval.ms",
        **PROVIDER_KEYS,
    }
    bucket_key = "s3.bucket.name"

    @property
    def queue(self) -> SqsQueue | None:
        """The queue whose messages tell of new objects."""
        if self.sqs_url is None:
            return None
        return SqsQueue(self.s3_account, self.sqs_url, self.sqs_visibility_timeout_seconds)

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store and the queue."""
        yield from super().store_mistakes()
        yield from self.role_mistakes()
        for key, url in {"sqs.url": self.sqs_url, "aws.sts.config.endpoint": self.aws_sts_config_endpoint}.items():
            if url is not None:
                yield from self.host_mistakes(key, url)

    @property
    def url(self) -> str:
        """The URL of the bucket."""
        return f"s3://{self.s3_bucket_name or self.aws_s3_bucket_name or ''}/"

    @property
    def is_aiven(self) -> bool:
        """Whether the bucket is given under the name of Aiven's source."""
        return self.aws_s3_bucket_name is not None and self.format is FileFormat.AUTO

    @property
    def keys_are_names(self) -> bool:
        """Whether the key of a record is that of its object, as with Aiven's source."""
        return self.aws_s3_bucket_name is not None and not self.restores


class GcsSourceConfig(ObjectSourceConfig):
    """The options of the source of Google Cloud Storage."""

    gcs_bucket_name: str = option(importance=HIGH, validator=non_empty, doc="The bucket.")

    other_keys: ClassVar[Mapping[str, str]] = {"gcs.poll.interval.ms": "poll.interval.ms"}
    bucket_key = "gcs.bucket.name"

    @property
    def url(self) -> str:
        """The URL of the bucket."""
        return f"gs://{self.gcs_bucket_name}/"


class AzureBlobSourceConfig(ObjectSourceConfig):
    """The options of the source of Azure Blob Storage."""

    azblob_account_name: str = option(importance=HIGH, validator=non_empty, doc="The storage account.")
    azblob_container_name: str = option(importance=HIGH, validator=non_empty, doc="The container.")

    other_keys: ClassVar[Mapping[str, str]] = {
        "azblob.poll.interval.ms": "poll.interval.ms",
        "azure.blob.prefix": "prefix",
    }
    bucket_key = "azblob.container.name"

    @property
    def url(self) -> str:
        """The URL of the container."""
        return f"abfs://{self.azblob_container_name}@{self.azblob_account_name}.dfs.core.windows.net/"


def _form_of(name: str | None) -> str | None:
    simple = (name or "").rpartition(".")[2].lower().removesuffix("format")
    return _FORMATS.get(simple)

"""The options of the MongoDB source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal, TypeAlias

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    invalid_value,
    non_empty,
    option,
    validator,
)
from connect.errors import ConfigError, DataError
from connect.internals.java.regex import valid_java_regex
from connect.kits.mongodb.checks import collection_names, stream_problems
from connect.kits.mongodb.extended_json import parse_array, parse_document
from connectors.mongodb.classes import java_class
from connectors.mongodb.connection import ConnectionConfig
from connectors.mongodb.source.topics import TopicMapper

__all__ = ["LostToken", "MongoSourceConfig", "StartupMode", "operation_time"]

_SOURCE: Final = "com.mongodb.kafka.connect.source"
_MAPPER: Final = f"{_SOURCE}.topic.mapping.DefaultTopicMapper"
_FORMATTERS: Final = tuple(f"{_SOURCE}.json.formatter.{name}Json" for name in ("Default", "Extended", "Simplified"))
_KEY_SCHEMA: Final = '{"type": "record", "name": "keySchema", "fields": [{"name": "_id", "type": "string"}]}'
_NS: Final = '"fields": [{"name": "db", "type": "string"}, {"name": "coll", "type": ["string", "null"]}]'
_VALUE_SCHEMA: Final = f"""{{"name": "ChangeStream", "type": "record", "fields": [
 {{"name": "_id", "type": "string"}},
 {{"name": "operationType", "type": ["string", "null"]}},
 {{"name": "fullDocumentBeforeChange", "type": ["string", "null"]}},
 {{"name": "fullDocument", "type": ["string", "null"]}},
 {{"name": "ns", "type": [{{"name": "ns", "type": "record", {_NS}}}, "null"]}},
 {{"name": "to", "type": [{{"name": "to", "type": "record", {_NS}}}, "null"]}},
 {{"name": "documentKey", "type": ["string", "null"]}},
 {{"name": "updateDescription", "type": [{{"name": "updateDescription", "type": "record", "fields": [
  {{"name": "updatedFields", "type": ["string", "null"]}},
  {{"name": "removedFields", "type": [{{"type": "array", "items": "string"}}, "null"]}},
  {{"name": "truncatedArrays", "type": [{{"type": "array", "items": {{"type": "record", "name": "truncatedArray",
   "fields": [{{"name": "field", "type": "string"}}, {{"name": "newSize", "type": "int"}}]}}}}, "null"]}},
  {{"name": "disambiguatedPaths", "type": ["string", "null"]}}]}}, "null"]}},
 {{"name": "clusterTime", "type": ["string", "null"]}},
 {{"name": "txnNumber", "type": ["long", "null"]}},
 {{"name": "lsid", "type": [{{"name": "lsid", "type": "record",
  "fields": [{{"name": "id", "type": "string"}}, {{"name": "uid", "type": "string"}}]}}, "null"]}}]}}"""
FullDocument: TypeAlias = Literal["", "default", "updateLookup", "whenAvailable", "required"]
_KEEPING_ORDER: Final = frozenset(
    {"$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact"}
)
"""Stages after which documents come in the order in which they were read, at most one for each."""


class StartupMode(StrEnum):
    """Where to begin if no offset is stored."""

    LATEST = "latest"
    TIMESTAMP = "timestamp"
    COPY_EXISTING = "copy_existing"


class LostToken(StrEnum):
    """What to do if the server no longer has the changes after the stored position."""

    FAIL = "fail"
    LATEST = "latest"
    COPY_EXISTING = "copy_existing"


@validator("JSON array of pipeline stages")
def _pipeline(key: str, value: str) -> None:
    try:
        stages = parse_array(value) if value.strip() else []
    except DataError as error:
        raise invalid_value(key, value, str(error)) from error
    if not all(isinstance(stage, dict) and stage for stage in stages):
        raise invalid_value(key, value, 'Each stage must be an object, such as {"$match": {"operationType": "insert"}}')


@validator("JSON object")
def _document(key: str, value: str) -> None:
    try:
        if value.strip():
            parse_document(value)
    except DataError as error:
        raise invalid_value(key, value, str(error)) from error


def operation_time(text: str) -> tuple[int, int] | None:
    """Return the seconds and the count of a time to begin at; ``None`` for an empty text."""
    given = text.strip()
    if not given:
        return None
    if given.lstrip("+-").isdecimal():
        return int(given), 0
    if given.startswith("{"):
        timestamp: Any = parse_document(f'{{"at": {given}}}')["at"]
        if not hasattr(timestamp, "inc"):
            raise ValueError(text)
        return timestamp.time, timestamp.inc
    moment = dt.datetime.fromisoformat(given)
    if moment.tzinfo is None:
        raise ValueError(text)
    return int(moment.timestamp()), 0


@validator("seconds since the epoch, an ISO date, or a BSON timestamp as Extended JSON")
def _operation_time(key: str, value: str) -> None:
    try:
        operation_time(value)
    except (ValueError, DataError, OverflowError) as error:
        reason = 'Write seconds since the epoch, 2024-01-02T03:04:05Z or {"$timestamp": {"t": 1700000000, "i": 0}}'
        raise invalid_value(key, value, reason) from error


@validator("Java regex")
def _regex(key: str, value: str) -> None:
    valid_java_regex(key, value)


class MongoSourceConfig(ConnectionConfig):
    """What to watch, and how to publish the changes."""

    connection_uri: Password = option(
        default=Password("mongodb://localhost:27017,localhost:27018,localhost:27019"),
        importance=HIGH,
        doc="The connection string, such as mongodb://user:password@host1,host2/?replicaSet=rs0. It may hold any "
        "option of the driver. Hidden, as it may hold a password.",
    )
    database: str = option(default="", importance=MEDIUM, doc="The database to watch; by default all of them.")
    collection: str = option(
        default="", importance=MEDIUM, doc="The collection to watch; by default all of the database."
    )
    pipeline: str = option(
        default="[]",
        importance=MEDIUM,
        validator=_pipeline,
        doc='Stages that the server applies to the change events: [{"$match": {"operationType": "insert"}}].',
    )
    batch_size: int = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Maximum number of events per answer of the server; 0 leaves it to the server.",
    )
    publish_full_document_only: bool = option(
        default=False,
        importance=HIGH,
        doc="Whether to publish the changed document instead of the event. Updates are then looked up, unless "
        "change.stream.full.document says otherwise; deletions are not published.",
    )
    publish_full_document_only_tombstone_on_delete: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a deletion is published as a record without a value, with publish.full.document.only.",
    )
    change_stream_document_key_as_key: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether the record's key is the key of the document. Otherwise it is the position of the event.",
    )
    change_stream_full_document_before_change: Literal["", "default", "off", "whenAvailable", "required"] = option(
        default="",
        importance=HIGH,
        doc="Whether events have the document before the change. The collection must keep it: collMod with "
        "changeStreamPreAndPostImages.",
    )
    change_stream_full_document: FullDocument = option(
        default="",
        importance=HIGH,
        doc="Whether events of updates have the whole document: as it is when the event is read (updateLookup) or "
        "as it was after the change (whenAvailable, required).",
    )
    change_stream_show_expanded_events: bool = option(
        default=False, importance=MEDIUM, doc="Whether there are events of indexes, views and collections, too."
    )
    collation: str = option(
        default="", importance=HIGH, validator=_document, doc="The collation of comparisons in the pipeline, as JSON."
    )
    poll_max_batch_size: int = option(
        default=1000, importance=LOW, validator=at_least(1), doc="Maximum number of records per poll."
    )
    poll_await_time_ms: Long = option(
        default=5000,
        importance=LOW,
        validator=at_least(1),
        doc="How long the server waits for changes before it answers that there are none; at most a second.",
    )
    topic_mapper: str = option(
        default=_MAPPER, importance=HIGH, validator=java_class(_MAPPER), doc="What chooses the topic of an event."
    )
    topic_separator: str = option(default=".", importance=LOW, doc="Text between the parts of a topic's name.")
    topic_prefix: str = option(default="", importance=LOW, doc="First part of the names of topics.")
    topic_suffix: str = option(default="", importance=LOW, doc="Last part of the names of topics.")
    topic_namespace_map: str = option(
        default="",
        importance=HIGH,
        validator=_document,
        doc='Topics of namespaces, as JSON: {"shop": "s", "shop.orders": "o", "/^x.*/": "{db}{sep}all", "*": "rest"}.',
    )
    output_format_key: Literal["json", "bson", "schema"] = option(
        default="json", importance=HIGH, ignore_case=True, doc="The form of keys: JSON text, BSON bytes, or a struct."
    )
    output_format_value: Literal["json", "bson", "schema"] = option(
        default="json", importance=HIGH, ignore_case=True, doc="The form of values: JSON text, BSON bytes, or a struct."
    )
    output_json_formatter: str = option(
        default=_FORMATTERS[0],
        importance=MEDIUM,
        validator=java_class(*_FORMATTERS),
        doc="The form of JSON. DefaultJson: the older strict form. ExtendedJson: canonical, every number with its "
        "type. SimplifiedJson: plain numbers, dates as ISO text.",
    )
    output_schema_infer_value: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the schema of a value is made of its document, with output.format.value=schema.",
    )
    output_schema_key: str = option(
        default=_KEY_SCHEMA, importance=HIGH, doc="The Avro schema of keys, with output.format.key=schema."
    )
    output_schema_value: str = option(
        default=_VALUE_SCHEMA, importance=HIGH, doc="The Avro schema of values, with output.format.value=schema."
    )
    startup_mode: Literal["", "latest", "timestamp", "copy_existing"] = option(
        default="",
        importance=MEDIUM,
        ignore_case=True,
        doc="Where to begin if no offset is stored: with the next change (latest, the default), at a time, or with a "
        "copy of the existing documents.",
    )
    startup_mode_timestamp_start_at_operation_time: str = option(
        default="", importance=MEDIUM, validator=_operation_time, doc="When to begin, with startup.mode=timestamp."
    )
    startup_mode_copy_existing_pipeline: str = option(
        default="",
        importance=MEDIUM,
        validator=_pipeline,
        doc="Stages that are applied to the existing documents before they become events.",
    )
    startup_mode_copy_existing_namespace_regex: str = option(
        default="", importance=MEDIUM, validator=_regex, doc="Which namespaces to copy, such as shop\\.(orders|items)."
    )
    startup_mode_copy_existing_allow_disk_use: bool = option(
        default=True, importance=MEDIUM, doc="Whether the server may use its disk for the pipeline of the copy."
    )
    startup_mode_copy_existing_max_threads: int = option(
        default=1,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Accepted for compatibility: collections are copied one after the other, so that the copy can be resumed.",
    )
    startup_mode_copy_existing_queue_size: int = option(
        default=16000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Accepted for compatibility: what is read ahead is limited by its bytes.",
    )
    copy_existing: bool = option(default=False, importance=MEDIUM, doc="Older form of startup.mode=copy_existing.")
    copy_existing_pipeline: str = option(
        default="",
        importance=MEDIUM,
        validator=_pipeline,
        doc="Older name of startup.mode.copy.existing.pipeline.",
    )
    copy_existing_namespace_regex: str = option(
        default="",
        importance=MEDIUM,
        validator=_regex,
        doc="Older name of startup.mode.copy.existing.namespace.regex.",
    )
    copy_existing_allow_disk_use: bool = option(
        default=True, importance=MEDIUM, doc="Older name of startup.mode.copy.existing.allow.disk.use."
    )
    copy_existing_max_threads: int = option(
        default=1,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Older name of startup.mode.copy.existing.max.threads.",
    )
    copy_existing_queue_size: int = option(
        default=16000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Older name of startup.mode.copy.existing.queue.size.",
    )
    lost_token_action: LostToken = option(
        default=LostToken.FAIL,
        importance=MEDIUM,
        ignore_case=True,
        doc="What to do if the server no longer has the changes after the stored position: fail; go on with the next "
        "change, losing those between (latest); or copy the existing documents and go on (copy_existing).",
    )
    mongo_errors_tolerance: Literal["", "none", "all"] = option(
        default="",
        importance=MEDIUM,
        ignore_case=True,
        doc="What to do with events that do not fit the schema: none fails the task, all skips them, to the dead "
        "letter queue if one is named. By default errors.tolerance decides.",
    )
    mongo_errors_log_enable: bool | None = option(
        default=None,
        importance=MEDIUM,
        doc="Accepted for compatibility: events that are skipped are always logged or in the dead letter queue.",
    )
    mongo_errors_deadletterqueue_topic_name: str = option(
        default="",
        importance=MEDIUM,
        doc="The topic for events that do not fit the schema, as JSON. By default errors.deadletterqueue.topic.name.",
    )
    heartbeat_interval_ms: Long = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="After how many milliseconds without a record a heartbeat is published; 0 for never. The position is "
        "stored without heartbeats, too.",
    )
    heartbeat_topic_name: str = option(
        default="__mongodb_heartbeats", importance=MEDIUM, validator=non_empty, doc="The topic for heartbeats."
    )
    offset_partition_name: str = option(
        default="", importance=MEDIUM, doc="The name of the source partition; by default hosts, database, collection."
    )

    always_checks_system = True
    choices: ClassVar[Mapping[str, str]] = {"database": "databases", "collection": "collections"}

    def choices_of(self, key: str) -> Iterable[str]:
        """Yield the databases that have collections, or the collections of the chosen one."""
        found = list(collection_names(self.client()))
        if key == "database":
            return [database for database, _ in found]
        return [name for database, name in found if self.database in ("", database)]

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for problem in stream_problems(self.client):
            yield ConfigRuleError(problem, "connection.uri")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if self.collection and not self.database:
            yield ConfigRuleError("collection requires database: set it, or remove collection.", "database")
        if self.startup_mode == "timestamp" and not self.startup_mode_timestamp_start_at_operation_time:
            key = "startup.mode.timestamp.start.at.operation.time"
            yield ConfigRuleError(f"startup.mode=timestamp requires {key}: set it.", key)
        if self.publish_full_document_only_tombstone_on_delete and not self.publish_full_document_only:
            key = "publish.full.document.only.tombstone.on.delete"
            yield ConfigRuleError(f"{key} requires publish.full.document.only=true: set it, or remove {key}.", key)
        yield from self._schema_errors()
        yield from self._topic_errors()

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        for key in ("max.threads", "queue.size"):
            for prefix in ("startup.mode.copy.existing", "copy.existing"):
                if self.originals.get(f"{prefix}.{key}"):
                    yield f"The key {prefix}.{key} has no effect: collections are copied one after the other."

    @property
    def mode(self) -> StartupMode:
        """Where to begin."""
        if self.startup_mode:
            return StartupMode(self.startup_mode.lower())
        return StartupMode.COPY_EXISTING if self.copy_existing else StartupMode.LATEST

    @property
    def full_document(self) -> str | None:
        """What events of updates have of the document."""
        if self.change_stream_full_document:
            return self.change_stream_full_document
        return "updateLookup" if self.publish_full_document_only else None

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The stages that are applied to events."""
        return parse_array(self.pipeline or "[]")

    @property
    def copy_stages(self) -> list[dict[str, Any]]:
        """The stages that are applied to existing documents."""
        return parse_array(self.startup_mode_copy_existing_pipeline or self.copy_existing_pipeline or "[]")

    @property
    def copy_regex(self) -> str:
        """The Java regular expression of the namespaces to copy; empty for all."""
        return self.startup_mode_copy_existing_namespace_regex or self.copy_existing_namespace_regex

    @property
    def copies_with_disk(self) -> bool:
        """Whether the server may use its disk for the copy."""
        given = self.originals.get("startup.mode.copy.existing.allow.disk.use")
        return self.startup_mode_copy_existing_allow_disk_use if given else self.copy_existing_allow_disk_use

    @property
    def copies_in_order(self) -> bool:
        """Whether the copied events come in the order of the documents, so that a copy can be resumed."""
        return all(_KEEPING_ORDER.issuperset(stage) for stage in (*self.copy_stages, *self.stages))

    @property
    def is_tolerant(self) -> bool:
        """Whether events that do not fit the schema are skipped."""
        given = self.mongo_errors_tolerance or (self.originals.get("errors.tolerance") or "none").strip()
        return given.lower() == "all"

    @property
    def dead_letter_topic(self) -> str:
        """The topic for events that do not fit the schema; empty for none."""
        own = self.mongo_errors_deadletterqueue_topic_name
        return own or (self.originals.get("errors.deadletterqueue.topic.name") or "").strip()

    def mapper_of_topics(self) -> TopicMapper:
        """Return what chooses the topics; a ``DataError`` says what is wrong with topic.namespace.map."""
        return TopicMapper(
            self.topic_namespace_map,
            prefix=self.topic_prefix,
            suffix=self.topic_suffix,
            separator=self.topic_separator,
        )

    def _schema_errors(self) -> Iterator[ConfigError]:
        from connectors.mongodb.source.schemas import schema_from_avro  # noqa: PLC0415 - it needs the driver

        for part in ("key", "value"):
            key = f"output.schema.{part}"
            is_inferred = part == "value" and self.output_schema_infer_value
            if getattr(self, f"output_format_{part}").lower() == "schema" and not is_inferred:
                try:
                    schema_from_avro(getattr(self, f"output_schema_{part}"))
                except DataError as error:
                    yield ConfigRuleError(f"{key} is not usable: {error}", key)

    def _topic_errors(self) -> Iterator[ConfigError]:
        try:
            self.mapper_of_topics()
        except DataError as error:
            yield ConfigRuleError(f"topic.namespace.map is not usable: {error}", "topic.namespace.map")

"""The options of the MongoDB sink. Those of a topic may be overridden by ``topic.override.TOPIC.KEY``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    invalid_value,
    non_empty,
    option,
    validator,
)
from connect.errors import ConfigError, DataError
from connect.kits.mongodb.checks import transaction_problems
from connect.kits.mongodb.extended_json import parse_array
from connectors.mongodb.classes import class_named, java_class, java_classes
from connectors.mongodb.connection import ConnectionConfig
from connectors.mongodb.sink.date_pattern import DatePattern

__all__ = ["Delivery", "MongoSinkConfig", "renamings"]

_OVERRIDE: Final = "topic.override."
_NOT_OVERRIDABLE: Final = ("connection.", "server.api.", "topics", "delivery", "offsets.collection", "provider")
_SINK: Final = "com.mongodb.kafka.connect.sink"
_DEFAULT_FORMAT: Final = (
    "yyyy-MM-dd[['T'][ ]][HH:mm:ss[[.][SSSSSS][SSS]][ ]VV[ ]'['VV']'][HH:mm:ss[[.][SSSSSS][SSS]][ ]X]"
    "[HH:mm:ss[[.][SSSSSS][SSS]]]"
)

_ID_STRATEGIES: Final = tuple(
    f"{_SINK}.processor.id.strategy.{name}Strategy"
    for name in (
        *("BsonOid", "KafkaMetaData", "FullKey", "PartialKey", "PartialValue", "ProvidedInKey", "ProvidedInValue"),
        *("Uuid", "UuidProvidedInKey", "UuidProvidedInValue"),
    )
)
_WRITE_STRATEGIES: Final = tuple(
    f"{_SINK}.writemodel.strategy.{name}Strategy"
    for name in (
        *("DefaultWriteModel", "InsertOneDefault", "ReplaceOneDefault", "ReplaceOneBusinessKey", "UpdateOneDefault"),
        *("UpdateOneTimestamps", "UpdateOneBusinessKeyTimestamp", "DeleteOneDefault", "DeleteOneBusinessKey"),
    )
)
_DELETE_STRATEGIES: Final = tuple(
    f"{_SINK}.writemodel.strategy.{name}Strategy"
    for name in ("DeleteOneDefault", "DeleteOneBusinessKey", "DeleteOneTombstoneBusinessKey")
)
_PROCESSORS: Final = tuple(
    f"{_SINK}.processor.{name}"
    for name in (
        *("DocumentIdAdder", "AllowListKeyProjector", "AllowListValueProjector", "BlockListKeyProjector"),
        *("BlockListValueProjector", "WhitelistKeyProjector", "WhitelistValueProjector", "BlacklistKeyProjector"),
        *("BlacklistValueProjector", "KafkaMetaAdder", "NullFieldValueRemover"),
        *("field.renaming.RenameByMapping", "field.renaming.RenameByRegExp"),
    )
)
_MAPPERS: Final = tuple(f"{_SINK}.namespace.mapping.{name}NamespaceMapper" for name in ("Default", "FieldPath"))
_HANDLERS: Final = tuple(
    f"{_SINK}.cdc.{name}"
    for name in (
        *("mongodb.ChangeStreamHandler", "debezium.mongodb.ChangeStreamHandler", "debezium.mongodb.MongoDbHandler"),
        *("debezium.rdbms.RdbmsHandler", "debezium.rdbms.mysql.MysqlHandler"),
        *("debezium.rdbms.postgres.PostgresHandler", "qlik.rdbms.RdbmsHandler"),
        "attunity.rdbms.oracle.AttunityRdbmsHandler",
    )
)


class Delivery(StrEnum):
    """How often a record may be written if the task is killed."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@validator("JSON array of objects")
def _objects(key: str, value: str) -> None:
    try:
        items = parse_array(value) if value.strip() else []
    except DataError as error:
        raise invalid_value(key, value, str(error)) from error
    if not all(isinstance(item, dict) for item in items):
        raise invalid_value(key, value, "Each item must be an object")


ProjectionType = Literal["none", "allowlist", "blocklist", "whitelist", "blacklist"]
OptionalProjectionType = Literal["", "none", "allowlist", "blocklist", "whitelist", "blacklist"]


class MongoSinkConfig(ConnectionConfig):
    """Where and how to write."""

    passed_keys: ClassVar[tuple[str, ...] | None] = (_OVERRIDE,)
    database: str = option(importance=HIGH, validator=non_empty, doc="The database to write to.")
    collection: str = option(
        default="", importance=HIGH, doc="The collection to write to; by default that with the name of the topic."
    )
    delivery: Delivery = option(
        default=Delivery.AT_LEAST_ONCE,
        importance=MEDIUM,
        doc="at-least-once: some records are written again after a crash. exactly-once: the offsets are stored in a "
        "collection of the database, in the same transaction as the documents, and consumption continues from there. "
        "It requires a replica set or a sharded cluster.",
    )
    offsets_collection: str = option(
        default="sluice_offsets",
        importance=LOW,
        validator=non_empty,
        doc="The collection for the offsets of delivery=exactly-once, which is created if missing. Connectors may "
        "share it.",
    )
    namespace_mapper: str = option(
        default=_MAPPERS[0],
        importance=HIGH,
        validator=java_class(*_MAPPERS),
        doc="How to choose database and collection. DefaultNamespaceMapper: by database and collection. "
        "FieldPathNamespaceMapper: by fields of the record.",
    )
    namespace_mapper_key_database_field: str = option(
        default="", importance=MEDIUM, doc="The path of the key's field with the database (FieldPathNamespaceMapper)."
    )
    namespace_mapper_key_collection_field: str = option(
        default="", importance=MEDIUM, doc="The path of the key's field with the collection (FieldPathNamespaceMapper)."
    )
    namespace_mapper_value_database_field: str = option(
        default="", importance=MEDIUM, doc="The path of the value's field with the database (FieldPathNamespaceMapper)."
    )
    namespace_mapper_value_collection_field: str = option(
        default="",
        importance=MEDIUM,
        doc="The path of the value's field with the collection (FieldPathNamespaceMapper).",
    )
    namespace_mapper_error_if_invalid: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a record without such a field, or with one that is not a string, is an error. Otherwise it "
        "goes to database and collection as without the mapper.",
    )
    delete_on_null_values: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a record without a value (tombstone) deletes the document of its key. Otherwise it is an error.",
    )
    writemodel_strategy: str = option(
        default=_WRITE_STRATEGIES[0],
        importance=LOW,
        validator=java_class(*_WRITE_STRATEGIES),
        doc="How to write a record with a value. The default replaces the document with the same _id or adds it, and "
        "inserts into time series collections.",
    )
    delete_writemodel_strategy: str = option(
        default=_DELETE_STRATEGIES[0],
        importance=LOW,
        validator=java_class(*_DELETE_STRATEGIES),
        doc="How to find the document to delete with delete.on.null.values.",
    )
    max_batch_size: int = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Maximum number of records per bulk write; 0 for as many as the consumer returns at once.",
    )
    bulk_write_ordered: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether the writes of a bulk happen one after the other. Unordered ones are faster in a sharded cluster, "
        "but two records of one document may be written in the wrong order.",
    )
    rate_limiting_timeout: int = option(
        default=0, importance=LOW, validator=at_least(0), doc="Milliseconds to wait after rate.limiting.every.n bulks."
    )
    rate_limiting_every_n: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="After how many bulk writes to wait for rate.limiting.timeout; 0 for never.",
    )
    post_processor_chain: tuple[str, ...] = option(
        default=(_PROCESSORS[0],),
        importance=LOW,
        validator=java_classes(*_PROCESSORS),
        doc="What to do with the documents before they are written, in order. DocumentIdAdder comes first if it is not "
        "listed.",
    )
    key_projection_type: ProjectionType = option(
        default="none", importance=LOW, ignore_case=True, doc="Whether key.projection.list keeps or removes fields."
    )
    key_projection_list: str = option(
        default="",
        importance=LOW,
        doc="Paths of the key's fields, separated by commas: a.b, with * for any name and ** for all below.",
    )
    value_projection_type: ProjectionType = option(
        default="none", importance=LOW, ignore_case=True, doc="Whether value.projection.list keeps or removes fields."
    )
    value_projection_list: str = option(
        default="",
        importance=LOW,
        doc="Paths of the value's fields, separated by commas: a.b, with * for any name and ** for all below.",
    )
    field_renamer_mapping: str = option(
        default="[]",
        importance=LOW,
        validator=_objects,
        doc='New names of fields for RenameByMapping: [{"oldName": "key.a", "newName": "b"}]. Paths begin with key or '
        "value.",
    )
    field_renamer_regexp: str = option(
        default="[]",
        importance=LOW,
        validator=_objects,
        doc='Rules of RenameByRegExp: [{"regexp": "^value\\\\..*$", "pattern": "\\\\.", "replace": "_"}]. In the names '
        "of fields whose path matches regexp, pattern is replaced.",
    )
    document_id_strategy: str = option(
        default=_ID_STRATEGIES[0],
        importance=HIGH,
        validator=java_class(*_ID_STRATEGIES),
        doc="How to make the _id of a document that has none.",
    )
    document_id_strategy_overwrite_existing: bool = option(
        default=False, importance=HIGH, doc="Whether to replace the _id of documents that have one."
    )
    document_id_strategy_uuid_format: Literal["string", "binary"] = option(
        default="string", importance=HIGH, ignore_case=True, doc="The type of the UUIDs of UuidStrategy."
    )
    document_id_strategy_partial_key_projection_type: OptionalProjectionType = option(
        default="",
        importance=LOW,
        ignore_case=True,
        doc="As key.projection.type, for the _id of PartialKeyStrategy; by default that is used.",
    )
    document_id_strategy_partial_key_projection_list: str = option(
        default="", importance=LOW, doc="As key.projection.list, for the _id of PartialKeyStrategy."
    )
    document_id_strategy_partial_value_projection_type: OptionalProjectionType = option(
        default="",
        importance=LOW,
        ignore_case=True,
        doc="As value.projection.type, for the _id of PartialValueStrategy; by default that is used.",
    )
    document_id_strategy_partial_value_projection_list: str = option(
        default="", importance=LOW, doc="As value.projection.list, for the _id of PartialValueStrategy."
    )
    mongo_errors_tolerance: Literal["", "none", "all", "data"] = option(
        default="",
        importance=MEDIUM,
        ignore_case=True,
        doc="What to do with records that cannot become documents or that the server refuses: none fails the task, all "
        "and data skip them, to the dead letter queue if there is one. By default errors.tolerance decides.",
    )
    mongo_errors_log_enable: bool | None = option(
        default=None,
        importance=MEDIUM,
        doc="Accepted for compatibility: records that are skipped are always logged or in the dead letter queue.",
    )
    change_data_capture_handler: str = option(
        default="",
        importance=LOW,
        validator=java_class("", *_HANDLERS),
        doc="What reads the records as change events and applies them; post processors and write models are not used "
        "then.",
    )
    change_data_capture_handler_remove_null_values: bool = option(
        default=False, importance=LOW, doc="Whether documents of change events are written without null fields."
    )
    timeseries_timefield: str = option(
        default="",
        importance=LOW,
        doc="The field with the time of a document. If set, missing collections are created as time series.",
    )
    timeseries_metafield: str = option(
        default="", importance=LOW, doc="The field with the metadata that labels a series."
    )
    timeseries_expire_after_seconds: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="After how many seconds the server deletes documents of a time series; 0 for never.",
    )
    timeseries_granularity: Literal["", "seconds", "minutes", "hours"] = option(
        default="", importance=LOW, ignore_case=True, doc="The typical distance between two measurements."
    )
    timeseries_timefield_auto_convert: bool = option(
        default=False,
        importance=LOW,
        doc="Whether numbers (milliseconds since the epoch) and texts in the time field become dates.",
    )
    timeseries_timefield_auto_convert_date_format: str = option(
        default=_DEFAULT_FORMAT,
        importance=LOW,
        doc="The pattern of Java's DateTimeFormatter of texts in the time field. Without a zone they are in UTC.",
    )
    timeseries_timefield_auto_convert_locale_language_tag: str = option(
        default="",
        importance=LOW,
        validator=java_class("", "en", "en-US", "en-GB", "und"),
        doc="The language of names of months and days in texts: English.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        needs_transactions = self.delivery is Delivery.EXACTLY_ONCE
        for problem in transaction_problems(self.client, needs_transactions=needs_transactions):
            yield ConfigRuleError(problem, "connection.uri")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        yield from self._own_errors()
        yield from self._override_errors()

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        if self.delivery is Delivery.EXACTLY_ONCE and not self.bulk_write_ordered:
            yield "The key bulk.write.ordered has no effect with delivery=exactly-once: transactions write in order."

    def topic_overrides(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield the topic, the key and the value of each override; both are empty if it names no key of the sink."""
        keys = sorted((key.name for key in self.definitions()), key=len, reverse=True)
        for name, value in self.originals_with_prefix(_OVERRIDE).items():
            # The names of topics may have dots, as keys have.
            key = next((key for key in keys if name.endswith(f".{key}") and len(name) > len(key) + 1), "")
            yield name[: -len(key) - 1] if key else "", key, value

    @property
    def sink_options(self) -> MongoSinkConfig:
        """The options of the sink that writes: these."""
        return self

    def of_topic(self, topic: str) -> MongoSinkConfig:
        """Return the options of a topic: its overrides, and all others."""
        overrides = {key: value for named, key, value in self.topic_overrides() if named == topic}
        if not overrides:
            return self
        plain = {key: value for key, value in self.originals.items() if not key.startswith(_OVERRIDE)}
        return type(self).parse({**plain, **overrides})

    def _own_errors(self) -> Iterator[ConfigError]:
        yield from self._mapper_errors()
        yield from self._id_errors()
        yield from self._renamer_errors()
        if transformer := (self.originals.get("field.value.transformer") or "").strip():
            yield ConfigRuleError(
                f"Invalid value {transformer} for configuration field.value.transformer: Java classes cannot run here. "
                "Change the values with a transformation, and remove the key.",
                "field.value.transformer",
            )
        if self.timeseries_timefield:
            yield from self._timeseries_errors()
        elif given := next((key for key in _TIMESERIES_KEYS if getattr(self, key.replace(".", "_"))), None):
            yield ConfigRuleError(f"{given} requires timeseries.timefield: set it, or remove {given}.", given)

    def _mapper_errors(self) -> Iterator[ConfigError]:
        for part in ("database", "collection"):
            keys = [f"namespace.mapper.{source}.{part}.field" for source in ("key", "value")]
            given = [key for key in keys if getattr(self, key.replace(".", "_"))]
            if len(given) > 1:
                yield ConfigRuleError(f"{keys[0]} and {keys[1]} are alternatives: remove one of them.", *given)
            if given and class_named(self.namespace_mapper) != "DefaultNamespaceMapper":
                return
            if given:
                yield ConfigRuleError(
                    f"{given[0]} requires namespace.mapper={_MAPPERS[1]}: set it, or remove {given[0]}.", given[0]
                )
        if class_named(self.namespace_mapper) == "FieldPathNamespaceMapper":
            yield ConfigRuleError(
                "FieldPathNamespaceMapper needs a field: set namespace.mapper.value.collection.field, or another of "
                "the keys namespace.mapper.*.field.",
                "namespace.mapper",
            )

    def _id_errors(self) -> Iterator[ConfigError]:
        strategy = class_named(self.document_id_strategy)
        part = {"PartialKeyStrategy": "key", "PartialValueStrategy": "value"}.get(strategy)
        if part is not None and self.partial_projection(part)[0] == "none":
            key = f"document.id.strategy.partial.{part}.projection.type"
            yield ConfigRuleError(f"{strategy} requires {key}: set it to AllowList or BlockList.", key)
        deletes = class_named(self.delete_writemodel_strategy)
        if deletes == "DeleteOneTombstoneBusinessKeyStrategy" and strategy != "PartialKeyStrategy":
            yield ConfigRuleError(
                "DeleteOneTombstoneBusinessKeyStrategy requires a document.id.strategy whose _id can be made from the "
                "key: PartialKeyStrategy.",
                "delete.writemodel.strategy",
            )

    def _renamer_errors(self) -> Iterator[ConfigError]:
        for key, names in (
            ("field.renamer.mapping", ("oldName", "newName")),
            ("field.renamer.regexp", ("regexp", "pattern", "replace")),
        ):
            for item in parse_array(getattr(self, key.replace(".", "_")) or "[]"):
                if missing := [name for name in names if not isinstance(item.get(name), str)]:
                    yield ConfigRuleError(f"An item of {key} has no text {missing[0]}: add it.", key)

    def _timeseries_errors(self) -> Iterator[ConfigError]:
        strategy = class_named(self.writemodel_strategy)
        if strategy not in ("DefaultWriteModelStrategy", "InsertOneDefaultStrategy"):
            yield ConfigRuleError(
                f"{strategy} cannot write to time series: remove writemodel.strategy.", "writemodel.strategy"
            )
        try:
            DatePattern(self.timeseries_timefield_auto_convert_date_format)
        except ValueError as error:
            key = "timeseries.timefield.auto.convert.date.format"
            yield ConfigError(key, self.timeseries_timefield_auto_convert_date_format, str(error))
        if self.delivery is Delivery.EXACTLY_ONCE:
            yield ConfigRuleError(
                "MongoDB does not write to time series in transactions: remove delivery=exactly-once, or "
                "timeseries.timefield.",
                "delivery",
            )

    def partial_projection(self, part: str) -> tuple[str, str]:
        """Return the type and the list of the projection for PartialKeyStrategy or PartialValueStrategy."""
        kind = getattr(self, f"document_id_strategy_partial_{part}_projection_type")
        if kind:
            return kind, getattr(self, f"document_id_strategy_partial_{part}_projection_list")
        return getattr(self, f"{part}_projection_type"), getattr(self, f"{part}_projection_list")

    def _override_errors(self) -> Iterator[ConfigError]:
        for name in self.originals_with_prefix(_OVERRIDE):
            if not any(name.endswith(f".{key.name}") for key in self.definitions()):
                yield ConfigRuleError(
                    f"{_OVERRIDE}{name} names no key of the sink: write {_OVERRIDE}TOPIC.KEY, such as "
                    f"{_OVERRIDE}orders.collection.",
                    _OVERRIDE + name,
                )
        for topic, key, _ in self.topic_overrides():
            if key.startswith(_NOT_OVERRIDABLE):
                name = f"{_OVERRIDE}{topic}.{key}"
                yield ConfigRuleError(f"{key} cannot be overridden for one topic: remove {name}.", name)
        for topic in sorted({topic for topic, _, _ in self.topic_overrides() if topic}):
            try:
                self.of_topic(topic)
            except ConfigError as error:
                yield ConfigRuleError(f"Of topic {topic}: {error}", f"{_OVERRIDE}{topic}.{getattr(error, 'key', '')}")


_TIMESERIES_KEYS: Final = (
    "timeseries.metafield",
    "timeseries.granularity",
    "timeseries.expire.after.seconds",
    "timeseries.timefield.auto.convert",
)


def renamings(text: str) -> list[Mapping[str, Any]]:
    """Return the items of a renamer's key."""
    return parse_array(text or "[]")

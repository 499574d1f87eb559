"""The options that both Java connectors have, and the decisions that their options lead to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    between,
    matches,
    option,
)
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError
from connect.kits.http.retries import Backoff
from connectors.elasticsearch.cluster_config import ClusterConfig
from connectors.elasticsearch.resources import Resource, ResourceNames, name_problem, template_problem

__all__ = [
    "ERRORS",
    "MOST_CONFLICT_RETRIES",
    "STREAMS",
    "WRITING",
    "Behavior",
    "DocumentId",
    "Routing",
    "SearchSinkConfig",
    "WriteMethod",
    "Writing",
    "mapped_resources",
]

WRITING: Final = "Writing"
ERRORS: Final = "Errors"
STREAMS: Final = "Data streams"
_LONGEST_BACKOFF_S: Final = 60.0
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "type.name": UnsupportedKey("mapping types do not exist any more"),
    "auto.create.indices.at.start": UnsupportedKey("an index is made when its first document comes"),
}
"""Keys that the Java connectors had once."""

MOST_CONFLICT_RETRIES: Final = 5


class WriteMethod(StrEnum):
    """How a document is written: it replaces the former one, or changes its fields."""

    INSERT = "insert"
    UPSERT = "upsert"


class Behavior(StrEnum):
    """What happens to a record that cannot be written, or is not meant to be."""

    IGNORE = "ignore"
    WARN = "warn"
    REPORT = "report"
    FAIL = "fail"
    DELETE = "delete"


class DocumentId(StrEnum):
    """Where the id of a document comes from."""

    KEY = "record.key"
    POSITION = "topic.partition.offset"
    NONE = "none"


class Routing(StrEnum):
    """What decides on the shard of a document, in place of its id."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Writing:
    """The decisions that the options lead to.

    ``ids`` and ``ignored_ids`` are those for topics whose keys are ids, and for the others; ``has_versions`` says that
    the offset is the document's version where its key is its id.
    """

    names: ResourceNames
    method: WriteMethod
    ids: DocumentId
    ignored_ids: DocumentId
    ignores_key: bool
    key_ignored_topics: frozenset[str]
    ignores_schema: bool
    schema_ignored_topics: frozenset[str]
    compacts_maps: bool
    on_null: Behavior
    on_malformed: Behavior
    on_conflict: Behavior
    drops_invalid: bool
    has_versions: bool
    version_header: str
    timestamp_fields: tuple[str, ...]
    retries_on_conflict: int
    routing: Routing = Routing.NONE
    routing_path: tuple[str, ...] = ()

    def id_of_topic(self, topic: str) -> DocumentId:
        """Return where the ids of a topic's documents come from."""
        return self.ignored_ids if self.ignores_key or topic in self.key_ignored_topics else self.ids

    def ignores_schema_of(self, topic: str) -> bool:
        """Return whether no mapping is made from the schemas of a topic."""
        return self.ignores_schema or topic in self.schema_ignored_topics


class SearchSinkConfig(ClusterConfig):
    """The options that both Java connectors have."""

    batch_size: int = option(
        default=2000,
        importance=MEDIUM,
        group=WRITING,
        validator=between(1, 1_000_000),
        doc="Maximum number of documents in a request.",
    )
    bulk_size_bytes: Long = option(
        default=5 << 20,
        importance=LOW,
        group=WRITING,
        validator=at_least(-1),
        doc="Maximum size of a request in bytes; -1 for none. A larger document is sent alone.",
    )
    max_in_flight_requests: int = option(
        default=5,
        importance=MEDIUM,
        group=WRITING,
        validator=between(1, 1000),
        doc="Maximum number of requests under way. Those of one document are always sent one after the other.",
    )
    max_buffered_records: int = option(
        default=20_000,
        importance=LOW,
        group=WRITING,
        validator=at_least(1),
        doc="Maximum number of records that a task holds. While there are as many, it takes no more.",
    )
    linger_ms: Long = option(
        default=1,
        importance=LOW,
        group=WRITING,
        validator=between(0, 604_800_000),
        doc="How long a request that is not full waits for more documents, in milliseconds.",
    )
    flush_timeout_ms: Long = option(
        default=180_000,
        importance=LOW,
        group=WRITING,
        validator=between(1000, 604_800_000),
        doc="How long the cluster may take to accept what a task holds, and so how long a document that it has no room "
        "for is tried again, before the task fails, in milliseconds.",
    )
    key_ignore: bool = option(
        default=False,
        importance=HIGH,
        group=WRITING,
        doc="Whether the id of a document is topic+partition+offset in place of the key.",
    )
    schema_ignore: bool = option(
        default=False,
        importance=LOW,
        group=WRITING,
        doc="Whether no mapping is made from the schema of values; the cluster then infers one from the documents.",
    )
    compact_map_entries: bool = option(
        default=True,
        importance=LOW,
        group=WRITING,
        doc="Whether maps with text keys are written as objects, in place of lists of objects with key and value.",
    )
    topic_key_ignore: tuple[str, ...] = option(
        default=(), importance=LOW, group=WRITING, doc="Topics for which key.ignore is true."
    )
    topic_schema_ignore: tuple[str, ...] = option(
        default=(), importance=LOW, group=WRITING, doc="Topics for which schema.ignore is true."
    )
    index_name_template: str = option(
        default="",
        importance=LOW,
        group=WRITING,
        doc="Name of the index of each record, in place of its topic: ${topic} stands for the topic in lower case, and "
        "${timestamp:yyyy.MM.dd} for the record's timestamp in UTC by a pattern of java.text.SimpleDateFormat.",
    )
    topic_index_map: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        group=WRITING,
        doc="Indexes for some topics, as a comma-separated list of topic:index, in place of index.name.template. They "
        "are made if they do not exist.",
    )
    drop_invalid_message: bool = option(
        default=False,
        importance=LOW,
        group=ERRORS,
        doc="Whether a record that cannot become a document is left out and reported, whatever errors.tolerance says.",
    )
    behavior_on_malformed_documents: str = option(
        default="FAIL",
        importance=LOW,
        group=ERRORS,
        ignore_case=True,
        validator=matches("(?i)IGNORE|WARN|FAIL", "one of ignore, warn, fail (in any case)"),
        doc="What happens to a document that the cluster refuses: ignore and warn leave it out, fail treats it as "
        "errors.tolerance says. Each is reported to the dead letter queue, if there is one.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule about several options that is broken."""
        yield from super().check()
        if self.linger_ms > self.flush_timeout_ms:
            yield ConfigRuleError(
                "linger.ms must not be larger than flush.timeout.ms.", "linger.ms", "flush.timeout.ms"
            )
        if self.max_buffered_records < self.batch_size * self.max_in_flight_requests:
            yield ConfigRuleError(
                "max.buffered.records must be at least batch.size * max.in.flight.requests, which is "
                f"{self.batch_size * self.max_in_flight_requests}.",
                "max.buffered.records",
                "batch.size",
                "max.in.flight.requests",
            )
        for flag, topics, name in (
            (self.key_ignore, self.topic_key_ignore, "key.ignore"),
            (self.schema_ignore, self.topic_schema_ignore, "schema.ignore"),
        ):
            if flag and topics:
                yield ConfigRuleError(f"{name}=true holds for all topics: remove topic.{name}.", name, f"topic.{name}")
        if self.index_name_template and (problem := template_problem(self.index_name_template)):
            yield ConfigRuleError(f"index.name.template cannot be used: {problem}.", "index.name.template")
        yield from self._item_mistakes("topic.index.map", self.topic_index_map, "an index")
        if self.topic_index_map and not self._names_indexes:
            yield ConfigRuleError(
                "topic.index.map names indexes that are made if they do not exist: remove it, or what names data "
                "streams and resources that exist.",
                "topic.index.map",
            )

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    @property
    def _names_indexes(self) -> bool:
        """Whether the indexes of topics are named by the configuration and made by the connector."""
        raise NotImplementedError

    @property
    def indexes_of_topics(self) -> Mapping[str, str]:
        """The indexes that ``topic.index.map`` names."""
        return {topic: index for topic, _, index in (item.partition(":") for item in self.topic_index_map)}

    @property
    def backoff(self) -> Backoff:
        """The waits between attempts."""
        return Backoff(self.retry_backoff_ms / 1000, _LONGEST_BACKOFF_S, jitter=1.0)

    @property
    def writing(self) -> Writing:
        """What the options lead to."""
        raise NotImplementedError

    @property
    def mapping_key(self) -> str:
        """The key of the mapping of topics to resources that exist."""
        raise NotImplementedError

    @property
    def makes_template(self) -> bool:
        """Whether an index template for data streams is made."""
        return False

    @property
    def compresses(self) -> bool:
        """Whether the bodies of requests are compressed."""
        return False

    def _mapping_mistakes(
        self, key: str, items: tuple[str, ...], kind_key: str, has_kind: bool
    ) -> Iterable[ConfigError]:
        """Yield an error for each mistake in a mapping of topics to resources that exist."""
        if has_kind != bool(items):
            yield ConfigRuleError(f"Set both {kind_key} and {key}, or neither.", key, kind_key)
        yield from self._item_mistakes(key, items, "a resource")

    def _item_mistakes(self, key: str, items: tuple[str, ...], what: str) -> Iterable[ConfigError]:
        """Yield an error for each mistake in pairs of a topic and a name."""
        for item in items:
            topic, _, name = item.partition(":")
            if not topic or name_problem(name):
                yield ConfigRuleError(f"{key}: {item} is not a topic, a colon and the name of {what}.", key)
        topics = [item.partition(":")[0] for item in items]
        if repeated := {topic for topic in topics if topics.count(topic) > 1}:
            yield ConfigRuleError(f"{key} has the topic {min(repeated)} more than once.", key)


def mapped_resources(items: tuple[str, ...], *, is_data_stream: bool) -> Mapping[str, Resource]:
    """Return the existing resources of topics, from items such as ``orders:all-orders``."""
    pairs = (item.partition(":") for item in items)
    return {topic: Resource(name, is_data_stream, is_ours=False) for topic, _, name in pairs}

"""The options of the source of Elasticsearch and OpenSearch."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

import orjson

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, at_least, between, matches, non_empty_list, option
from connect.errors import ConfigError
from connect.kits.http.retries import Backoff
from connectors.elasticsearch.cluster_config import ClusterConfig
from connectors.elasticsearch.reading import MOST_DOCUMENTS, Selection

__all__ = ["SearchSourceConfig", "SearchTaskConfig", "ValueSchema"]

_READING: Final = "Reading"
_RECORDS: Final = "Records"
_LONGEST_BACKOFF_S: Final = 60.0
_TOPIC: Final = r"[a-zA-Z0-9._-]{1,249}"


class ValueSchema(StrEnum):
    """What the schemas of values are made of."""

    NONE = "none"
    DOCUMENT = "document"


class SearchSourceConfig(ClusterConfig, tls_prefix=""):
    """The options of the source."""

    index: tuple[str, ...] = option(
        importance=HIGH,
        group=_READING,
        validator=non_empty_list,
        doc="Indexes, data streams and aliases to read, separated by commas. Names with * are looked up again and "
        "again: they stand for open indexes and data streams, and for hidden ones only if they begin with a dot.",
    )
    cursor_field: tuple[str, ...] = option(
        importance=HIGH,
        group=_READING,
        validator=non_empty_list,
        doc="Fields by which documents are read, the first one first, such as updated_at or updated_at,number: "
        "numbers, dates or keywords that only grow as documents are added or changed. A document without them is not "
        "read.",
    )
    cursor_delay_ms: Long = option(
        default=10_000,
        importance=HIGH,
        group=_READING,
        validator=between(0, 86_400_000),
        doc="How long the highest cursor must have been there before documents up to it are read, in milliseconds: "
        "those that become visible later than others with a higher cursor are read nevertheless if they do so within "
        "this time. Longer than index.refresh_interval plus what writers may be late; 0 for none.",
    )
    query: str = option(
        default="",
        importance=MEDIUM,
        group=_READING,
        doc='Which documents are read, as the JSON of a query, such as {"term": {"kind": "order"}}; by default all.',
    )
    fields_include: tuple[str, ...] = option(
        default=(), importance=LOW, group=_READING, doc="Fields that are read, with * if need be; by default all."
    )
    fields_exclude: tuple[str, ...] = option(
        default=(), importance=LOW, group=_READING, doc="Fields that are left out."
    )
    batch_size: int = option(
        default=1000,
        importance=MEDIUM,
        group=_READING,
        validator=between(2, MOST_DOCUMENTS),
        doc="Maximum number of documents in an answer. More are asked for where more have the same cursor.",
    )
    poll_interval_ms: Long = option(
        default=5000,
        importance=MEDIUM,
        group=_READING,
        validator=between(1, 86_400_000),
        doc="How long after an index was read to its end it is looked at again, in milliseconds.",
    )
    index_poll_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        group=_READING,
        validator=between(1, 86_400_000),
        doc="How often names with * are looked up, in milliseconds.",
    )
    topic: str = option(
        default="",
        importance=MEDIUM,
        group=_RECORDS,
        validator=matches(f"|{_TOPIC}", "the name of a topic"),
        doc="Topic of all records; by default that of each index, topic.prefix and its name.",
    )
    topic_prefix: str = option(
        default="",
        importance=HIGH,
        group=_RECORDS,
        validator=matches(f"|{_TOPIC}", "letters, digits, '.', '_' and '-'"),
        doc="What the names of topics begin with, before the name of the index, data stream or alias.",
    )
    value_schema: ValueSchema = option(
        default=ValueSchema.NONE,
        importance=MEDIUM,
        group=_RECORDS,
        doc="Whether values have schemas: none gives documents as they are, document makes the schema of each from its "
        "fields, as converters with schemas need it.",
    )
    read_timeout_ms: int = option(
        default=30_000,
        importance=LOW,
        group="Connection",
        validator=between(0, 604_800_000),
        doc="How long the cluster may send nothing while an answer is awaited, in milliseconds; 0 for no limit. Then "
        "the request is sent again.",
    )
    max_retries: int = option(
        default=100,
        importance=LOW,
        group="Connection",
        validator=at_least(0),
        doc="How often a request is tried again before the task fails.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule about several options that is broken."""
        yield from super().check()
        if self.query.strip():
            try:
                is_query = isinstance(orjson.loads(self.query), dict)
            except ValueError:
                is_query = False
            if not is_query:
                yield ConfigRuleError('query is not the JSON of a query, such as {"term": {"kind": "order"}}.', "query")
        if self.topic and self.topic_prefix:
            yield ConfigRuleError("topic names the topic of all records: remove topic.prefix.", "topic", "topic.prefix")
        if repeated := {name for name in self.cursor_field if self.cursor_field.count(name) > 1}:
            yield ConfigRuleError(f"cursor.field has {min(repeated)} more than once.", "cursor.field")

    @property
    def backoff(self) -> Backoff:
        """The waits between attempts."""
        return Backoff(self.retry_backoff_ms / 1000, _LONGEST_BACKOFF_S, jitter=1.0)

    @property
    def selection(self) -> Selection:
        """Which documents are read, and in which order."""
        source: Any = True
        if self.fields_include or self.fields_exclude:
            source = {"includes": list(self.fields_include) or ["*"], "excludes": list(self.fields_exclude)}
        return Selection(
            self.cursor_field,
            orjson.loads(self.query) if self.query.strip() else None,
            source,
            self.batch_size,
            self.cursor_delay_ms / 1000,
            awaits_indexes=self.originals.get("run.until") != "drained",
        )

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names that stand for others."""
        return tuple(name for name in self.index if "*" in name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are those of indexes, data streams or aliases."""
        return tuple(dict.fromkeys(name for name in self.index if "*" not in name))


class SearchTaskConfig(SearchSourceConfig):
    """The options of a task."""

    task_indexes: tuple[str, ...] = option(importance=HIGH, doc="The indexes, data streams and aliases to read.")

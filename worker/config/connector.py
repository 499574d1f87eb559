"""The framework's configuration keys, which every connector has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    PluginName,
    Short,
    Width,
    at_least,
    connector_name,
    non_empty,
    one_of,
    option,
    regex,
    unique_aliases,
)
from connect.errors import ConfigError
from connect.internals.chain.specs import TransformationSpec, predicate_specs, transformation_specs
from connect.internals.chain.tolerance import ErrorPolicy
from worker.config.restarts import RestartConfig
from worker.config.validators import version_range

__all__ = ["COMMON", "ConnectorConfig", "SinkConnectorConfig", "SourceConnectorConfig"]

COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_EXACTLY_ONCE: Final = "Exactly Once Support"


class ConnectorConfig(RestartConfig):
    """The keys that source and sink connectors share."""

    name: str = option(
        importance=HIGH,
        validator=connector_name,
        group=COMMON,
        width=Width.MEDIUM,
        display_name="Connector name",
        doc="Name of the connector, unique in the cluster.",
    )
    connector_class: str = option(
        importance=HIGH,
        group=COMMON,
        width=Width.LONG,
        display_name="Connector class",
        doc="The connector to run: a dotted path, a simple name with or without the suffix Connector, or the Java "
        "class that it replaces.",
    )
    connector_plugin_version: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=version_range,
        group=COMMON,
        width=Width.MEDIUM,
        display_name="Connector version",
        doc="Version of the connector to run, if several are installed: 1.0 is exactly this version, [1.0,2.0) the "
        "newest in a range; the newest of all if absent or latest.",
    )
    tasks_max: int = option(
        default=1,
        importance=HIGH,
        validator=at_least(1),
        group=COMMON,
        width=Width.SHORT,
        display_name="Tasks max",
        doc="Maximum number of tasks.",
    )
    tasks_max_enforce: bool = option(
        default=True,
        importance=LOW,
        group=COMMON,
        width=Width.SHORT,
        display_name="Enforce tasks max",
        doc="Fail a connector that makes more task configs than tasks.max, instead of only warning about it.",
    )
    key_converter: PluginName | None = option(
        default=None,
        importance=LOW,
        group=COMMON,
        width=Width.SHORT,
        display_name="Key converter class",
        doc="Converter for record keys; the worker's if absent. Its own keys follow as key.converter.*.",
    )
    key_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        group=COMMON,
        width=Width.SHORT,
        display_name="Key converter version",
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    value_converter: PluginName | None = option(
        default=None,
        importance=LOW,
        group=COMMON,
        width=Width.SHORT,
        display_name="Value converter class",
        doc="Converter for record values; the worker's if absent. Its own keys follow as value.converter.*.",
    )
    value_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        group=COMMON,
        width=Width.SHORT,
        display_name="Value converter version",
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    header_converter: PluginName | None = option(
        default=None,
        importance=LOW,
        group=COMMON,
        width=Width.SHORT,
        display_name="Header converter class",
        doc="Converter for header values; the worker's if absent. Its own keys follow as header.converter.*.",
    )
    header_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        group=COMMON,
        width=Width.SHORT,
        display_name="Header converter version",
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    transforms: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=unique_aliases("transformation aliases"),
        group="Transforms",
        width=Width.LONG,
        display_name="Transforms",
        doc="Aliases of the transformations applied to records, in order. Each needs transforms.ALIAS.type.",
    )
    predicates: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=unique_aliases("predicate aliases"),
        group="Predicates",
        width=Width.LONG,
        display_name="Predicates",
        doc="Aliases of the predicates that transformations refer to. Each needs predicates.ALIAS.type.",
    )
    engine: Literal["worker", "spark", "java"] = option(
        default="worker",
        importance=MEDIUM,
        group=COMMON,
        width=Width.SHORT,
        display_name="Engine",
        doc="Where the tasks run: worker runs them in processes of the workers; spark runs them in Spark executors, "
        "in loads that one task of the worker plans and commits. Keys that begin with engine. set when and how large "
        "loads are (engine.flush.size); keys that begin with spark. are Spark's own. Connectors that are built on "
        "Spark run the same way with either value. java runs the Java class that connector.class names in place of the "
        "connector of Python that stands for it; a Java class without one needs no engine.",
    )
    config_action_reload: Literal["none", "restart"] = option(
        default="restart",
        importance=LOW,
        group=COMMON,
        width=Width.MEDIUM,
        display_name="Reload Action",
        doc="What happens when values of a config provider expire, after the provider's ttl: restart restarts the "
        "connector or task that uses them, so that it looks them up again; none changes nothing.",
    )
    task_isolation: Literal["process", "connector", "shared", "auto"] | None = option(
        default=None,
        importance=LOW,
        group=COMMON,
        width=Width.SHORT,
        display_name="Isolation",
        doc="Which units share a process with the connector and its tasks: process gives each its own, connector is "
        "one for all of them, shared is one for up to 50 units of several connectors. auto is process while the "
        "worker has up to 16 tasks, then shared, except for units that keep a core busy. The worker's task.isolation "
        "if absent.",
    )
    task_hang_warning_ms: Long | None = option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        group=COMMON,
        width=Width.SHORT,
        display_name="Hang warning",
        doc="Time in milliseconds after which a plugin call that has not returned, such as poll or put, is reported "
        "in log and status with its stack; 0 disables this; the worker's task.hang.warning.ms if absent.",
    )
    task_hang_timeout_ms: Long | None = option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        group=COMMON,
        width=Width.SHORT,
        display_name="Hang timeout",
        doc="Time in milliseconds after which such a call fails the connector or task; its process is killed, and "
        "restart.policy applies. 0 disables this; the worker's task.hang.timeout.ms if absent.",
    )
    run_until: Literal["stopped", "drained"] = option(
        default="stopped",
        importance=MEDIUM,
        group=COMMON,
        width=Width.SHORT,
        display_name="Run until",
        doc="When the connector ends: stopped runs until a user stops it; drained processes the data there is and "
        "then stops by itself. A sink with drained processes what is in its topics once the sources on the same "
        "worker are done.",
    )
    run_until_missing_timeout_ms: Long = option(
        default=10_000,
        importance=LOW,
        validator=at_least(-1),
        group=COMMON,
        width=Width.SHORT,
        display_name="Run until missing timeout",
        doc="How long, in milliseconds, a connector with run.until=drained waits for a file, folder or topic that does "
        "not exist before it fails; -1 waits forever.",
    )
    errors_retry_timeout: Long = option(
        default=0,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.MEDIUM,
        display_name="Retry Timeout for Errors",
        doc="How long, in milliseconds, to retry a failed operation that may succeed later; -1 retries forever.",
    )
    errors_retry_delay_max_ms: Long = option(
        default=60_000,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.MEDIUM,
        display_name="Maximum Delay Between Retries for Errors",
        doc="Longest delay, in milliseconds, between two attempts; delays grow up to this and are then random.",
    )
    errors_tolerance: Literal["none", "all"] = option(
        default="none",
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.SHORT,
        display_name="Error Tolerance",
        doc="What happens to a record that cannot be processed: none fails the task, all skips the record and "
        "reports it.",
    )
    errors_tolerance_limit: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        group=_ERRORS,
        width=Width.SHORT,
        display_name="Error Tolerance Limit",
        doc="Number of records that a task may skip before it fails, with errors.tolerance=all; -1 is unlimited.",
    )
    errors_tolerance_rate: Long = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        group=_ERRORS,
        width=Width.SHORT,
        display_name="Error Tolerance Rate",
        doc="Number of records that a task may skip within one minute before it fails, with errors.tolerance=all; "
        "-1 is unlimited.",
    )
    errors_log_enable: bool = option(
        default=False,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.SHORT,
        display_name="Log Errors",
        doc="Log every record that is skipped, with the error and the record's position.",
    )
    errors_log_include_messages: bool = option(
        default=False,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.SHORT,
        display_name="Log Error Details",
        doc="Include the key and value of a source record in that log line.",
    )

    errors_deadletterqueue_topic_name: str = option(
        default="",
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Name",
        doc="Topic for records that cannot be processed, of sinks and of sources; none if empty.",
    )
    errors_deadletterqueue_topic_replication_factor: Short = option(
        default=3,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Replication Factor",
        doc="Replication factor of that topic if it has to be created.",
    )
    errors_deadletterqueue_context_headers_enable: bool = option(
        default=False,
        importance=MEDIUM,
        group=_ERRORS,
        width=Width.MEDIUM,
        display_name="Enable Error Context Headers",
        doc="Add headers to the records in that topic that say where they come from and what went wrong.",
    )

    @property
    def tolerates_errors(self) -> bool:
        """Whether records that cannot be processed are skipped instead of failing the task."""
        return self.errors_tolerance == "all"

    @property
    def reports_errors(self) -> bool:
        """Whether records that a sink reports go anywhere; otherwise it gets no reporter (KIP-610)."""
        return self.tolerates_errors or self.errors_log_enable or bool(self.errors_deadletterqueue_topic_name)

    @property
    def runs_until_drained(self) -> bool:
        """Whether the connector stops by itself at the end of its input."""
        return self.run_until == "drained"

    @property
    def error_policy(self) -> ErrorPolicy:
        """What happens to records that cannot be processed."""
        return ErrorPolicy(
            self.tolerates_errors,
            self.errors_retry_timeout,
            self.errors_retry_delay_max_ms,
            self.errors_tolerance_limit,
            self.errors_tolerance_rate,
        )

    def transformations(self) -> tuple[TransformationSpec, ...]:
        """Return the transformations, in order."""
        return transformation_specs(self._given())

    def check(self) -> Iterable[ConfigError]:
        """Check the rules of the chain on the given values, so that other errors cannot hide violations."""
        yield from super().check()
        predicates = predicate_specs(self._given())
        known = {spec.alias for spec in predicates}
        for spec in predicates:
            yield from self._missing_type(f"{spec.prefix}type")
        for alias in (spec.alias for spec in self.transformations()):
            prefix = f"transforms.{alias}"
            yield from self._missing_type(f"{prefix}.type")
            predicate = self.originals.get(f"{prefix}.predicate")
            if predicate is not None and predicate not in known:
                yield ConfigError(f"{prefix}.predicate", predicate, "Predicate must be one of the predicates listed")
            if predicate is None and f"{prefix}.negate" in self.originals:
                reason = (
                    f"Config '{prefix}.negate' was provided but there is no config '{prefix}.predicate' defining a "
                    "predicate to be negated."
                )
                yield ConfigRuleError(reason, f"{prefix}.negate")

    def _given(self) -> dict[str, str]:
        return {key: value for key, value in self.originals.items() if value is not None}

    def _missing_type(self, key: str) -> Iterable[ConfigError]:
        if not self.originals.get(key):
            yield ConfigRuleError(f'Missing required configuration "{key}" which has no default value.', key)


class SourceConnectorConfig(ConnectorConfig):
    """The keys of every source connector."""

    topic_creation_groups: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=unique_aliases("topic creation groups"),
        group="Topic Creation",
        width=Width.LONG,
        display_name="Topic Creation Groups",
        doc="Groups of topics that are created with their own settings, checked before the group default. Each has "
        "topic.creation.GROUP.include, .exclude, .partitions, .replication.factor and any topic config.",
    )
    exactly_once_support: str = option(
        default="requested",
        importance=MEDIUM,
        validator=one_of("required", "requested", ignore_case=True),
        group=_EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Exactly once support",
        doc="Whether the connector must be exactly-once: required refuses it unless the worker has "
        "exactly.once.source.support=enabled and the connector supports it with this configuration.",
    )
    transaction_boundary: str = option(
        default="poll",
        importance=MEDIUM,
        validator=one_of("interval", "poll", "connector", ignore_case=True),
        group=_EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Transaction Boundary",
        doc="Where an exactly-once task ends its transactions: poll after every batch, interval after "
        "transaction.boundary.interval.ms, connector where the connector chooses, if it supports that.",
    )
    transaction_boundary_interval_ms: Long | None = option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        group=_EXACTLY_ONCE,
        width=Width.SHORT,
        display_name="Transaction boundary interval",
        doc="Length of a transaction in milliseconds, with transaction.boundary=interval; by default the worker's "
        "offset.flush.interval.ms.",
    )
    offsets_storage_topic: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        group="offsets.topic",
        width=Width.LONG,
        display_name="Offsets topic",
        doc="A separate topic for this connector's offsets, which its tasks write; it is created if missing. By "
        "default its offsets are in the topic of all connectors.",
    )

    @property
    def requires_exactly_once(self) -> bool:
        """Whether the connector may only run exactly-once."""
        return self.exactly_once_support.lower() == "required"

    @property
    def boundary(self) -> str:
        """Where transactions end: ``poll``, ``interval`` or ``connector``."""
        return self.transaction_boundary.lower()


class SinkConnectorConfig(ConnectorConfig):
    """The keys of every sink connector."""

    topics: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        group=COMMON,
        width=Width.LONG,
        display_name="Topics",
        doc="Topics to consume.",
    )
    topics_regex: str = option(
        default="",
        importance=HIGH,
        validator=regex,
        group=COMMON,
        width=Width.LONG,
        display_name="Topics regex",
        doc="Regular expression for the topics to consume, instead of topics.",
    )

    def check(self) -> Iterable[ConfigError]:
        yield from super().check()
        queue = self.errors_deadletterqueue_topic_name
        # As given: a regex that is refused is still one that is set.
        by_regex = bool((self.originals.get("topics.regex") or "").strip())
        if self.topics and by_regex:
            text = "topics and topics.regex are mutually exclusive options, but both are set."
            yield ConfigRuleError(text, "topics", "topics.regex")
        elif not self.topics and not by_regex:
            yield ConfigRuleError("Must configure one of topics or topics.regex", "topics", "topics.regex")
        elif queue and queue in self.topics:
            text = (
                f"The DLQ topic '{queue}' may not be included in the list of topics "
                f"('topics=[{', '.join(self.topics)}]') consumed by the connector"
            )
            yield ConfigRuleError(text, "topics")
        elif queue and self.topics_regex and re.fullmatch(self.topics_regex, queue):
            text = (
                f"The DLQ topic '{queue}' may not be matched by the regex for the topics "
                f"('topics.regex={self.topics_regex}') consumed by the connector"
            )
            yield ConfigRuleError(text, "topics.regex")

"""The options of Aiven's sink for OpenSearch."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import LOW, MEDIUM, ConfigRuleError, Long, Password, between, matches, non_empty, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from connect.kits.http.aws_signature import AwsAccount, aws_signature
from connectors.elasticsearch.cluster_config import Sign
from connectors.elasticsearch.resources import ResourceNames
from connectors.elasticsearch.sink_config import (
    ERRORS,
    MOST_CONFLICT_RETRIES,
    STREAMS,
    WRITING,
    Behavior,
    DocumentId,
    Routing,
    SearchSinkConfig,
    WriteMethod,
    Writing,
    mapped_resources,
)

__all__ = ["OpenSearchSinkConfig"]


class OpenSearchSinkConfig(SearchSinkConfig, tls_prefix=""):
    """The options of ``io.aiven.kafka.connect.opensearch.OpenSearchSinkConnector``."""

    flush_timeout_ms: Long = option(
        default=10_000,
        importance=LOW,
        group=WRITING,
        validator=between(1000, 604_800_000),
        doc="How long the cluster may take to accept what a task holds, and so how long a document that it has no room "
        "for is tried again, before the task fails, in milliseconds.",
    )
    behavior_on_null_values: str = option(
        default="IGNORE",
        importance=LOW,
        group=ERRORS,
        ignore_case=True,
        validator=matches("(?i)IGNORE|DELETE|FAIL", "one of ignore, delete, fail (in any case)"),
        doc="What happens to a record with a key and no value: ignore leaves it out, delete deletes the document, fail "
        "treats it as a record that cannot become a document.",
    )
    behavior_on_version_conflict: str = option(
        default="FAIL",
        importance=LOW,
        group=ERRORS,
        ignore_case=True,
        validator=matches("(?i)IGNORE|WARN|REPORT|FAIL", "one of ignore, warn, report, fail (in any case)"),
        doc="What happens to a record whose document has a higher version, or another one of a data stream its id. A "
        "version that is that of the record itself was written before a restart, and is no conflict.",
    )
    index_write_method: str = option(
        default="insert",
        importance=LOW,
        group=WRITING,
        ignore_case=True,
        validator=matches("(?i)insert|upsert", "one of insert, upsert (in any case)"),
        doc="How documents are written: insert replaces the former document, upsert changes its fields.",
    )
    key_ignore_id_strategy: str = option(
        default="topic.partition.offset",
        importance=LOW,
        group=WRITING,
        ignore_case=True,
        validator=matches(
            r"(?i)record\.key|topic\.partition\.offset|none", "one of record.key, topic.partition.offset, none"
        ),
        doc="Where the ids of documents come from if key.ignore is true.",
    )
    existing_resource_type: str = option(
        default="none",
        importance=LOW,
        group=WRITING,
        ignore_case=True,
        validator=matches("(?i)none|index|index_alias|data_stream", "one of none, index, index_alias, data_stream"),
        doc="What the resources in topic.to.existing.resource.mapping are. They must exist.",
    )
    topic_to_existing_resource_mapping: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        group=WRITING,
        doc="Existing resources for topics, as a comma-separated list of topic:resource.",
    )
    routing_type: str = option(
        default="NONE",
        importance=LOW,
        group=WRITING,
        ignore_case=True,
        validator=matches("(?i)none|key|value", "one of none, key, value"),
        doc="What decides on the shard of a document, in place of its id: the record's key, or a field of its value.",
    )
    routing_type_record_value_path: str | None = option(
        default=None,
        importance=LOW,
        group=WRITING,
        validator=matches(r"(?:/[^/]*)+", "a JSON pointer such as /customer/id"),
        doc="JSON pointer to the field of the value by which routing.type=value decides.",
    )
    data_stream_enabled: bool = option(
        default=False, importance=MEDIUM, group=STREAMS, doc="Whether to write to data streams."
    )
    data_stream_prefix: str | None = option(
        default=None,
        importance=MEDIUM,
        group=STREAMS,
        validator=non_empty,
        doc="First part of the names of data streams, before a hyphen and the topic.",
    )
    data_stream_timestamp_field: str = option(
        default="@timestamp",
        importance=LOW,
        group=STREAMS,
        validator=non_empty,
        doc="Field of the value that becomes @timestamp; without it, that is the record's timestamp.",
    )
    data_streams_existing_index_template_name: str | None = option(
        default=None,
        importance=MEDIUM,
        group=STREAMS,
        doc="Name of the index template for the data streams; it is made if it does not exist.",
    )
    trust_all_certificates: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to accept any certificate, from any issuer and for any host. Anyone on the network path can then "
        "read and change everything: for tests only.",
    )
    aws_region: str | None = option(
        default=None, importance=MEDIUM, doc="Region of Amazon OpenSearch Service. With it requests are signed."
    )
    aws_service_signing_name: str | None = option(
        default=None, importance=MEDIUM, doc="Service to sign for: es, or aoss for OpenSearch Serverless."
    )
    aws_access_key_id: str | None = option(
        name="aws.access_key_id",
        default=None,
        importance=MEDIUM,
        doc="Access key to sign with; by default it is found as in AWS's own tools: environment, profile, role.",
    )
    aws_secret_access_key: Password | None = option(
        name="aws.secret_access_key", default=None, importance=MEDIUM, doc="Secret of the access key."
    )
    aws_sts_role_arn: str | None = option(
        default=None, importance=MEDIUM, validator=non_empty, doc="Role to assume before requests are signed."
    )
    aws_sts_role_session_name: str | None = option(
        default=None, importance=MEDIUM, validator=non_empty, doc="Name of the session of the role."
    )
    aws_sts_role_session_duration: int = option(
        default=3600,
        importance=MEDIUM,
        validator=between(900, 43_200),
        doc="How long the credentials of the role hold, in seconds; they are renewed before.",
    )
    aws_sts_role_external_id: str | None = option(
        default=None, importance=MEDIUM, validator=non_empty, doc="External id that the role asks for."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule about several options that is broken."""
        yield from super().check()
        yield from self._mapping_mistakes(
            "topic.to.existing.resource.mapping",
            self.topic_to_existing_resource_mapping,
            "existing.resource.type",
            self._existing != "none",
        )
        if self.data_stream_prefix and not self.data_stream_enabled:
            yield ConfigRuleError("data.stream.prefix needs data.stream.enabled=true.", "data.stream.prefix")
        if self.data_stream_enabled and (self._existing != "none" or self.index_name_template):
            yield ConfigRuleError(
                "data.stream.enabled names data streams: remove existing.resource.type and index.name.template.",
                "data.stream.enabled",
                "existing.resource.type",
            )
        if self.writes_streams and self.index_write_method.lower() == "upsert":
            yield ConfigRuleError(
                "Documents of a data stream cannot be changed: set index.write.method=insert.", "index.write.method"
            )
        if self.writes_streams and self.behavior_on_null_values.upper() == "DELETE":
            yield ConfigRuleError(
                "Documents of a data stream cannot be deleted: set behavior.on.null.values to ignore or fail.",
                "behavior.on.null.values",
            )
        if (self.routing_type.lower() == "value") != (self.routing_type_record_value_path is not None):
            yield ConfigRuleError(
                "Set both routing.type=value and routing.type.record.value.path, or neither.",
                "routing.type",
                "routing.type.record.value.path",
            )
        yield from self._aws_mistakes()

    def _aws_mistakes(self) -> Iterable[ConfigError]:
        if (self.aws_region is None) != (self.aws_service_signing_name is None):
            yield ConfigRuleError(
                "Set both aws.region and aws.service.signing.name, or neither.",
                "aws.region",
                "aws.service.signing.name",
            )
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            yield ConfigRuleError(
                "Set both aws.access_key_id and aws.secret_access_key, or neither.",
                "aws.access_key_id",
                "aws.secret_access_key",
            )
        if self.aws_region is not None:
            if reason := missing_extra("s3", "botocore"):
                yield ConfigRuleError(f"Requests cannot be signed. {reason}", "aws.region")
            if self.connection_username is not None or self.connection_api_key is not None:
                yield ConfigRuleError(
                    "Requests are signed for aws.region: remove connection.username, connection.password and "
                    "connection.api.key.",
                    "aws.region",
                    "connection.username",
                )

    @property
    def aws_account(self) -> AwsAccount | None:
        """Who signs requests; None if they are not signed."""
        if self.aws_region is None or self.aws_service_signing_name is None:
            return None
        secret = self.aws_secret_access_key
        return AwsAccount(
            self.aws_region,
            self.aws_service_signing_name,
            self.aws_access_key_id,
            None if secret is None else secret.value,
            self.aws_sts_role_arn,
            self.aws_sts_role_session_name or "sluice",
            self.aws_sts_role_session_duration,
            self.aws_sts_role_external_id,
        )

    def signature(self) -> Sign:
        """Return what signs requests, for Amazon's service."""
        account = self.aws_account
        return super().signature() if account is None else aws_signature(account)

    @property
    def _names_indexes(self) -> bool:
        """Whether the indexes of topics are named by the configuration and made by the connector."""
        return self._existing == "none" and not self.data_stream_enabled

    @property
    def mapping_key(self) -> str:
        """The key of the mapping of topics to resources that exist."""
        return "topic.to.existing.resource.mapping"

    @property
    def makes_template(self) -> bool:
        """Whether an index template for data streams is made."""
        return self.data_streams_existing_index_template_name is not None

    @property
    def _existing(self) -> str:
        return self.existing_resource_type.lower()

    @property
    def writes_streams(self) -> bool:
        """Whether documents go to data streams."""
        return self.data_stream_enabled or self._existing == "data_stream"

    @property
    def trusts_any_certificate(self) -> bool:
        """Whether neither the issuer nor the host of certificates is checked."""
        return self.trust_all_certificates

    @property
    def writing(self) -> Writing:
        """What the options lead to."""
        stream = ""
        if self.data_stream_enabled:
            stream = f"{self.data_stream_prefix}-${{topic}}" if self.data_stream_prefix else "${topic}"
        names = ResourceNames(
            mapped_resources(self.topic_to_existing_resource_mapping, is_data_stream=self._existing == "data_stream"),
            stream,
            self.index_name_template,
            self.indexes_of_topics,
        )
        method = WriteMethod(self.index_write_method.lower())
        path = self.routing_type_record_value_path
        return Writing(
            names,
            method,
            DocumentId.KEY,
            DocumentId(self.key_ignore_id_strategy.lower()),
            self.key_ignore,
            frozenset(self.topic_key_ignore),
            self.schema_ignore,
            frozenset(self.topic_schema_ignore),
            self.compact_map_entries,
            Behavior(self.behavior_on_null_values.lower()),
            Behavior(self.behavior_on_malformed_documents.lower()),
            Behavior(self.behavior_on_version_conflict.lower()),
            self.drop_invalid_message,
            method is WriteMethod.INSERT,
            "",
            (self.data_stream_timestamp_field,),
            min(self.max_in_flight_requests, MOST_CONFLICT_RETRIES),
            Routing(self.routing_type.lower()),
            tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]) if path else (),
        )

"""The worker's own configuration, from its properties file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    Long,
    PluginName,
    Short,
    all_of,
    at_least,
    between,
    list_values,
    non_empty,
    non_empty_list,
    one_of,
    option,
    url_list,
    validator,
)
from connect.config.errors import ConfigRuleError, invalid_value
from connect.errors import ConfigError
from worker.config.response_headers import header_rules
from worker.config.spark_policy import known_spark_policy
from worker.kafka.settings.overrides import ALLOWED_FILES_KEY, ALLOWED_URLS_KEY, known_policy

__all__ = ["DistributedConfig", "StandaloneConfig", "WorkerConfig"]

_INT_MAX = 2**31 - 1
_MAC_ALGORITHMS = ("HmacSHA256", "HmacSHA384", "HmacSHA512", "HmacSHA1", "HmacMD5", "HmacSHA224")


@validator("Positive number, or -1 to use the broker's default")
def _positive_or_default(key: str, value: int) -> None:
    if value != -1 and value <= 0:
        raise invalid_value(key, value, "Value must be positive, or -1 to use the broker's default")


class WorkerConfig(Config):
    """What workers of both modes have. Keys of Kafka clients stand beside these, with and without a prefix."""

    bootstrap_servers: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The host:port pairs through which to find the Kafka cluster.",
    )
    key_converter: PluginName = option(
        importance=HIGH,
        doc="Converter of record keys, for connectors that name none. Its own keys follow as key.converter.*.",
    )
    value_converter: PluginName = option(
        importance=HIGH,
        doc="Converter of record values, for connectors that name none. Its own keys follow as value.converter.*.",
    )
    header_converter: PluginName = option(
        default="org.apache.kafka.connect.storage.SimpleHeaderConverter",
        importance=LOW,
        doc="Converter of header values, for connectors that name none. Its own keys follow as header.converter.*.",
    )
    task_shutdown_graceful_timeout_ms: Long = option(
        default=5_000,
        importance=LOW,
        validator=at_least(0),
        doc="How long a connector or task may take to stop; its process is killed then.",
    )
    offset_flush_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        doc="How often tasks commit their offsets.",
    )
    offset_flush_timeout_ms: Long = option(
        default=5_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long committing offsets may take before it is given up and tried again at the next interval.",
    )
    plugin_path: tuple[str, ...] | None = option(
        default=None,
        importance=LOW,
        doc="Folders of plugins: each holds a plugins.toml and the modules it names, or is a folder of such folders.",
    )
    plugin_import_allowlist: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Patterns of dotted paths, such as acme.connect.*, of classes that configurations may name though no "
        "plugins.toml lists them; * is any text. Whoever may create a connector may have these modules imported.",
    )
    config_providers: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Aliases of config providers, which fill in ${alias:path:key}. Each needs config.providers.ALIAS.class.",
    )
    topic_creation_enable: bool = option(
        default=True,
        importance=LOW,
        doc="Whether source connectors may create topics by their topic.creation.* keys.",
    )
    topic_tracking_enable: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the worker keeps which topics each connector uses, for GET /connectors/NAME/topics.",
    )
    topic_tracking_allow_reset: bool = option(
        default=True,
        importance=LOW,
        doc="Whether users may reset the topics that a connector uses.",
    )
    connector_client_config_override_policy: str = option(
        default="All",
        importance=MEDIUM,
        validator=known_policy,
        doc="Which client keys connectors may override: All, None, Principal (sasl.jaas.config, sasl.mechanism and "
        "security.protocol), or Allowlist, those in connector.client.config.override.allowlist.",
    )
    connector_client_config_override_allowlist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The client keys, without producer.override. and the like, that connectors may override with the policy "
        "Allowlist.",
    )
    oauthbearer_allowed_urls: tuple[str, ...] = option(
        name=ALLOWED_URLS_KEY,
        default=(),
        importance=LOW,
        doc="The token endpoints that connectors may name in their overrides, each as it is written there. In Java "
        "this is a system property.",
    )
    oauthbearer_allowed_files: tuple[str, ...] = option(
        name=ALLOWED_FILES_KEY,
        default=(),
        importance=LOW,
        doc="The files of assertions and of private keys for OAuth that connectors may name in their overrides, each "
        "as it is written there. In Java this is a system property.",
    )
    connector_spark_config_override_policy: str = option(
        default="Tuning",
        importance=MEDIUM,
        validator=known_spark_policy,
        doc="Which keys of Spark (spark.*) connectors may set: Tuning, those of memory, cores and the like and those "
        "in connector.spark.config.override.allowlist; Allowlist, only those in the list; All; None.",
    )
    connector_spark_config_override_allowlist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Patterns of keys of Spark, such as spark.hadoop.fs.s3a.*, that connectors may set with the policies "
        "Tuning and Allowlist; * is any text. Many of them load code, run commands or name files.",
    )
    listeners: tuple[str, ...] = option(
        default=("http://:8083",),
        importance=LOW,
        validator=url_list,
        doc="Where the REST API listens, as URLs. An empty host is every interface, port 0 any free port.",
    )
    rest_advertised_host_name: str | None = option(
        default=None,
        importance=LOW,
        doc="The host name under which other workers and users reach this one.",
    )
    rest_advertised_port: int | None = option(
        default=None,
        importance=LOW,
        doc="The port under which other workers and users reach this one.",
    )
    rest_advertised_listener: str | None = option(
        default=None,
        importance=LOW,
        doc="Which of the listeners other workers use: http or https. By default http, if there is one.",
    )
    admin_listeners: tuple[str, ...] | None = option(
        default=None,
        importance=LOW,
        doc="Where /admin is served, as URLs: with the rest if not set, nowhere if empty.",
    )
    access_control_allow_origin: str = option(
        default="",
        importance=LOW,
        doc="Origins, with commas between them, whose web pages may use the REST API; * is every origin.",
    )
    access_control_allow_methods: str = option(
        default="",
        importance=LOW,
        doc="Methods, with commas between them, that such pages may use; GET, POST and HEAD if empty.",
    )
    response_http_headers_config: str = option(
        default="",
        importance=LOW,
        validator=header_rules,
        doc="Headers of every answer, with commas between them: [set|add|setDate|addDate] NAME: VALUE, each in double "
        "quotes if it has a comma.",
    )


class StandaloneConfig(WorkerConfig):
    """What only standalone workers have."""

    offset_storage_file_filename: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="File that keeps the offsets of source connectors.",
    )

    @property
    def offset_file(self) -> Path:
        """The file that keeps source offsets."""
        return Path(self.offset_storage_file_filename)


class DistributedConfig(WorkerConfig):
    """What only distributed workers have: their group, its topics, and how they trust each other."""

    group_id: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="The name of the cluster that this worker belongs to. No consumer group may have the same.",
    )
    session_timeout_ms: int = option(
        default=10_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How long the cluster waits for a sign of life from a worker before others take over its work. The "
        "broker limits it by group.min.session.timeout.ms and group.max.session.timeout.ms.",
    )
    heartbeat_interval_ms: int = option(
        default=3_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How often a worker gives a sign of life: at most a third of session.timeout.ms.",
    )
    rebalance_timeout_ms: int = option(
        default=60_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How long a worker may take to join a rebalance; longer than its tasks take to stop.",
    )
    group_instance_id: str | None = option(
        default=None,
        importance=LOW,
        doc="A name of this worker that outlives restarts (KIP-345): one that comes back within session.timeout.ms "
        "gets its work back without a rebalance. No two workers may have the same.",
    )
    exactly_once_source_support: str = option(
        default="disabled",
        importance=HIGH,
        validator=one_of("disabled", "enabled", "preparing", ignore_case=True),
        doc="Whether source tasks write records and offsets in transactions (KIP-618). To turn it on in a running "
        "cluster set all workers to preparing, one after the other, and then to enabled.",
    )
    worker_sync_timeout_ms: int = option(
        default=3_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long a worker with older configurations than others may take to catch up before it leaves the group.",
    )
    worker_unsync_backoff_ms: int = option(
        default=300_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long such a worker then stays away.",
    )
    offset_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic that keeps the offsets of source connectors."
    )
    offset_storage_partitions: int = option(
        default=25,
        importance=LOW,
        validator=_positive_or_default,
        doc="How many partitions that topic is created with; -1 is the broker's default.",
    )
    offset_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=_positive_or_default,
        doc="How many replicas that topic is created with; -1 is the broker's default.",
    )
    config_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic that keeps the configurations of connectors."
    )
    config_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=_positive_or_default,
        doc="How many replicas that topic is created with; -1 is the broker's default.",
    )
    status_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic that keeps the states of connectors and tasks."
    )
    status_storage_partitions: int = option(
        default=5,
        importance=LOW,
        validator=_positive_or_default,
        doc="How many partitions that topic is created with; -1 is the broker's default.",
    )
    status_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=_positive_or_default,
        doc="How many replicas that topic is created with; -1 is the broker's default.",
    )
    connect_protocol: str = option(
        default="sessioned",
        importance=LOW,
        validator=one_of("eager", "compatible", "sessioned", ignore_case=True),
        doc="How the workers of the cluster agree on who does what: sessioned signs what they ask of each other, "
        "compatible does not, eager stops everything at each rebalance.",
    )
    scheduled_rebalance_max_delay_ms: int = option(
        default=300_000,
        importance=LOW,
        validator=between(0, _INT_MAX),
        doc="How long the work of a worker that has gone waits for it to come back before others take it over.",
    )
    inter_worker_key_ttl_ms: int = option(
        default=3_600_000,
        importance=LOW,
        validator=between(0, _INT_MAX),
        doc="How long a session key is used before the leader makes another.",
    )
    inter_worker_key_generation_algorithm: str = option(
        default="HmacSHA256",
        importance=LOW,
        validator=one_of(*_MAC_ALGORITHMS),
        doc="The kind of key that the leader makes.",
    )
    inter_worker_key_size: int | None = option(
        default=None,
        importance=LOW,
        doc="The size of that key in bits; by default as long as what its algorithm gives.",
    )
    inter_worker_signature_algorithm: str = option(
        default="HmacSHA256",
        importance=LOW,
        validator=one_of(*_MAC_ALGORITHMS),
        doc="The algorithm by which this worker signs what it asks of others.",
    )
    inter_worker_verification_algorithms: tuple[str, ...] = option(
        default=("HmacSHA256",),
        importance=LOW,
        validator=all_of(non_empty_list, list_values(*_MAC_ALGORITHMS)),
        doc="The algorithms it accepts from others; that by which it signs is one of them.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Refuse keys that contradict each other."""
        signing, accepted = self.inter_worker_signature_algorithm, self.inter_worker_verification_algorithms
        if signing not in accepted:
            yield ConfigRuleError(
                f"inter.worker.verification.algorithms is {','.join(accepted)} and has to hold {signing}, by which "
                "inter.worker.signature.algorithm signs.",
                "inter.worker.verification.algorithms",
            )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            yield ConfigRuleError(
                f"heartbeat.interval.ms is {self.heartbeat_interval_ms} and has to be less than session.timeout.ms, "
                f"which is {self.session_timeout_ms}; a third of it is usual.",
                "heartbeat.interval.ms",
            )
        topics = (self.config_storage_topic, self.offset_storage_topic, self.status_storage_topic)
        if len(set(topics)) < len(topics):
            yield ConfigRuleError(
                f"config.storage.topic, offset.storage.topic and status.storage.topic are {', '.join(topics)}; "
                "name three different topics.",
                "config.storage.topic",
            )

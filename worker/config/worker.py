"""The worker's own configuration, from its properties file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    Long,
    Password,
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
)
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.hosts import ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY, host_list
from connect.internals.kafka.settings.overrides import ALLOWED_FILES_KEY, ALLOWED_URLS_KEY, known_policy
from worker.config.internal_topics import INTERNAL_TOPICS_ALLOWLIST
from worker.config.response_headers import header_rules
from worker.config.spark_policy import known_spark_policy
from worker.config.validators import (
    absolute_path,
    level_list,
    metrics_headers,
    metrics_url,
    positive_or_default,
    version_range,
)
from worker.loggers import LEVEL_NAMES

__all__ = ["WORKER_ID", "DistributedConfig", "StandaloneConfig", "WorkerConfig"]

WORKER_ID = "sluice.worker.id"
"""The key under which the processes of a worker of a cluster are told which one it is."""

_INT_MAX = 2**31 - 1
_MAC_ALGORITHMS = ("HmacSHA256", "HmacSHA384", "HmacSHA512", "HmacSHA1", "HmacMD5", "HmacSHA224")


class WorkerConfig(Config):
    """The keys of workers in both modes. Kafka client keys can be set next to them, with and without a prefix."""

    bootstrap_servers: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The host:port pairs with which to find the Kafka cluster.",
    )
    key_converter: PluginName = option(
        importance=HIGH,
        doc="Converter for record keys, for connectors that name none. Its own keys follow as key.converter.*.",
    )
    key_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    value_converter: PluginName = option(
        importance=HIGH,
        doc="Converter for record values, for connectors that name none. Its own keys follow as value.converter.*.",
    )
    value_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    header_converter: PluginName = option(
        default="org.apache.kafka.connect.storage.SimpleHeaderConverter",
        importance=LOW,
        doc="Converter for header values, for connectors that do not name one. Its own keys follow as "
        "header.converter.*.",
    )
    header_converter_plugin_version: str | None = option(
        default=None,
        importance=LOW,
        validator=version_range,
        doc="Version of that converter, or a range of versions such as [1.0,2.0); the newest if absent.",
    )
    task_shutdown_graceful_timeout_ms: Long = option(
        default=5_000,
        importance=LOW,
        validator=at_least(0),
        doc="How long a connector or task may take to stop, in milliseconds; after that its process is killed.",
    )
    task_isolation: Literal["process", "connector", "shared", "auto"] = option(
        default="auto",
        importance=LOW,
        doc="Which connectors and tasks share a process: process gives each its own, connector is one for a "
        "connector and its tasks, shared is one for up to 50 of several connectors. auto is process while the worker "
        "has up to 16 tasks, then shared, except for those that keep a core busy. Connectors can override this; what "
        "needs its own process, such as Spark, always has one.",
    )
    process_memory_max_bytes: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Maximum memory of a process of connectors and tasks, in bytes, with the JVM of Java plugins but without "
        "other programs it starts; a process that exceeds it is killed, and its connector or task fails. 0 is "
        "unlimited.",
    )
    task_hang_warning_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        doc="Time in milliseconds after which a plugin call that has not returned, such as poll or put, is reported "
        "in log and status with its stack; 0 disables this. Connectors can override it.",
    )
    task_hang_timeout_ms: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Time in milliseconds after which such a call fails its connector or task; its process is killed. 0 "
        "disables this. It must be longer than the longest call, including a poll that waits for data. Connectors can "
        "override it.",
    )
    offset_flush_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        doc="How often tasks commit their offsets, in milliseconds.",
    )
    offset_flush_timeout_ms: Long = option(
        default=5_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long an offset commit may take, in milliseconds, before it is abandoned until the next interval.",
    )
    plugin_path: tuple[str, ...] | None = option(
        default=None,
        importance=LOW,
        doc="Folders of plugins: each holds a plugins.toml and the modules it names, or is a folder of such folders.",
    )
    java_plugins_jvm_options: str = option(
        default="-Xms64M -Xmx2G",
        importance=LOW,
        doc="Options for the JVMs that run Java plugins, such as the size of the heap. Up to 50 tasks share a JVM, "
        "unless task.isolation says otherwise.",
    )
    plugin_import_allowlist: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Patterns of dotted paths, such as acme.connect.*, for classes that configurations may name although no "
        "plugins.toml lists them; * matches any text. Anyone who may create a connector can have them imported.",
    )
    config_providers: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Aliases of config providers, which resolve ${alias:path:key}. Each needs config.providers.ALIAS.class.",
    )
    topic_creation_enable: bool = option(
        default=True,
        importance=LOW,
        doc="Whether source connectors may create topics with their topic.creation.* keys.",
    )
    topic_tracking_enable: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the worker records which topics each connector uses, for GET /connectors/NAME/topics.",
    )
    topic_tracking_allow_reset: bool = option(
        default=True,
        importance=LOW,
        doc="Whether users may reset the record of the topics that a connector uses.",
    )
    connector_client_config_override_policy: str = option(
        default="All",
        importance=MEDIUM,
        validator=known_policy,
        doc="Which client keys connectors may override: All, None, Principal (sasl.jaas.config, sasl.mechanism and "
        "security.protocol), or Allowlist (those in connector.client.config.override.allowlist).",
    )
    connector_client_config_override_allowlist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The client keys, without the prefix producer.override. and the like, that connectors may override with "
        "the policy Allowlist.",
    )
    oauthbearer_allowed_urls: tuple[str, ...] = option(
        name=ALLOWED_URLS_KEY,
        default=(),
        importance=LOW,
        doc="The token endpoints that connectors may name in their overrides, each exactly as written there. In "
        "Java this is a system property.",
    )
    http_allowed_hosts: tuple[str, ...] = option(
        name=ALLOWED_HOSTS_KEY,
        default=(),
        importance=MEDIUM,
        validator=host_list,
        doc="The only hosts that HTTP and JDBC connectors, and the schema registry clients that connectors configure, "
        "may reach: names, in which * matches any text, addresses, and "
        "networks such as 10.0.0.0/8, which are compared with every address connected to. By default all hosts are "
        "allowed except link-local and other addresses where clouds keep credentials; to allow these, list them by "
        "address.",
    )
    http_denied_hosts: tuple[str, ...] = option(
        name=DENIED_HOSTS_KEY,
        default=(),
        importance=MEDIUM,
        validator=host_list,
        doc="Hosts that HTTP and JDBC connectors and the schema registry clients that connectors configure may not "
        "reach, even if allowed above, in the same form.",
    )
    oauthbearer_allowed_files: tuple[str, ...] = option(
        name=ALLOWED_FILES_KEY,
        default=(),
        importance=LOW,
        doc="The files of assertions and of private keys for OAuth that connectors may name in their overrides, "
        "each exactly as written there. In Java this is a system property.",
    )
    connector_spark_config_override_policy: str = option(
        default="Tuning",
        importance=MEDIUM,
        validator=known_spark_policy,
        doc="Which Spark keys (spark.*) connectors may set: Tuning (memory, cores and the like, and those in "
        "connector.spark.config.override.allowlist), Allowlist (only those in the list), All, or None.",
    )
    connector_spark_config_override_allowlist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Patterns of Spark keys, such as spark.hadoop.fs.s3a.*, that connectors may set with the policies "
        "Tuning and Allowlist; * matches any text. Many Spark keys load code, run commands or name files.",
    )
    connector_internal_topics_allowlist: tuple[str, ...] = option(
        name=INTERNAL_TOPICS_ALLOWLIST,
        default=(),
        importance=MEDIUM,
        doc="Patterns of internal topics that connectors may read and write all the same; * matches any text. By "
        "default they may use none of the topics of config.storage.topic, config.history.topic, offset.storage.topic, "
        "status.storage.topic and audit.topic, and none whose name begins with two underscores, except Debezium's "
        "(__debezium-). The config and history topics hold the passwords of all connectors, and the key with which "
        "workers sign their requests.",
    )
    jdbc_allowed_drivers: tuple[str, ...] = option(
        default=("sqlite", "postgresql", "mysql", "mariadb"),
        importance=MEDIUM,
        doc="The drivers that URLs of JDBC connectors may name, in addition to the supported ones. Write them as in "
        "SQLAlchemy, such as oracle+oracledb.",
    )
    jdbc_allowed_options: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Driver options, such as sslrootcert or ssl_ca, that URLs of JDBC connectors may have in addition to "
        "those known to be harmless. Some options load code, run SQL or name files of the worker.",
    )
    datagen_allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Files that the datagen connector may read its schema from (schema.filename), and folders of such "
        "files. By default all files except the worker's own, /proc and /sys. Errors never show file contents.",
    )
    sql_allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Files and folders, or URLs of object stores, that queries of Spark sinks may join "
        "(sql.tables.NAME.path) and that queries may be read from (sql.file). By default none, because their content "
        "can end up in a table.",
    )
    sql_allowed_jdbc_urls: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="JDBC URLs, each exactly as a connector writes it, of databases whose tables queries of Spark sinks may "
        "join (sql.tables.NAME.jdbc.url). By default none, because such a URL can load code and name files.",
    )
    log_format: str = option(
        default="text",
        importance=LOW,
        validator=one_of("text", "json"),
        doc="Format of the worker's log: text, or json with one object per line.",
    )
    log_level: str = option(
        default="INFO",
        importance=LOW,
        validator=one_of(*LEVEL_NAMES, ignore_case=True),
        doc="Log level of the worker, its connectors and its tasks.",
    )
    log_levels: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=level_list,
        doc="Levels of individual loggers and their children, as in connectors.jdbc=DEBUG,worker.membership=WARN.",
    )
    rest_request_log: bool = option(
        default=False,
        importance=LOW,
        doc="Whether each request to the REST API is logged, by the logger rest.requests: the caller, the request, "
        "the status and the milliseconds it took.",
    )
    metrics_otlp_endpoint: str | None = option(
        default=None,
        importance=LOW,
        validator=metrics_url,
        doc="Where to push metrics: the URL of an OpenTelemetry collector, such as "
        "http://collector:4318/v1/metrics. By default they are not pushed; GET /metrics always has them.",
    )
    metrics_otlp_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        doc="How often metrics are pushed, in milliseconds.",
    )
    metrics_otlp_headers: Password | None = option(
        default=None,
        importance=LOW,
        validator=metrics_headers,
        doc="Headers of each push, as in Authorization=Bearer TOKEN; separate several with commas.",
    )
    listeners: tuple[str, ...] = option(
        default=("http://:8083",),
        importance=LOW,
        validator=url_list,
        doc="Where the REST API listens, as URLs. An empty host means all interfaces, port 0 any free port.",
    )
    rest_advertised_host_name: str | None = option(
        default=None,
        importance=LOW,
        doc="The host name with which other workers and users reach this one.",
    )
    rest_advertised_port: int | None = option(
        default=None,
        importance=LOW,
        doc="The port on which other workers and users reach this one.",
    )
    rest_advertised_listener: str | None = option(
        default=None,
        importance=LOW,
        doc="Which listener other workers use: http or https. By default http, if there is one.",
    )
    ui_enable: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the listeners serve the web page, at /ui.",
    )
    ui_base_path: str = option(
        default="",
        importance=LOW,
        validator=absolute_path,
        doc="The path under which a proxy in front of the worker serves it, such as /connect: the links of the web "
        "page begin with it. The proxy must remove it before it forwards a request.",
    )
    admin_listeners: tuple[str, ...] | None = option(
        default=None,
        importance=LOW,
        doc="Where /admin is served, as URLs: on the listeners if absent, nowhere if empty.",
    )
    access_control_allow_origin: str = option(
        default="",
        importance=LOW,
        doc="Origins whose web pages may use the REST API, separated by commas; * allows every origin.",
    )
    access_control_allow_methods: str = option(
        default="",
        importance=LOW,
        doc="Methods that pages of these origins may use, separated by commas; GET, POST and HEAD if empty.",
    )
    response_http_headers_config: str = option(
        default="",
        importance=LOW,
        validator=header_rules,
        doc="Headers to add to every response, separated by commas: [set|add|setDate|addDate] NAME: VALUE, each in "
        "double quotes if it contains a comma.",
    )


class StandaloneConfig(WorkerConfig):
    """The keys of standalone workers."""

    offset_storage_file_filename: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="File for the offsets of source connectors.",
    )
    config_history_file: str = option(
        default="",
        importance=LOW,
        doc="File for the last 50 versions of each connector's configuration. It holds them as written, secrets "
        "included. By default the name of the offsets file with .config-history appended.",
    )

    @property
    def offset_file(self) -> Path:
        """The file for source offsets."""
        return Path(self.offset_storage_file_filename)

    @property
    def history_file(self) -> Path:
        """The file for versions of configurations."""
        return Path(self.config_history_file or f"{self.offset_storage_file_filename}.config-history")


class DistributedConfig(WorkerConfig):
    """The keys of distributed workers: for their group, its topics, and requests between workers."""

    group_id: str = option(
        importance=HIGH,
        validator=non_empty,
        doc="The name of this worker's cluster. Use the same name on every worker, and not for a consumer group.",
    )
    session_timeout_ms: int = option(
        default=10_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How long the cluster waits for a worker's heartbeat, in milliseconds, before other workers take over "
        "its connectors and tasks. The broker limits it by group.min.session.timeout.ms and "
        "group.max.session.timeout.ms.",
    )
    heartbeat_interval_ms: int = option(
        default=3_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How often a worker sends a heartbeat, in milliseconds: at most a third of session.timeout.ms.",
    )
    rebalance_timeout_ms: int = option(
        default=60_000,
        importance=HIGH,
        validator=at_least(1),
        doc="How long a worker may take to join a rebalance, in milliseconds; longer than its tasks take to stop.",
    )
    group_instance_id: str | None = option(
        default=None,
        importance=LOW,
        doc="A name for this worker that survives restarts (KIP-345): a worker that comes back within "
        "session.timeout.ms gets its connectors and tasks back, and the other workers stop none of theirs. Use a "
        "different name on every worker.",
    )
    exactly_once_source_support: str = option(
        default="disabled",
        importance=HIGH,
        validator=one_of("disabled", "enabled", "preparing", ignore_case=True),
        doc="Whether source tasks write records and offsets in transactions (KIP-618). To turn it on in a running "
        "cluster, set every worker to preparing, one after the other, and then to enabled.",
    )
    worker_sync_timeout_ms: int = option(
        default=3_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long a worker whose view of the config topic is behind the others' may take to catch up, in "
        "milliseconds, before it leaves the group.",
    )
    worker_unsync_backoff_ms: int = option(
        default=300_000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long a worker that could not catch up stays out of the group, in milliseconds.",
    )
    offset_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic for the offsets of source connectors."
    )
    offset_storage_partitions: int = option(
        default=25,
        importance=LOW,
        validator=positive_or_default,
        doc="How many partitions the offsets topic is created with; -1 means the broker's default.",
    )
    offset_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=positive_or_default,
        doc="How many replicas the offsets topic is created with; -1 means the broker's default.",
    )
    config_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic for the configurations of connectors."
    )
    config_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=positive_or_default,
        doc="How many replicas the config topic is created with; -1 means the broker's default.",
    )
    config_history_topic: str = option(
        default="",
        importance=LOW,
        doc="The topic for the last 50 versions of each connector's configuration. By default the name of the "
        "config topic with -history appended. It is created with config.storage.replication.factor.",
    )
    status_storage_topic: str = option(
        importance=HIGH, validator=non_empty, doc="The topic for the states of connectors and tasks."
    )
    status_storage_partitions: int = option(
        default=5,
        importance=LOW,
        validator=positive_or_default,
        doc="How many partitions the status topic is created with; -1 means the broker's default.",
    )
    status_storage_replication_factor: Short = option(
        default=3,
        importance=LOW,
        validator=positive_or_default,
        doc="How many replicas the status topic is created with; -1 means the broker's default.",
    )
    connect_protocol: str = option(
        default="sessioned",
        importance=LOW,
        validator=one_of("eager", "compatible", "sessioned", ignore_case=True),
        doc="How the workers distribute connectors and tasks: sessioned rebalances incrementally and signs requests "
        "between workers, compatible does not sign them, eager stops everything at each rebalance.",
    )
    scheduled_rebalance_max_delay_ms: int = option(
        default=300_000,
        importance=LOW,
        validator=between(0, _INT_MAX),
        doc="How long the connectors and tasks of a worker that has left wait for its return, in milliseconds, "
        "before other workers take them over.",
    )
    inter_worker_key_ttl_ms: int = option(
        default=3_600_000,
        importance=LOW,
        validator=between(0, _INT_MAX),
        doc="How long a session key is used, in milliseconds, before the leader replaces it.",
    )
    inter_worker_key_generation_algorithm: str = option(
        default="HmacSHA256",
        importance=LOW,
        validator=one_of(*_MAC_ALGORITHMS),
        doc="The algorithm for which the leader creates session keys.",
    )
    inter_worker_key_size: int | None = option(
        default=None,
        importance=LOW,
        doc="The size of session keys in bits; by default the usual size for their algorithm.",
    )
    inter_worker_signature_algorithm: str = option(
        default="HmacSHA256",
        importance=LOW,
        validator=one_of(*_MAC_ALGORITHMS),
        doc="The algorithm with which this worker signs its requests to other workers.",
    )
    inter_worker_verification_algorithms: tuple[str, ...] = option(
        default=("HmacSHA256",),
        importance=LOW,
        validator=all_of(non_empty_list, list_values(*_MAC_ALGORITHMS)),
        doc="The algorithms that this worker accepts from others, including inter.worker.signature.algorithm.",
    )

    @property
    def history_topic(self) -> str:
        """The topic for versions of configurations."""
        return self.config_history_topic or f"{self.config_storage_topic}-history"

    def check(self) -> Iterable[ConfigError]:
        """Refuse contradictory keys."""
        signing, accepted = self.inter_worker_signature_algorithm, self.inter_worker_verification_algorithms
        if signing not in accepted:
            yield ConfigRuleError(
                f"inter.worker.verification.algorithms is {','.join(accepted)} and lacks {signing}, by which this "
                "worker signs (inter.worker.signature.algorithm): add it.",
                "inter.worker.verification.algorithms",
            )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            yield ConfigRuleError(
                f"heartbeat.interval.ms is {self.heartbeat_interval_ms} and must be less than session.timeout.ms "
                f"({self.session_timeout_ms}): set it to about a third of that.",
                "heartbeat.interval.ms",
            )
        topics = (self.config_storage_topic, self.offset_storage_topic, self.status_storage_topic)
        if self.history_topic in topics:
            yield ConfigRuleError(
                f"config.history.topic is {self.history_topic}, which keeps something else: name a topic of its own.",
                "config.history.topic",
            )
        if len(set(topics)) < len(topics):
            yield ConfigRuleError(
                f"config.storage.topic, offset.storage.topic and status.storage.topic are {', '.join(topics)}; name "
                "three different topics.",
                "config.storage.topic",
            )

"""The worker's own configuration, from its properties file."""

from __future__ import annotations

from pathlib import Path

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    Long,
    PluginName,
    at_least,
    non_empty,
    non_empty_list,
    option,
    url_list,
)
from worker.response_headers import header_rules

__all__ = ["StandaloneConfig", "WorkerConfig"]


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
        doc="Which client keys connectors may override: All, None, Principal or Allowlist.",
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

"""The parts of a worker that both modes share: its properties, its start and its exit status."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from connect.config import read_properties
from connect.errors import ConfigError, ConnectError, PluginError
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.internals.status_line import on_terminal
from worker.config.child_providers import worker_values
from worker.config.file_access import WORKER_FILE
from worker.config.security import SecurityConfig
from worker.config.unknown_keys import suggest_known_keys, tell_of_idle_keys
from worker.config.worker import DistributedConfig, StandaloneConfig, WorkerConfig
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.connectors.drains import Outcome
from worker.herder.herder import Herder
from worker.log import hide_in_log, log_as_json
from worker.loggers import ROOT, level_named, set_level
from worker.metrics.otlp import OtlpPush, OtlpSettings, parse_headers
from worker.metrics.progress import ProgressLog
from worker.security.redaction import Redaction
from worker.stores.offset.service import OffsetService
from worker.supervisor.notices import Notice
from worker.supervisor.process import Launcher
from worker.supervisor.supervisor import Supervisor

__all__ = [
    "COULD_NOT_START",
    "DIED",
    "FAILED",
    "OK",
    "WorkerProperties",
    "end_with",
    "log_end",
    "log_levels",
    "log_start",
    "parsed",
    "plugins_of",
    "start_herder",
    "supervisor_of",
    "topic_tracking_of",
    "warn_of_unknown_keys",
]

logger = logging.getLogger(__name__)

C = TypeVar("C", bound=WorkerConfig)

_EXACTLY_ONCE: Final = "exactly.once.source.support"
OK: Final = 0
DIED: Final = 1
COULD_NOT_START: Final = 2
FAILED: Final = 3


@dataclass(frozen=True, slots=True)
class WorkerProperties:
    """A worker's properties, as written and with references resolved, and the redaction of their secrets."""

    written: Mapping[str, str] = field(repr=False)
    resolved: Mapping[str, str] = field(repr=False)
    redaction: Redaction

    @classmethod
    def read(cls, file: Path | None, environment: Mapping[str, str] = MappingProxyType({})) -> WorkerProperties:
        """Read a worker's file and resolve its references; secrets are hidden in the log from now on.

        Properties from the ``environment`` go before those of the file, which may then be missing.
        """
        return cls.of({**(read_properties(file) if file else {}), **environment}, file)

    @classmethod
    def of(cls, props: Mapping[str, str], file: Path | None) -> WorkerProperties:
        """Resolve references in properties that were made from a file, which no connector may read."""
        written = {**props, WORKER_FILE: str(file.resolve())} if file else dict(props)
        redaction = Redaction()
        hide_in_log(redaction)
        return cls(written, worker_values(written, redaction), redaction)


def parsed(kind: type[C], props: WorkerProperties) -> C:
    """Parse a worker's configuration; an error names its file and suggests keys for misspelled ones."""
    try:
        return kind.parse(props.resolved)
    except ConfigError as error:
        hints = list(_suggestions(kind, props.resolved))
        if "connector.class" in props.resolved:
            hints.append("It has the key connector.class: the worker's file goes first, and connectors' files follow.")
        elif other := _meant_for(kind, props.resolved):
            hints.append(other)
        elif not props.resolved.get("bootstrap.servers"):
            hints.append("Set bootstrap.servers to HOST:PORT of a broker; `sluice broker start` runs one here.")
        place = props.written.get(WORKER_FILE, "The variables CONNECT_...")
        raise ConnectError("\n".join((f"{place}: {error}", *hints))) from error


def _meant_for(kind: type[WorkerConfig], keys: Collection[str]) -> str | None:
    """Return which command a file is meant for that has not the keys of this one, if that can be seen."""
    for other, command, key in (
        (DistributedConfig, "distributed", "group.id"),
        (StandaloneConfig, "standalone", "offset.storage.file.filename"),
    ):
        if kind is not other and key in keys:
            return f"It has the key {key}, as files for `sluice {command}` do."
    return None


def log_start(kind: str, props: WorkerProperties, config: WorkerConfig) -> None:
    """Configure the log, and log what starts: the version, the kind of worker and its brokers."""
    if config.log_format == "json":
        log_as_json(props.redaction)
    for name, level in log_levels(config):
        set_level(name, level_named(level))
    version = importlib.metadata.version("sluice-connect")
    logger.info("Sluice %s starts: %s, brokers at %s", version, kind, props.resolved.get("bootstrap.servers"))


def log_end(status: int) -> int:
    """Log that a worker has ended, and return its exit status."""
    if status != COULD_NOT_START:
        logger.info("Stopped")
    return status


def warn_of_unknown_keys(config: WorkerConfig) -> None:
    """Warn about keys without effect: Java's keys that do not exist here, and misspelled ones."""
    if not isinstance(config, DistributedConfig) and config.originals.get(_EXACTLY_ONCE, "disabled") != "disabled":
        logger.warning(
            "%s has no effect in a standalone worker: its sources deliver at least once. Run sluice distributed for "
            "exactly once.",
            _EXACTLY_ONCE,
        )
    idle = tell_of_idle_keys(config.originals, _own_keys(type(config)))
    for warning in (*idle, *_suggestions(type(config), config.originals)):
        logger.warning("%s", warning)


def _suggestions(kind: type[WorkerConfig], keys: Collection[str]) -> Iterator[str]:
    return suggest_known_keys(keys, _own_keys(kind).union(*CLIENT_KEYS.values()))


def _own_keys(kind: type[WorkerConfig]) -> set[str]:
    return {key.name for each in (kind, SecurityConfig) for key in each.definitions()}


def plugins_of(config: WorkerConfig) -> PluginRegistry:
    """Find the worker's plugins. Raises :class:`~connect.errors.ConfigError` if its converters are not among them."""
    registry = PluginRegistry.discover(config.plugin_path or (), config.plugin_import_allowlist)
    for broken in registry.broken:
        logger.warning("%s", broken)
    for key, kind, name in (
        ("key.converter", PluginKind.CONVERTER, config.key_converter),
        ("value.converter", PluginKind.CONVERTER, config.value_converter),
        ("header.converter", PluginKind.HEADER_CONVERTER, config.header_converter),
    ):
        try:
            registry.find(kind, name)
        except PluginError as error:
            raise ConfigError(key, name, str(error)) from error
    return registry


def topic_tracking_of(config: WorkerConfig) -> TopicTracking:
    """Return whether the worker tracks the topics that connectors use."""
    return TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset)


def log_levels(config: WorkerConfig) -> list[tuple[str, str]]:
    """Return the configured log levels by logger, parents before their children."""
    single = [(name.strip(), level.strip()) for name, _, level in (entry.partition("=") for entry in config.log_levels)]
    root = [] if config.log_level.upper() == "INFO" else [(ROOT, config.log_level)]
    return root + sorted(single)


def supervisor_of(
    config: WorkerConfig, launcher: Launcher, offsets: OffsetService
) -> Callable[[Callable[[Notice], None]], Supervisor]:
    """Return a function that makes the worker's supervisor, given where its notices go."""
    return lambda notify: Supervisor(
        launcher,
        notify,
        offsets.submit,
        config.task_shutdown_graceful_timeout_ms / 1000,
        memory_limit=config.process_memory_max_bytes,
    )


def start_herder(herder: Herder, offsets: OffsetService, config: WorkerConfig, stack: ExitStack) -> None:
    """Start the threads, and have ``stack`` end each one before those it depends on."""
    offsets.start()
    stack.callback(offsets.close)
    stack.callback(herder.close)
    herder.start()
    for name, level in log_levels(config):
        # The processes of connectors and tasks have loggers of their own.
        herder.loggers.set_level(name, level)
    if config.metrics_otlp_endpoint is not None:
        _start_push(herder, config, config.metrics_otlp_endpoint, stack)
    progress = ProgressLog(herder.progress, on_terminal=on_terminal() and config.log_format != "json")
    progress.start()
    stack.callback(progress.close)


def _start_push(herder: Herder, config: WorkerConfig, endpoint: str, stack: ExitStack) -> None:
    headers = parse_headers(config.metrics_otlp_headers.value) if config.metrics_otlp_headers is not None else {}
    settings = OtlpSettings(endpoint, config.metrics_otlp_interval_ms / 1000, headers)
    push = OtlpPush(settings, lambda: herder.snapshot, importlib.metadata.version("sluice-connect"))
    push.start()
    stack.callback(push.close)


def end_with(herder: Herder, stop: Future[int]) -> None:
    """When the herder ends, set the exit status of ``stop`` from its outcome."""
    herder.drained.add_done_callback(lambda done: None if stop.done() else stop.set_result(_status(done)))


def _status(done: Future[Outcome]) -> int:
    if (error := done.exception()) is not None:
        logger.error("The worker stops: %s", error)
        return DIED
    outcome = done.result()
    if outcome.failed:
        logger.error("Finished, but these connectors failed: %s", ", ".join(outcome.failed))
        return FAILED
    logger.info("All connectors are drained")
    return OK

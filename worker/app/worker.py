"""The parts of a worker that both modes share: its properties, its start and its exit status."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from connect.config import ConfigType, read_properties
from connect.config.parsing import parse_value
from connect.errors import ConfigError, PluginError, RetriableError
from connect.plugins import PluginKind, PluginRegistry
from worker.config.child_providers import worker_values
from worker.config.own_files import WORKER_FILE
from worker.config.unknown_keys import suggest_known_keys
from worker.config.worker import WorkerConfig
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.connectors.drains import Outcome
from worker.herder.herder import Herder
from worker.kafka.clients.librdkafka import admin, until_answered
from worker.kafka.clients.roles import internal_properties
from worker.kafka.settings.keys import CLIENT_KEYS
from worker.kafka.settings.kind import ClientKind
from worker.log import hide_in_log
from worker.metrics.progress import ProgressLog
from worker.security.redaction import Redaction
from worker.stores.offset.service import OffsetService

__all__ = [
    "COULD_NOT_START",
    "DIED",
    "FAILED",
    "OK",
    "WorkerProperties",
    "cluster_id_of",
    "end_with",
    "plugins_of",
    "start_herder",
    "topic_tracking_of",
    "warn_of_unknown_keys",
]

logger = logging.getLogger(__name__)
T = TypeVar("T")

OK: Final = 0
DIED: Final = 1
COULD_NOT_START: Final = 2
FAILED: Final = 3
_API_TIMEOUT: Final = "default.api.timeout.ms"
_API_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class WorkerProperties:
    """The properties of a worker, as written in its file and with references resolved, and what hides their secrets."""

    written: Mapping[str, str] = field(repr=False)
    resolved: Mapping[str, str] = field(repr=False)
    redaction: Redaction

    @classmethod
    def read(cls, file: Path) -> WorkerProperties:
        """Read a worker's file and resolve its references; secrets are hidden in the log from now on."""
        written = {**read_properties(file), WORKER_FILE: str(file.resolve())}
        redaction = Redaction()
        hide_in_log(redaction)
        return cls(written, worker_values(written, redaction), redaction)


def warn_of_unknown_keys(config: WorkerConfig) -> None:
    """Warn of keys that have no effect because they are misspelled."""
    own = {key.name for key in type(config).definitions()}
    for warning in suggest_known_keys(config.originals, own.union(*CLIENT_KEYS.values())):
        logger.warning("%s", warning)


def cluster_id_of(props: Mapping[str, str]) -> str:
    """The id of the Kafka cluster; a worker does not start unless a broker tells it.

    The worker waits for that as long as ``default.api.timeout.ms`` says.
    """
    properties = internal_properties(props, ClientKind.ADMIN, "shared-admin")
    client = admin(properties)
    milliseconds = parse_value(_API_TIMEOUT, properties.runtime.get(_API_TIMEOUT, _API_TIMEOUT_MS), ConfigType.INT)
    assert isinstance(milliseconds, int)
    timeout = milliseconds / 1000

    def ask() -> str:
        try:
            return str(client.list_topics(timeout=timeout).cluster_id)
        except KafkaException as error:
            raise RetriableError(
                "Failed to connect to and describe Kafka cluster. Check that a broker answers at "
                f"bootstrap.servers={props['bootstrap.servers']} and that the security settings are right: {error}"
            ) from error

    return until_answered(lambda: _interruptible(ask), timeout)


def plugins_of(config: WorkerConfig) -> PluginRegistry:
    """The plugins of a worker; :class:`~connect.errors.ConfigError` if its converters are not among them."""
    registry = PluginRegistry.discover(config.plugin_path or (), config.plugin_import_allowlist)
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
    """Whether the worker keeps the topics that connectors use."""
    return TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset)


def start_herder(herder: Herder, offsets: OffsetService, stack: ExitStack) -> None:
    """Start the threads, and have ``stack`` end each before those that it needs."""
    offsets.start()
    stack.callback(offsets.close)
    stack.callback(herder.close)
    herder.start()
    progress = ProgressLog(herder.totals)
    progress.start()
    stack.callback(progress.close)


def end_with(herder: Herder, stop: Future[int]) -> None:
    """Set ``stop`` to the exit status of the herder's outcome once the herder has ended."""
    herder.drained.add_done_callback(lambda done: None if stop.done() else stop.set_result(_status(done)))


def _status(done: Future[Outcome]) -> int:
    if (error := done.exception()) is not None:
        logger.error("The worker ends: %s", error)
        return DIED
    outcome = done.result()
    if outcome.failed:
        logger.error("Finished, but these connectors failed: %s", ", ".join(outcome.failed))
        return FAILED
    logger.info("All connectors are drained")
    return OK


def _interruptible(ask: Callable[[], T]) -> T:
    """Ask in a thread of its own: the client library may wait for brokers where no signal would interrupt it."""
    answer: Future[T] = Future()

    def attempt() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=attempt, name="cluster-id", daemon=True).start()
    return answer.result()

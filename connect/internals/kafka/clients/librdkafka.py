"""Creation of librdkafka clients, their logging, and retries of their requests."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.auth.jaas import client_secrets
from connect.internals.kafka.auth.rights import explained, is_login_refused
from connect.internals.kafka.clients.statistics import CONSUMER, PRODUCER, TakeStatistics, reading
from connect.internals.kafka.settings.client import ClientProperties

__all__ = [
    "UNREACHABLE",
    "ConnectionFailures",
    "admin",
    "cluster_problem",
    "consumer",
    "fail_without_login",
    "listed_topics",
    "log_error",
    "producer",
    "until_answered",
]

logger = logging.getLogger(__name__)
_CREATES_NONE: Final = {"allow.auto.create.topics": False}
"""For librdkafka an admin client is a producer, which would have a missing topic created that it looks up."""

T = TypeVar("T")
ErrorCallback: TypeAlias = Callable[[KafkaError], None]

_LEAST_WAIT_SECONDS: Final = 0.1
_MOST_WAIT_SECONDS: Final = 2.0

UNREACHABLE: Final = "The Kafka client reaches no broker, and goes on trying"
"""Logged every second by a client that has lost all brokers."""

_STATISTICS_INTERVAL: Final = "statistics.interval.ms"
_STATISTICS_MS: Final = 30_000
_REPORTED: Final = "Kafka client: %s"
"""Logged for failures that a client keeps retrying, such as a login, often every second."""

_SLICE_SECONDS: Final = 1.0
_LIST_SECONDS: Final = 10.0
_TELLING: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})
"""Errors that say more than that no broker answers."""
_FACILITY: Final = "FAIL"
_QUIET_SECONDS: Final = 60.0
_RETRYING: Final = ": retrying"
_MOST_KEPT: Final = 100
_PASSING: Final = re.compile(r"\[thrd:[^\]]*\]: (?:\S+: )*|\(after .*")
"""The parts of a log line that differ each time although the same broker is away."""
_LOST: Final = ": Disconnected: connection "
"""In the log lines of connections that were in use: if the broker is away, the next attempt to connect says so."""
_REFUSAL: Final = re.compile(r"\b(SSL|SASL)\b")
"""In the log lines of failures that trying again does not mend."""


class ConnectionFailures(logging.Filter):
    """A log filter that passes one connection failure per minute and process, whichever client reports it.

    The library reports them as errors although it connects again by itself; they are logged as warnings, like those of
    Java's client, except failures of TLS and of a login. A lost connection alone is no failure. Failures that the
    library says it retries itself, such as getting a producer id, are dropped. A logger of level DEBUG gets all lines.
    The library logs with its facility, the client's name and the text as arguments. May be used by any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is logged."""
        is_failure = isinstance(record.args, tuple) and len(record.args) == 3 and record.args[0] == _FACILITY
        level = logging.getLogger(record.name).getEffectiveLevel()
        if is_failure and not _REFUSAL.search(record.getMessage()):
            record.levelno = logging.DEBUG if _LOST in record.getMessage() else logging.WARNING
            record.levelname = logging.getLevelName(record.levelno)
        if record.levelno < level:
            return False
        if level <= logging.DEBUG:
            return True
        if not (is_failure or record.msg in (UNREACHABLE, _REPORTED)):
            return not (isinstance(record.args, tuple) and record.args and str(record.args[-1]).endswith(_RETRYING))
        message = record.getMessage()
        text = _PASSING.sub("", message.partition("] ")[2] if is_failure else message)
        now = self._clock()
        if now - self._logged.get(text, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return False
        if len(self._logged) >= _MOST_KEPT:
            self._logged = {}
        self._logged[text] = now
        return True


logger.addFilter(ConnectionFailures())


def producer(
    properties: ClientProperties,
    on_error: ErrorCallback | None = None,
    on_statistics: TakeStatistics | None = None,
) -> Producer:
    """Make a producer. ``on_error`` and ``on_statistics`` are called from ``poll``; by default errors are logged."""
    try:
        return Producer(_configuration(properties, on_error) | _statistics(PRODUCER, properties, on_statistics))
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error, properties) from None  # I8: the original may hold a secret


def consumer(
    properties: ClientProperties,
    on_error: ErrorCallback | None = None,
    on_statistics: TakeStatistics | None = None,
) -> Consumer:
    """Make a consumer. ``on_error`` and ``on_statistics`` are called from ``consume`` and ``poll``.

    By default errors are logged.
    """
    try:
        return Consumer(_configuration(properties, on_error) | _statistics(CONSUMER, properties, on_statistics))
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error, properties) from None  # I8: the original may hold a secret


def admin(properties: ClientProperties, on_error: ErrorCallback | None = None) -> AdminClient:
    """Make an admin client. ``on_error`` is called from ``poll``; by default errors are logged."""
    try:
        return AdminClient({**_configuration(properties, on_error), **_CREATES_NONE})
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error, properties) from None  # I8: the original may hold a secret


def cluster_problem(properties: ClientProperties, who: str, seconds: float) -> str | None:
    """Return why no broker of a cluster answers within some seconds; ``None`` if one does.

    ``who`` describes whose client it is, for the remedy of a refused login.
    """
    told: list[KafkaError] = []

    def note(error: KafkaError) -> None:
        if error.code() in _TELLING or not told:
            told[:] = [error]

    try:
        client = admin(properties, note)
    except ConnectError as error:
        return str(error)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            client.list_topics(timeout=min(_SLICE_SECONDS, left))
        except KafkaException as error:
            client.poll(0)
            told = told or [error.args[0]]
        else:
            return None
        if is_login_refused(told[0]):
            break
    return f"No broker of {properties.properties.get('metadata.broker.list')} answers: {explained(told[0], who)}"


def listed_topics(properties: ClientProperties, who: str) -> list[str]:
    """Return the topics that a client may see; ``who`` describes whose client it is.

    Raises :class:`~connect.errors.ConnectError` if no broker answers.
    """
    client = admin(properties, fail_without_login(who))
    try:
        return list(client.list_topics(timeout=_LIST_SECONDS).topics)
    except KafkaException as error:
        client.poll(0)  # only here does the client report that its login was refused
        brokers = properties.properties.get("metadata.broker.list")
        raise ConnectError(f"No broker of {brokers} lists its topics: {explained(error.args[0], who)}") from error


def log_error(error: KafkaError) -> None:
    """Log what a client reports outside any call. The client continues by itself unless the error is fatal."""
    if error.fatal():
        logger.error("Kafka client failed for good: %s", error.str())
    elif error.code() == KafkaError._TRANSPORT:
        logger.debug("Kafka client lost a connection: %s", error.str())
    elif error.code() == KafkaError._ALL_BROKERS_DOWN:
        logger.warning(UNREACHABLE)
    else:
        logger.warning(_REPORTED, error.str())


def fail_without_login(user: str) -> ErrorCallback:
    """Return a callback that raises ``ConnectError`` in the client's next poll once its login is rejected.

    ``user`` describes whose login it is. Other errors are logged.
    """

    def report(error: KafkaError) -> None:
        if is_login_refused(error):
            raise ConnectError(f"The brokers refuse this client: {explained(error, user)}")
        log_error(error)

    return report


def until_answered(ask: Callable[[], T], seconds: float) -> T:
    """Call ``ask`` again after each ``RetriableError`` for up to this many seconds, then raise the last one. Blocks.

    When a broker goes away, all requests on its connection fail at once, regardless of their timeouts.
    """
    deadline = time.monotonic() + seconds
    wait = _LEAST_WAIT_SECONDS
    while True:
        try:
            return ask()
        except RetriableError as error:
            if time.monotonic() + wait >= deadline:
                raise
            logger.warning("%s; asking again", error)
        time.sleep(wait)
        wait = min(wait * 2, _MOST_WAIT_SECONDS)


def _configuration(properties: ClientProperties, on_error: ErrorCallback | None) -> dict[str, Any]:
    if not str(properties.properties.get("metadata.broker.list", "")).strip():
        raise ConfigRuleError(
            'Missing required configuration "bootstrap.servers" which has no default value.',
            "bootstrap.servers",
        )
    return {**properties.properties, "error_cb": on_error or log_error, "logger": logger}


def _statistics(kind: str, properties: ClientProperties, take: TakeStatistics | None) -> dict[str, Any]:
    if take is None:
        return {}
    interval = {} if _STATISTICS_INTERVAL in properties.properties else {_STATISTICS_INTERVAL: _STATISTICS_MS}
    return {**interval, "stats_cb": reading(kind, take)}


def _refused(error: Exception, properties: ClientProperties) -> ConfigRuleError:
    cause = error.args[0] if error.args else error
    text = (cause.str() if isinstance(cause, KafkaError) else str(cause)).strip()
    for secret in client_secrets({name: str(value) for name, value in properties.properties.items()}):
        text = text.replace(secret, HIDDEN) if secret else text
    if "GSSAPI" in text:
        text += (
            ". Install a client with Kerberos (pip install --no-binary confluent-kafka confluent-kafka, on a "
            "machine with librdkafka and libsasl2), or use another sasl.mechanism"
        )
    named = re.search(r"[`\"]([a-z][a-z_]*(?:\.[a-z_]+)+)[`\"]", text)
    return ConfigRuleError(
        f"The Kafka client cannot be made from its settings: {text}",
        named[1] if named else "security.protocol",
    )

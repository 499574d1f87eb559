"""Checks the brokers when a worker starts: the id of their cluster, and what is wrong if none answers.

Kafka clients retry in silence and then report a timeout. Whether anything listens at an address is known immediately,
so this is checked at the same time and reported at once.
"""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connect.config import ConfigType
from connect.config.parsing import parse_value
from connect.errors import ConnectError, RetriableError, os_reason
from connect.internals.kafka.auth.rights import WORKER, explained, is_login_refused
from connect.internals.kafka.clients.librdkafka import admin, log_error, until_answered
from connect.internals.kafka.settings.client import ClientKind
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
from worker.embedded.ports import is_free
from worker.kafka.clients.roles import internal_properties

__all__ = ["Absence", "cluster_id_of", "unreachable"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_API_TIMEOUT: Final = "default.api.timeout.ms"
_API_TIMEOUT_MS: Final = 30_000
_LOOK_SECONDS: Final = 3.0
_SLICE_SECONDS: Final = 0.1
_DEFAULT_PORT: Final = 9092
_API_VERSIONS: Final = 18
_CORRELATION: Final = 1


def cluster_id_of(props: Mapping[str, str]) -> str:
    """Return the id of the Kafka cluster; the worker does not start unless a broker sends it.

    Waits for up to ``default.api.timeout.ms``.
    """
    properties = internal_properties(props, ClientKind.ADMIN, "shared-admin")
    last: list[str] = []

    def report(error: KafkaError) -> None:
        if is_login_refused(error):
            raise ConnectError(f"Failed to connect to and describe Kafka cluster: {explained(error, WORKER)}")
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            last[:] = [explained(error, WORKER)]
        log_error(error)

    client = admin(properties, report)
    servers = str(properties.properties["metadata.broker.list"]).split(",")
    milliseconds = parse_value(_API_TIMEOUT, properties.runtime.get(_API_TIMEOUT, _API_TIMEOUT_MS), ConfigType.INT)
    assert isinstance(milliseconds, int)
    timeout = milliseconds / 1000

    def ask() -> str:
        try:
            return str(client.list_topics(timeout=timeout).cluster_id)
        except KafkaException as error:
            raise RetriableError(error.args[0].str()) from error

    plaintext = str(properties.properties.get("security.protocol", "plaintext")).lower() == "plaintext"
    look = partial(unreachable, servers, plaintext=plaintext)
    over = threading.Event()
    threading.Thread(target=_warn_of_absence, args=(look, over, timeout), name="broker-look", daemon=True).start()
    try:
        return until_answered(lambda: _answered(client, ask), timeout)
    except RetriableError as error:
        absence = look()
        reason = last[0] if last else str(error)
        cause = f"{absence.fault}. {absence.remedy}" if absence else f"{_no_broker(props)} The client says: {reason}"
        raise ConnectError(f"Failed to connect to and describe Kafka cluster: {cause}") from error
    finally:
        over.set()


@dataclass(frozen=True, slots=True)
class Absence:
    """What happens at addresses that do not accept connections, and how to fix it."""

    fault: str
    remedy: str


def unreachable(servers: Sequence[str], *, plaintext: bool = False) -> Absence | None:
    """Check whether a broker answers at one of ``servers``, given as ``host:port``; return ``None`` if so.

    For ``plaintext`` connections it must answer like a broker, otherwise accept connections.
    """
    addresses = [_address(server) for server in servers]
    with ThreadPoolExecutor(len(addresses)) as pool:
        faults = list(pool.map(partial(_fault, plaintext=plaintext), addresses))
    if not all(faults):
        return None
    reason = "; ".join(f"{host}:{port} {fault}" for (host, port), fault in zip(addresses, faults, strict=True))
    return Absence(reason, _remedy(addresses))


def _warn_of_absence(look: Callable[[], Absence | None], over: threading.Event, seconds: float) -> None:
    if (absence := look()) is not None and not over.is_set():
        logger.warning("%s; trying for %g s. %s", absence.fault, seconds, absence.remedy)


def _no_broker(props: Mapping[str, str]) -> str:
    return (
        f"something accepts connections at bootstrap.servers={props['bootstrap.servers']}, but does not answer as a "
        "broker. Check that this is the port of a broker, and that security.protocol and the other security settings "
        "are those of its listener."
    )


def _fault(address: tuple[str, int], *, plaintext: bool) -> str | None:
    try:
        with closing(socket.create_connection(address, _LOOK_SECONDS)) as connection:
            return None if not plaintext or _is_broker(connection) else "does not answer as a Kafka broker"
    except ConnectionRefusedError:
        return "refuses connections"
    except TimeoutError:
        return f"does not answer within {_LOOK_SECONDS:g} s"
    except OSError as error:
        return f"cannot be reached ({os_reason(error)})"


def _is_broker(connection: socket.socket) -> bool:
    """Send the ApiVersions request with which every client starts, and check that a broker's answer comes back."""
    request = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION, -1)
    connection.settimeout(_LOOK_SECONDS)
    try:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            _, correlation = struct.unpack(">ii", answer.read(8))
    except (OSError, struct.error):
        return False
    return bool(correlation == _CORRELATION)


def _remedy(addresses: Sequence[tuple[str, int]]) -> str:
    if not any(_is_here(host) for host, _ in addresses):
        return "Check bootstrap.servers, and the network between this machine and the brokers."
    if (running := EmbeddedBroker(BrokerConfig()).status()) is not None:
        return f"The broker of `sluice broker start` is at {running.bootstrap_servers}: use that as bootstrap.servers."
    free = {port for _, port in addresses if is_free(port)}
    if not free:
        return "Give the port of a broker as bootstrap.servers, or start one: sluice broker start"
    port = "" if _DEFAULT_PORT in free else f" --port {min(free)}"
    return f"Start one: sluice broker start{port}"


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition("://")[2].strip().rpartition(":")
    return host.strip("[]"), int(port)


def _answered(client: AdminClient, ask: Callable[[], T]) -> T:
    """Run ``ask`` in its own thread, and meanwhile collect the client's messages, such as a refused login.

    The client library may wait for brokers without reacting to signals.
    """
    answer: Future[T] = Future()

    def attempt() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=attempt, name="cluster-id", daemon=True).start()
    while True:
        try:
            return answer.result(_SLICE_SECONDS)
        except TimeoutError:
            continue
        finally:
            client.poll(0)

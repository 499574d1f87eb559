"""A session with an MQTT server, which outlives its connections, and what their failures mean."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MessageState, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from connect.errors import ConnectError, RetriableError, os_reason
from connectors.mqtt.config import ConnectionConfig, Server

__all__ = ["Session", "largest_packet", "refused_filters", "user_properties"]

logger = logging.getLogger(__name__)
_MOST_RECEIVED: Final = 65_535
_CREDENTIALS: Final = frozenset({"Bad user name or password", "Not authorized", "Banned", "Bad authentication method"})
_VERSION: Final = "Unsupported protocol version"
_CLIENT_ID: Final = "Client identifier not valid"


class _Client(mqtt.Client):
    """A client that tries the servers in turn, and says why it cannot connect."""

    def __init__(self, config: ConnectionConfig, failed: Callable[[BaseException], None], **options: Any) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id=config.client_id, **options)
        self._own_config = config
        self._failed = failed
        self._attempts = 0
        self.connect_properties: Properties | None = None
        self.clean_start: bool | int = False

    def reconnect(self) -> MQTTErrorCode:
        """Connect to the next server."""
        servers = self._own_config.servers
        server = servers[self._attempts % len(servers)]
        self._attempts += 1
        try:
            self._own_config.host_rules.check_all(server.host, server.port)
            self._direct(server)
            return super().reconnect()
        except (OSError, ConnectError, UnicodeError) as error:
            self._failed(error)
            raise ConnectionError(str(error)) from error

    def publish_anew(self) -> int:
        """Have messages sent again that would only be released, and return how many: the server has forgotten them.

        Call this in the callback of a connection, after which the library sends again.
        """
        with self._out_message_mutex:
            released = [
                each for each in self._out_messages.values() if each.state is MessageState.MQTT_MS_RESEND_PUBREL
            ]
            for each in released:
                each.state, each.dup = MessageState.MQTT_MS_PUBLISH, False
        return len(released)

    def forget(self, packet_ids: Collection[int]) -> None:
        """Send messages not again that are not acknowledged."""
        with self._out_message_mutex:
            for packet_id in packet_ids:
                self._out_messages.pop(packet_id, None)

    def _direct(self, server: Server) -> None:
        options: dict[str, Any] = {}
        if self.connect_properties is not None:
            options = {"clean_start": self.clean_start, "properties": self.connect_properties}
        self.connect_async(server.host, server.port, self._own_config.mqtt_keepalive_interval_seconds, **options)


class Session:
    """A client and its thread. The library connects again by itself; what it has sent and is not confirmed it sends
    again then.

    ``opened`` is called in the thread with each connection, and told whether the server has the session still.
    ``changed`` is called there when the connection is made or lost.
    """

    def __init__(
        self,
        config: ConnectionConfig,
        *,
        is_clean: bool,
        opened: Callable[[bool], None],
        changed: Callable[[], None],
        receives: int = _MOST_RECEIVED,
    ) -> None:
        self._config = config
        self._opened = opened
        self._changed = changed
        self._failure: ConnectError | None = None
        self._is_open = threading.Event()
        self.window = _MOST_RECEIVED
        """How many messages the server takes that it has not acknowledged. With version 3.1.1 it does not say so."""
        self.largest_bytes: int | None = None
        """How large a packet may be for the server, if it says so; with version 3.1.1 it does not."""
        self.losses = 0
        """How often the server, or the network, has ended a connection; whoever reads it may begin anew."""
        self._is_dropped = False
        options: dict[str, Any] = {"manual_ack": True, "protocol": mqtt.MQTTv311, "clean_session": is_clean}
        if config.is_version_5:
            options |= {"protocol": mqtt.MQTTv5, "clean_session": None}
        client = self.client = _Client(config, self._not_connected, **options)
        if config.is_version_5:
            client.clean_start = is_clean
            client.connect_properties = properties = _properties(PacketTypes.CONNECT)
            properties.ReceiveMaximum = min(receives, _MOST_RECEIVED)
            properties.SessionExpiryInterval = 0 if is_clean else config.mqtt_session_expiry_seconds
        self._prepare(client)

    def _prepare(self, client: _Client) -> None:
        config = self._config
        if config.mqtt_username:
            client.username_pw_set(config.mqtt_username, config.mqtt_password.value or None)
        if (tls := config.tls()) is not None:
            client.tls_set_context(tls)
        if (will := config.will) is not None:
            client.will_set(will.topic, will.payload, will.qos, will.is_retained)
        client.connect_timeout = float(config.mqtt_connect_timeout_seconds)
        client.reconnect_delay_set(config.reconnect_seconds, config.reconnect_seconds)  # type: ignore[arg-type]
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect

    def start(self) -> None:
        """Connect, in a thread."""
        self.client._direct(self._config.servers[0])
        self.client.loop_start()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection now."""
        return self._is_open.is_set()

    @property
    def failure(self) -> ConnectError | None:
        """Why there is no connection now; ``None`` if there is one, or the first is on its way."""
        return None if self._is_open.is_set() else self._failure

    def wait(self, seconds: float) -> bool:
        """Wait for the connection, and return whether it is there."""
        return self._is_open.wait(seconds)

    def close(self) -> None:
        """Take leave of the server, after all that was sent before, and end the thread."""
        self.client.disconnect()
        self.client.loop_stop()
        self._is_open.clear()

    def drop(self) -> None:
        """Break the connection, of which the server does not answer any more; the library makes another."""
        connection: Any = self.client.socket()
        self._is_dropped = True
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _not_connected(self, error: BaseException) -> None:
        where = f"The MQTT server {self._config.place}"
        if isinstance(error, ConnectError):
            self._failure = error
        elif isinstance(error, ssl.SSLCertVerificationError):
            self._failure = ConnectError(
                f"The certificate of {self._config.place} is not trusted: {error}. Check the keys mqtt.ssl.*, and that "
                "the host in mqtt.server.uri is a name in the certificate."
            )
        elif isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
            self._failure = ConnectError(f"{where} does not speak TLS there: write tcp:// in mqtt.server.uri.")
        else:
            reason = "it does not answer" if isinstance(error, socket.timeout) else os_reason(error)
            self._failure = RetriableError(f"{where} cannot be connected to: {reason}.", self._config.reconnect_seconds)
        self._changed()

    def _on_connect(self, _client: object, _data: object, flags: Any, code: ReasonCode, properties: object) -> None:
        if code.is_failure:
            self._failure = self._refusal(code)
            self._changed()
            return
        if not flags.session_present and (count := self.client.publish_anew()):
            logger.warning(
                "The MQTT server %s has forgotten the session: %d messages that it had taken are sent again, and may "
                "come twice. Let it keep its sessions over a restart (mosquitto: persistence true).",
                self._config.place,
                count,
            )
        self._failure = None
        self._is_dropped = False
        self.window = getattr(properties, "ReceiveMaximum", _MOST_RECEIVED)
        self.largest_bytes = getattr(properties, "MaximumPacketSize", None)
        self._is_open.set()
        self._opened(bool(flags.session_present))
        self._changed()

    def _refusal(self, code: ReasonCode) -> ConnectError:
        name, where = code.getName(), f"The MQTT server {self._config.place}"
        if name in _CREDENTIALS:
            user = self._config.mqtt_username or "nobody (mqtt.username is empty)"
            return ConnectError(f"{where} refuses the user {user}: {name}. Correct mqtt.username and mqtt.password.")
        if name == _VERSION:
            return ConnectError(f"{where} does not speak MQTT {self._config.mqtt_version}: set mqtt.version.")
        if name == _CLIENT_ID:
            return ConnectError(f"{where} refuses the client id {self._config.client_id}: set mqtt.client.id.")
        return RetriableError(f"{where} refuses the connection: {name}.", self._config.reconnect_seconds)

    def _on_disconnect(
        self, _client: object, _data: object, _flags: object, code: ReasonCode, _properties: object
    ) -> None:
        self.losses += self._is_open.is_set() and not self._is_dropped
        self._is_open.clear()
        if not isinstance(self._failure, ConnectError) or isinstance(self._failure, RetriableError):
            self._failure = RetriableError(
                f"The connection to the MQTT server {self._config.place} is lost: {code.getName()}. If that comes "
                f"again and again, another client may use the client id {self._config.client_id}.",
                self._config.reconnect_seconds,
            )
        self._changed()


def _properties(packet: int) -> Any:
    return Properties(packet)  # type: ignore[no-untyped-call]


def largest_packet(config: ConnectionConfig, seconds: float) -> int | None:
    """Return how large a packet may be for the server, which it says by MQTT 5 alone; ``None`` if it does not."""
    own = {"mqtt.version": "5", "mqtt.client.id": f"{config.client_id}-size", "mqtt.will.topic": ""}
    asking = type(config).parse({**config.originals, **own})
    session = Session(asking, is_clean=True, opened=lambda _: None, changed=lambda: None)
    session.start()
    try:
        session.wait(seconds)
        return session.largest_bytes
    finally:
        session.close()


def refused_filters(filters: Sequence[str], codes: Sequence[Any]) -> Iterator[str]:
    """Yield what the server says about each filter that it refuses, in its answer to a subscription."""
    for each, code in zip(filters, codes, strict=False):
        if code.is_failure:
            yield (
                f"The MQTT server refuses the subscription to {each}: {code.getName()}. Grant the user the right to "
                "read it."
            )


def user_properties(headers: Sequence[tuple[str, object]]) -> Any:
    """Return the properties of a message of MQTT 5 with the headers that are texts; ``None`` if there are none."""
    pairs = [(key, value) for key, value in headers if isinstance(value, str)]
    if not pairs:
        return None
    properties = _properties(PacketTypes.PUBLISH)
    properties.UserProperty = pairs
    return properties

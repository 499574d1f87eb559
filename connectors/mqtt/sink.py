"""The MQTT sink: records become messages, whose offsets are committed once the server has acknowledged them.

=======================================  ==============================================================================
kill -9 of the task or worker here       then
=======================================  ==============================================================================
QoS 0                                    what the kernel has not sent is lost if it is committed: MQTT acknowledges
                                         nothing
QoS 1 and 2, before the acknowledgement  the offset is not committed, and the record is sent again: nothing is lost.
                                         If the server has the message all the same, it comes twice
QoS 1 and 2, after it, before the        what was acknowledged since the last commit is sent again, and comes twice
commit of offsets
the connection is lost, or the server    the library sends again what is not acknowledged: with QoS 1 it may come
restarts and keeps its sessions          twice, with QoS 2 once, unless the connection is lost again before it stands
the server ends each connection over a   by MQTT 5 it says which size it takes, and a larger message is a bad record.
message, as it is too large              With 3.1.1 it is asked by MQTT 5 after ten connections without an
                                         acknowledgement. If it does not say, the task fails: nothing is committed
QoS 2, and the server restarts and       everything that is not acknowledged is sent again, and may come twice: the
forgets its sessions                     server confirms the release of a message, too, that it has forgotten
=======================================  ==============================================================================
"""

from __future__ import annotations

import queue
import time
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.deliveries import Unconfirmed, give_up, position_of
from connect.sink import SinkConnector, SinkTask
from connectors.mqtt.sink_config import MqttSinkConfig
from connectors.mqtt.topics import topic_problem

if TYPE_CHECKING:
    from connectors.mqtt.session import Session

__all__ = ["MqttSinkConnector", "MqttSinkTask"]

_SLICE_SECONDS: Final = 0.05
_LONGEST_PUT_SECONDS: Final = 20.0
_COMMIT_SECONDS: Final = 2.0
_CONNECTION_SECONDS: Final = 5.0
_OVERHEAD_BYTES: Final = 500
_MOST_PAYLOAD_BYTES: Final = 268_435_455
_MOST_LOSSES: Final = 10
"""After how many connections that end without an acknowledgement it is not the network's fault."""
_HEADER_BYTES: Final = 16
"""Most bytes of a packet beside its topic, its payload and the headers, which have five each."""
_USER_PROPERTY_BYTES: Final = 5


class MqttSinkTask(SinkTask[MqttSinkConfig]):
    """Publishes the records of each batch in order. What is not acknowledged the library keeps, and sends again."""

    def start(self) -> None:
        self._session: Session | None = None
        self._unconfirmed: Unconfirmed[SinkRecord] = Unconfirmed()
        self._under_way: dict[int, SinkRecord] = {}
        """The records by the packet ids of their messages."""
        self._outcomes: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._early: dict[int, Any] = {}
        self._progress_at = 0.0

    def put(self, records: SinkBatch) -> None:
        deadline = time.monotonic() + _LONGEST_PUT_SECONDS
        refused: list[tuple[SinkRecord, DataError]] = []
        session = self._connected()
        self._settle(0)
        for record in records:
            position = position_of(record)
            if position in self._unconfirmed.taken:
                continue
            try:
                topic, payload = self._topic(record), _payload(record.value)
                self._check_size(session, topic, payload, record)
            except DataError as error:
                refused.append((record, error))
                continue
            self._wait_for_room(session, deadline)
            if not session.is_open:
                self._connected()
            self._publish(session, record, topic, payload)
        # Last, so that a record that fails the task does not prevent the others from being sent.
        for record, refusal in refused:
            give_up(self.context, record, refusal)
            self._unconfirmed.taken.add(position_of(record))
        self._unconfirmed.taken.clear()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets up to what is not acknowledged; wait a little for that."""
        deadline = time.monotonic() + _COMMIT_SECONDS
        while self._unconfirmed and time.monotonic() < deadline and self._session is not None:
            self._settle(_SLICE_SECONDS)
        return self._unconfirmed.durable(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what is not acknowledged: it is consumed again, here or elsewhere."""
        self._unconfirmed.close(partitions)

    def stop(self) -> None:
        if (session := getattr(self, "_session", None)) is not None:
            session.close()

    def _publish(self, session: Session, record: SinkRecord, topic: str, payload: bytes) -> None:
        self._unconfirmed.add(position_of(record), record, len(payload) + _OVERHEAD_BYTES)
        try:
            info = session.client.publish(
                topic,
                payload,
                self.config.mqtt_qos,
                self.config.mqtt_retained_enabled,
                properties=self._properties(record),
            )
        except ValueError as error:
            self._unconfirmed.forget(position_of(record))
            give_up(self.context, record, DataError(f"The library cannot publish it: {error}."))
            return
        self._under_way[info.mid] = record
        if info.mid in self._early:
            self._take(info.mid, self._early.pop(info.mid))

    def _check_size(self, session: Session, topic: str, payload: bytes, record: SinkRecord) -> None:
        """Raise if the server has said that it does not take so large a packet: it would end the connection."""
        most = session.largest_bytes
        if most is None:
            return
        size = _packet_bytes(topic, payload, self._properties(record))
        if size > most:
            raise DataError(f"It is a packet of {size} bytes, and the MQTT server takes {most} at most.")

    def _properties(self, record: SinkRecord) -> Any:
        if not self.config.mqtt_forward_kafka_headers or not record.headers:
            return None
        from connectors.mqtt.session import user_properties  # noqa: PLC0415 - it is loaded by now

        return user_properties([(header.key, header.value) for header in record.headers])

    def _connected(self) -> Session:
        """Return the session with its connection; raise why there is none."""
        if self._session is None:
            self._session = self._started()
        session = self._session
        deadline = time.monotonic() + _CONNECTION_SECONDS
        while not session.wait(_SLICE_SECONDS):
            failure = session.failure
            if failure is not None and not isinstance(failure, RetriableError):
                raise failure
            if failure is not None:
                raise RetriableError(str(failure), self.config.reconnect_seconds)
            if time.monotonic() > deadline or not self.context.wait(0):
                text = f"The MQTT server {self.config.place} does not answer."
                raise RetriableError(text, self.config.reconnect_seconds)
        return session

    def _started(self) -> Session:
        from connectors.mqtt.session import Session  # noqa: PLC0415 - it loads the library

        session = Session(self.config, is_clean=self.config.is_clean, opened=self._opened, changed=lambda: None)
        session.client.max_inflight_messages_set(self.config.mqtt_publish_max_messages)
        session.client.max_queued_messages_set(0)
        session.client.on_publish = self._on_publish
        session.start()
        self._progress_at = time.monotonic()
        return session

    def _opened(self, _is_present: bool) -> None:
        """Do nothing more: the library sends again what is not acknowledged."""

    def _on_publish(self, _client: object, _data: object, packet_id: int, code: Any, _properties: object) -> None:
        """Pass the acknowledgement on. In the thread, possibly before ``publish`` has returned."""
        self._outcomes.put((packet_id, code))

    def _has_room(self, session: Session) -> bool:
        config = self.config
        return (
            len(self._unconfirmed) < min(config.mqtt_publish_max_messages, session.window)
            and self._unconfirmed.bytes < config.mqtt_publish_max_bytes
        )

    def _wait_for_room(self, session: Session, deadline: float) -> None:
        self._settle(0)
        while not self._has_room(session):
            if not self.context.wait(0):
                raise RetriableError("The task stops or pauses.", 0.01)
            if time.monotonic() > deadline:
                raise RetriableError("The server takes its time; the rest is sent with the next put.", 0.01)
            self._settle(_SLICE_SECONDS)

    def _settle(self, seconds: float) -> None:
        """Take acknowledgements, waiting for the first; make the connection again if none comes for too long."""
        try:
            outcome = self._outcomes.get(timeout=seconds) if seconds > 0 else self._outcomes.get_nowait()
            while True:
                self._take(*outcome)
                outcome = self._outcomes.get_nowait()
        except queue.Empty:
            pass
        session, now = self._session, time.monotonic()
        self._check_losses(session)
        if not self._unconfirmed or session is None or not session.is_open:
            self._progress_at = now
        elif now - self._progress_at > self.config.mqtt_publish_timeout_ms / 1000:
            self._progress_at = now
            session.drop()

    def _check_losses(self, session: Session | None) -> None:
        """Raise if the server ends each connection without an acknowledgement: it would do so for ever."""
        if session is None or session.losses < _MOST_LOSSES or not self._unconfirmed:
            return
        if self._has_given_up_too_large(session):
            return
        first = next(iter(self._unconfirmed.messages.values()))
        raise ConnectError(
            f"The MQTT server {self.config.place} has ended {session.losses} connections without acknowledging a "
            f"message. The first of {len(self._unconfirmed)} is {_shown(first)}. One of them may be larger than the "
            f"server takes, or the user may not publish to its topic."
        )

    def _has_given_up_too_large(self, session: Session) -> bool:
        """Give up what is larger than the server takes, and return whether there was anything."""
        from connectors.mqtt.session import largest_packet  # noqa: PLC0415 - it is loaded by now

        if session.largest_bytes is None:
            session.largest_bytes = largest_packet(self.config, _CONNECTION_SECONDS)
        refused: dict[int, DataError] = {}
        for packet_id, record in self._under_way.items():
            try:
                self._check_size(session, self._topic(record), _payload(record.value), record)
            except DataError as too_large:
                refused[packet_id] = too_large
        session.client.forget(refused)
        given_up = [(self._under_way.pop(packet_id), error) for packet_id, error in refused.items()]
        for record, _ in given_up:
            self._unconfirmed.forget(position_of(record))
        for record, error in given_up:
            session.losses = 0
            give_up(self.context, record, error)
        return bool(given_up)

    def _take(self, packet_id: int, code: Any) -> None:
        record = self._under_way.pop(packet_id, None)
        if record is None:
            # The acknowledgement is quicker than the call that sends: it is asked for then.
            self._early[packet_id] = code
            return
        self._progress_at = time.monotonic()
        if self._session is not None:
            self._session.losses = 0
        position = position_of(record)
        if self._unconfirmed.messages.get(position) is not record:
            return
        self._unconfirmed.forget(position)
        if code is not None and code.is_failure:
            give_up(self.context, record, DataError(f"The MQTT server refuses it: {code.getName()}."))

    def _topic(self, record: SinkRecord) -> str:
        topic = self.config.mqtt_topic_template
        if "${" in topic:
            topic = topic.replace("${topic}", record.topic)
            if "${key}" in topic:
                topic = topic.replace("${key}", _text(record.key))
        if problem := topic_problem(topic):
            raise DataError(f"{topic[:80]!r} cannot be the topic of a message: {problem}.")
        return topic


def _packet_bytes(topic: str, payload: bytes, properties: Any) -> int:
    """Return how large the packet of a message is, or some bytes more."""
    pairs = [] if properties is None else properties.UserProperty
    texts = sum(len(text.encode()) for pair in pairs for text in pair) + _USER_PROPERTY_BYTES * len(pairs)
    return len(topic.encode()) + len(payload) + texts + _HEADER_BYTES


def _shown(record: SinkRecord) -> str:
    return f"the record at offset {record.original_offset} of {record.original_topic}-{record.original_partition}"


def _payload(value: Any) -> bytes:
    if value is None:
        raise DataError(
            "Its value is null. As an empty message it would delete the retained one of the topic: if that is meant, "
            "replace it by an empty text with a transformation."
        )
    if not isinstance(value, str | bytes | bytearray | memoryview):
        raise DataError(
            f"Its value is of the type {type(value).__name__}, not text or bytes: set value.converter to "
            "StringConverter or ByteArrayConverter, which pass on what is on the topic."
        )
    payload = value.encode() if isinstance(value, str) else bytes(value)
    if len(payload) > _MOST_PAYLOAD_BYTES:
        raise DataError(f"It has {len(payload)} bytes, and a message of MQTT {_MOST_PAYLOAD_BYTES} at most.")
    return payload


def _text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError as error:
            raise DataError("Its key is no text of UTF-8.") from error
    if isinstance(key, int | float | Decimal):
        return str(key).lower() if isinstance(key, bool) else str(key)
    raise DataError("It has no key of text, bytes or a number, which ${key} in mqtt.topic.template needs.")


class MqttSinkConnector(SinkConnector[MqttSinkConfig]):
    """Publishes records to topics of an MQTT server."""

    task_class = MqttSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration with a client id for each task."""
        return list(self.config.task_props(max_tasks))

    @classmethod
    def alter_offsets(cls, config: MqttSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: the sink keeps none of its own."""
        return True

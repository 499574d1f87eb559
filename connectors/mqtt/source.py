"""The MQTT source: messages become records, and are acknowledged once Kafka has them.

====================================  =================================================================================
kill -9 of the task or worker here    then
====================================  =================================================================================
QoS 0                                 what was received and is not in Kafka is lost, and what is published until the
                                      next task runs
QoS 1 and 2, before Kafka's           the server has the message in the session, and sends it again: nothing is lost.
acknowledgement                       What Kafka has all the same by then comes twice
QoS 1 and 2, after it, before the     the message comes twice
server has that of the task
====================================  =================================================================================

A subscription with QoS 2 asks for 1. With 2 the server forgets a message as soon as the client has answered it
(PUBREC), which the library does before the task has seen it: a kill would lose it. Kafka is told at least once either
way.

A connection that is lost doubles nothing once the task knows that the server counts packet ids
(:mod:`connectors.mqtt.receipts`), and before that what the server had not been told of. A task that is stopped in good
order acknowledges what Kafka has.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connect.data import Header, Headers, Schema, SourceRecord
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.deliveries import Inbox
from connect.measurement import Measurement
from connect.source import SourceConnector, SourceTask
from connectors.mqtt.receipts import Receipts, Received
from connectors.mqtt.source_config import ConsumerMode, MqttSourceConfig
from connectors.mqtt.topics import kafka_name, kafka_problem, matches, shared_filter

if TYPE_CHECKING:
    from connectors.mqtt.session import Session

__all__ = ["MqttSourceConnector", "MqttSourceTask"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_FAREWELL_SECONDS: Final = 3.0
_SLICE_SECONDS: Final = 0.05
_GATHER_SECONDS: Final = 0.005
_OVERHEAD_BYTES: Final = 500
_MOST_KNOWN: Final = 10_000
_QUESTION: Final = "sluice/none"
_STRING: Final = Schema.string()
_BYTES: Final = Schema.bytes()
_BOOLEAN: Final = Schema.boolean()
_INT32: Final = Schema.int32()


@dataclass(frozen=True, slots=True)
class _Answer:
    """The server's answer to a question, among what it sent before and after it on a connection."""

    connection: int


class RecordMaker:
    """Makes records of messages."""

    def __init__(self, config: MqttSourceConfig) -> None:
        self._config = config
        self._map = config.topic_map
        self._names: dict[str, str] = {}

    def topic_of(self, topic: str) -> str:
        """Return the topic of Kafka; raises ``DataError`` if it cannot be one."""
        name = self._names.get(topic)
        if name is None:
            pattern = next((name for each, name in self._map.items() if matches(each, topic)), self._config.kafka_topic)
            name = pattern.replace("${topic}", kafka_name(topic))
            if problem := kafka_problem(name):
                raise DataError(f"{name[:80]} cannot be a topic of Kafka: {problem}. Correct kafka.topic.")
            if len(self._names) >= _MOST_KNOWN:
                self._names.clear()
            self._names[topic] = name
        return name

    def headers(self, received: Received) -> Headers:
        """Return the headers of Confluent's connector, and of MQTT 5 what the message says besides."""
        found = [
            Header("mqtt.message.id", received.packet_id, _INT32),
            Header("mqtt.qos", received.qos, _INT32),
            Header("mqtt.retained", received.is_retained, _BOOLEAN),
            Header("mqtt.duplicate", received.is_duplicate, _BOOLEAN),
        ]
        if received.properties is not None:
            found += _properties(received.properties)
        return Headers(found)


def _properties(properties: Any) -> Iterable[Header]:
    """Yield the properties of MQTT 5 that a message has."""
    for name, key, schema in (
        ("ContentType", "mqtt.content.type", _STRING),
        ("ResponseTopic", "mqtt.response.topic", _STRING),
        ("CorrelationData", "mqtt.correlation.data", _BYTES),
        ("PayloadFormatIndicator", "mqtt.payload.format", _INT32),
        ("MessageExpiryInterval", "mqtt.message.expiry", Schema.int64()),
    ):
        if (value := getattr(properties, name, None)) is not None:
            yield Header(key, value, schema)
    for name, value in getattr(properties, "UserProperty", None) or ():
        yield Header(f"mqtt.user.{name}", value, _STRING)


class MqttSourceTask(SourceTask[MqttSourceConfig]):
    """Receives the messages of its subscriptions."""

    def start(self) -> None:
        from connectors.mqtt.session import Session  # noqa: PLC0415 - it loads the library

        config = self.config
        self._partition = {"server": config.place, "client": config.client_id}
        self._maker = RecordMaker(config)
        self._made = 0
        self._connections = self._sessions = 0
        """Counts connections, and sessions that the server has begun. Written by the library's thread alone."""
        self._answers: queue.SimpleQueue[int] = queue.SimpleQueue()
        """The packet ids of the questions that the server has answered."""
        self._refusal: ConnectError | None = None
        self._receipts = Receipts()
        self._inbox: Inbox[Received | _Answer] = Inbox(
            config.mqtt_receive_max, config.mqtt_inbox_max_bytes, config.patience_seconds, self.context.wake
        )
        self._session: Session | None = Session(
            config,
            is_clean=config.is_clean,
            opened=self._opened,
            changed=self.context.wake,
            receives=config.mqtt_receive_max,
        )
        self._session.client.on_message = self._on_message
        self._session.client.on_subscribe = self._on_subscribe
        self._session.client.on_unsubscribe = self._on_unsubscribe
        self._session.start()

    def poll(self) -> Sequence[SourceRecord]:
        self._acknowledge()
        if self._refusal is not None:
            raise self._refusal
        taken = self._inbox.take(self.config.mqtt_batch_size)
        found = [record for each in taken if (record := self._record(each)) is not None]
        if found:
            if len(found) < self.config.mqtt_batch_size:
                # Few messages at a time cost several times as much each.
                self.context.poll_when_readable([], _GATHER_SECONDS)
            return found
        if taken:
            # There may be more, of which nobody tells.
            return ()
        failure = self._session.failure if self._session is not None else None
        if isinstance(failure, RetriableError):
            raise RetriableError(str(failure), self.config.reconnect_seconds)
        if failure is not None:
            raise failure
        self.context.poll_when_readable([], _LOOK_SECONDS)
        return ()

    def commit_record(self, record: SourceRecord) -> None:
        """Note that Kafka has a message."""
        self._receipts.settle(record.source_offset["message"])

    def commit(self) -> None:
        """Acknowledge what Kafka has."""
        self._acknowledge()

    def stop(self) -> None:
        session, self._session = getattr(self, "_session", None), None
        if session is None:
            return
        self._inbox.close()
        self._send_acknowledgements(session, at_end=True)
        self._wait_until_read(session)
        session.close()

    def measurements(self) -> Iterable[Measurement]:
        yield Measurement("mqtt_messages_total", self._made, "Messages received.")
        yield Measurement("mqtt_unacknowledged_messages", len(self._receipts), "Messages that Kafka has not yet.")
        yield Measurement("mqtt_inbox_messages", self._inbox.items, "Messages that wait for being published.")
        yield Measurement("mqtt_inbox_bytes", self._inbox.bytes, "Bytes of the messages that wait, roughly.")
        yield Measurement(
            "mqtt_connected",
            bool(self._session is not None and self._session.is_open),
            "Whether there is a connection.",
        )

    def _opened(self, is_present: bool) -> None:
        """Subscribe; also to a session that is there still, since the topics may be others now. In the thread."""
        self._connections += 1
        if not is_present:
            self._sessions += 1
        session = self._session
        if session is not None:
            session.client.subscribe([(each, self.config.asked_qos) for each in self.config.mqtt_topics])

    def _on_subscribe(
        self, _client: object, _data: object, _mid: int, codes: Sequence[Any], _properties: object
    ) -> None:
        from connectors.mqtt.session import refused_filters  # noqa: PLC0415 - it is loaded by now

        if refused := next(refused_filters(self.config.mqtt_topics, codes), None):
            self._refusal = ConnectError(refused)
            self.context.wake()

    def _on_unsubscribe(self, _client: object, _data: object, packet_id: int, *_: object) -> None:
        """Put the answer behind the messages that came before it. In the thread."""
        self._answers.put(packet_id)
        self._inbox.put(_Answer(self._connections), _OVERHEAD_BYTES)

    def _on_message(self, _client: object, _data: object, message: Any) -> None:
        """Put a message into the inbox; waits while that is full. In the thread."""
        received = Received(
            message.topic,
            bytes(message.payload),
            message.qos,
            bool(message.retain),
            bool(message.dup),
            message.mid,
            message.properties,
            self._sessions,
            self._connections,
            int(time.time() * 1000),
        )
        self._inbox.put(received, len(received.payload) + _OVERHEAD_BYTES)

    def _record(self, received: Received | _Answer) -> SourceRecord | None:
        """Return the record of a message; ``None`` if the task has had it, or it is given up."""
        if isinstance(received, _Answer):
            self._receipts.answered(received.connection)
            return None
        number = self._made + 1
        if received.qos and not self._receipts.take(received, number):
            return None
        self._made = number
        try:
            topic = self._maker.topic_of(received.topic)
        except DataError as error:
            record = SourceRecord(self.config.kafka_topic, received.payload, source_partition=self._partition)
            self.context.errant_record_reporter.report(record, error)
            self._receipts.settle(number)
            return None
        return SourceRecord(
            topic,
            received.payload,
            _BYTES,
            received.topic,
            _STRING,
            timestamp=received.at,
            headers=self._maker.headers(received),
            source_partition=self._partition,
            source_offset={"message": number},
        )

    def _acknowledge(self) -> None:
        """Acknowledge what Kafka has."""
        session = self._session
        if session is None or not session.is_open:
            return
        self._send_acknowledgements(session)
        if self._receipts.asks(self._connections):
            _ask(session)

    def _send_acknowledgements(self, session: Session, *, at_end: bool = False) -> None:
        for received in self._receipts.due(self._connections, at_end=at_end):
            session.client.ack(received.packet_id, received.qos)

    def _wait_until_read(self, session: Session) -> None:
        """Wait until the server has read the acknowledgements: what is on its way to it may get lost when a connection
        ends on which more has come than was read."""
        asked = _ask(session) if session.is_open else None
        deadline = time.monotonic() + _FAREWELL_SECONDS
        while asked is not None and session.is_open and time.monotonic() < deadline:
            with suppress(queue.Empty):
                if self._answers.get(timeout=_SLICE_SECONDS) == asked:
                    return


def _ask(session: Session) -> int | None:
    """Have the server answer something, and return the packet id of the question. There is no such subscription."""
    packet_id: int | None = session.client.unsubscribe(_QUESTION)[1]
    return packet_id


class MqttSourceConnector(SourceConnector[MqttSourceConfig]):
    """Publishes messages of MQTT topics, and acknowledges each once Kafka has it."""

    task_class = MqttSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Divide the topics among the tasks, or have the server divide the messages."""
        config, topics = self.config, self.config.mqtt_topics
        if config.mqtt_consumer_mode is ConsumerMode.SHARED:
            shared = [shared_filter(each, config.share_group) for each in topics]
            shares = [shared] * max_tasks
        else:
            shares = [list(topics[number::max_tasks]) for number in range(min(max_tasks, len(topics)))]
        return [
            {**props, "mqtt.topics": ",".join(share)}
            for props, share in zip(config.task_props(len(shares)), shares, strict=True)
        ]

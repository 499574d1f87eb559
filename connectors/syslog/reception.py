"""What the sources share: from the sockets to batches of records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import NO_HEADERS, Headers, Schema, SourceBatch, SourceRecord, StructColumn, ValueColumn
from connect.errors import ConnectError, DataError
from connect.measurement import Measurement
from connect.source import SourceTaskContext
from connectors.syslog.inbox import Counts, Inbox, Messages
from connectors.syslog.listeners import listen
from connectors.syslog.message import FIELDS, MESSAGE_SCHEMA, UNKNOWN, MessageParser, Row
from connectors.syslog.names import SenderNames
from connectors.syslog.receiver import Receiver, Transport
from connectors.syslog.source_config import ListenerConfig
from connectors.syslog.streams import Receipt, StreamLimits

__all__ = ["SHARED_KEY", "Reception", "Taken", "source_partition"]

SHARED_KEY: Final = "syslog.port.shared"
"""Set by the connector in the configurations of its tasks: whether several listen on the port."""

_LOOK_SECONDS: Final = 0.001
"""How long to wait to find out whether the task must stop: a wait of 0 does not check."""

_KEY_SCHEMA: Final = Schema.string()
_HOST: Final = FIELDS.index("host")
_TYPE: Final = FIELDS.index("type")
_RAW: Final = FIELDS.index("rawMessage")
_TRUNCATED: Final = Headers().add("syslog.truncated", True, Schema.boolean())


def source_partition(config: ListenerConfig, scheme: str) -> dict[str, str]:
    """Return the source partition of a listener, which has no positions."""
    address = config.syslog_listen_address
    return {"listener": f"{scheme}://{f'[{address}]' if ':' in address else address}:{config.syslog_port}"}


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch, and what to acknowledge once it is published.

    ``given_up`` is what to acknowledge now: lines that were reported as bad records, and tolerated.
    """

    batch: SourceBatch | None
    receipts: Sequence[Receipt]
    given_up: Sequence[Receipt]


class Reception:
    """Listens, and makes records of what is received. Used by the task's thread."""

    def __init__(
        self, config: ListenerConfig, context: SourceTaskContext, partition: dict[str, str], *, is_relp: bool
    ) -> None:
        self._config = config
        self._context = context
        self._partition = partition
        self._counts = Counts()
        self._unknown = self._undecodable = self._taken = 0
        self._failure: Exception | None = None
        self._parser = MessageParser(config.zone)
        self._receiver: Receiver | None = None
        self._names = (
            SenderNames(config.syslog_reverse_dns_cache_ms / 1000) if config.syslog_reverse_dns_remote_ip else None
        )
        self._is_relp = is_relp
        self._inbox = Inbox(config.most_queued, config.syslog_queue_max_bytes, context.wake, self._ring)

    def start(self) -> None:
        """Listen. Returns without that if the task is to stop."""
        config = self._config
        tls = config.tls_context()
        listener = listen(
            config.syslog_listen_address,
            config.syslog_port,
            is_datagram=config.is_datagram,
            is_shared=config.originals.get(SHARED_KEY) == "true",
            buffer_bytes=config.buffer_bytes,
            wait=self._context.wait,
        )
        if listener is None:
            return
        limits = StreamLimits(
            config.syslog_message_max_bytes,
            config.syslog_max_connections,
            config.syslog_idle_timeout_ms / 1000,
            self._is_relp,
        )
        transport = Transport((listener,), config.is_datagram, config.syslog_message_max_bytes, limits, tls)
        self._receiver = Receiver(transport, self._inbox, self._counts)
        self._receiver.start()

    def take(self, most: int) -> Taken | None:
        """Return the records of the oldest messages; ``None`` if there are none."""
        if self._failure is not None:
            raise self._failure
        if taken := self._inbox.take(most):
            return self._records(taken)
        if self._receiver is not None and self._receiver.failure is not None:
            raise ConnectError(f"The listener has failed: {self._receiver.failure}") from self._receiver.failure
        return None

    def drain(self, seconds: float) -> None:
        """Have the senders stop, and what they have sent received."""
        if self._receiver is not None:
            self._receiver.drain(seconds)

    @property
    def is_drained(self) -> bool:
        """Whether nothing more is received."""
        return self._receiver is None or self._receiver.is_drained

    def acknowledge(self, receipts: Sequence[Receipt]) -> None:
        """Tell the senders that messages are safe."""
        if self._receiver is not None and receipts:
            self._receiver.acknowledge(receipts)

    def close(self) -> None:
        """Close the sockets, and end the threads."""
        if self._receiver is not None:
            self._receiver.close()
        if self._names is not None:
            self._names.close()

    def measurements(self) -> Iterable[Measurement]:
        """Return the numbers of this task."""
        counts = self._counts
        yield Measurement("syslog_messages_total", counts.messages, "Messages received.")
        yield Measurement("syslog_received_bytes_total", counts.octets, "Bytes of the messages received.")
        yield Measurement(
            "syslog_dropped_datagrams_total",
            counts.dropped,
            "Datagrams that the kernel dropped, its buffer being full.",
        )
        yield Measurement("syslog_truncated_total", counts.cut, "Messages of which only the beginning is published.")
        yield Measurement("syslog_unknown_total", self._unknown, "Lines of no known form.")
        yield Measurement(
            "syslog_undecodable_total", self._undecodable, "Lines with bytes that are not of the charset."
        )
        yield Measurement("syslog_queue_messages", self._inbox.messages, "Messages that wait for being published.")
        yield Measurement("syslog_queue_bytes", self._inbox.bytes, "Bytes of the messages that wait, roughly.")
        yield Measurement("syslog_connections", counts.connections, "Open connections.")
        yield Measurement(
            "syslog_refused_connections_total", counts.refused_connections, "Connections beyond syslog.max.connections."
        )
        yield Measurement(
            "syslog_broken_connections_total", counts.broken_connections, "Connections closed for what the peer did."
        )

    def _goes_on(self) -> bool:
        """Return whether the task may go on waiting."""
        return self._context.wait(_LOOK_SECONDS)

    def _ring(self) -> None:
        if self._receiver is not None:
            self._receiver.ring()

    def _records(self, taken: Sequence[Messages]) -> Taken:
        rows: list[Row] = []
        times: list[int] = []
        headers: list[Headers] = []
        receipts: list[Receipt] = []
        given_up: list[Receipt] = []
        reports = self._config.syslog_unparsed == "report"
        for messages in taken:
            at = int(messages.at * 1000)
            now = dt.datetime.fromtimestamp(at / 1000, dt.UTC)
            parsed = self._parsed(messages, now)
            if reports:
                bad = [place for place, row in enumerate(parsed) if row[_TYPE] == UNKNOWN]
                tolerated = bad and self._report([parsed[place] for place in bad])
                if bad and not tolerated:
                    parsed = parsed[: bad[0]]
                elif bad:
                    gone = set(bad)
                    given_up += [receipt for place, receipt in enumerate(messages.receipts) if place in gone]
                    messages = _without(messages, gone)  # noqa: PLW2901
                    parsed = [row for place, row in enumerate(parsed) if place not in gone]
            rows += parsed
            times += [at] * len(parsed)
            receipts += messages.receipts[: len(parsed)]
            headers += [_TRUNCATED if place in messages.cut else NO_HEADERS for place in range(len(parsed))]
            if self._failure is not None:
                break
        if not rows and self._failure is not None:
            raise self._failure
        return Taken(self._batch(rows, times, headers) if rows else None, receipts, given_up)

    def _batch(self, rows: Sequence[Row], times: Sequence[int], headers: Sequence[Headers]) -> SourceBatch:
        if self._names is not None:
            rows = self._named(rows, self._names)
        columns = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
        first = self._taken + 1
        self._taken += len(rows)
        return SourceBatch.of(
            self._config.topic,
            StructColumn(columns, MESSAGE_SCHEMA),
            source_partition=self._partition,
            source_offsets=[{"message": number} for number in range(first, self._taken + 1)],
            key=ValueColumn(columns["remoteAddress"], _KEY_SCHEMA),
            timestamps=times,
            headers=headers if _TRUNCATED in headers else None,
        )

    def _parsed(self, messages: Messages, now: dt.datetime) -> list[Row]:
        parse, charset = self._parser.parse, self._config.syslog_charset
        try:
            rows = [
                parse(line.decode(charset), sender, now)
                for line, sender in zip(messages.lines, messages.senders, strict=True)
            ]
        except UnicodeError:
            rows = [
                parse(self._decoded(line), sender, now)
                for line, sender in zip(messages.lines, messages.senders, strict=True)
            ]
        self._unknown += sum(row[_TYPE] == UNKNOWN for row in rows)
        return rows

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode(self._config.syslog_charset)
        except UnicodeError:
            self._undecodable += 1
            return line.decode(self._config.syslog_charset, "backslashreplace")

    def _report(self, rows: Sequence[Row]) -> bool:
        """Report lines of no known form; return whether all are tolerated. What came before is published first."""
        for row in rows:
            record = SourceRecord(self._config.topic, row[_RAW], source_partition=self._partition)
            error = DataError("It is neither RFC 5424 nor RFC 3164 nor CEF; syslog.unparsed=publish would publish it.")
            try:
                self._context.errant_record_reporter.report(record, error)
            except Exception as failure:
                self._failure = failure
                return False
        return True

    def _named(self, rows: Sequence[Row], names: SenderNames) -> Sequence[Row]:
        sender = FIELDS.index("remoteAddress")
        found = names.names({row[sender] for row in rows if row[_HOST] is None}, self._goes_on)
        return [
            row if row[_HOST] is not None else (*row[:_HOST], found[row[sender]], *row[_HOST + 1 :]) for row in rows
        ]


def _without(messages: Messages, gone: set[int]) -> Messages:
    """Return the messages without some, and the places of what was cut among the others."""
    kept = [place for place in range(len(messages.lines)) if place not in gone]
    receipts: Sequence[Any] = [messages.receipts[place] for place in kept] if messages.receipts else ()
    return Messages(
        [messages.lines[place] for place in kept],
        [messages.senders[place] for place in kept],
        messages.at,
        {new for new, old in enumerate(kept) if old in messages.cut},
        receipts,
    )

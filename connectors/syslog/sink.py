"""The syslog sink: records become messages of RFC 5424 over TCP or TLS.

=======================================  ==============================================================================
kill -9 of the task or worker here       then
=======================================  ==============================================================================
after a send, before the commit          what was sent since the last commit is sent again: doubled, and not lost
the receiver's machine has acknowledged  it is committed. Syslog over TCP knows no other acknowledgement: what a
                                         receiver that is killed has not read by then is lost, unless the connection
                                         breaks before the commit
=======================================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import DataError, RetriableError
from connect.kits.deliveries import give_up
from connect.sink import SinkConnector, SinkTask
from connectors.syslog.sink_config import SyslogSinkConfig
from connectors.syslog.sink_connection import BrokenConnectionError, ReceiverConnection
from connectors.syslog.sink_messages import MessageWriter

__all__ = ["SyslogSinkConnector", "SyslogSinkTask"]

_LOOK_SECONDS: Final = 0.001
"""How long to wait to find out whether the task must stop: a wait of 0 does not check."""
_CHUNK_BYTES: Final = 65_536


class SyslogSinkTask(SinkTask[SyslogSinkConfig]):
    """Sends the records of each batch in order, over one connection."""

    def start(self) -> None:
        self._writer = MessageWriter(self.config)
        self._tls = self.config.sink_tls_context()
        self._connection: ReceiverConnection | None = None
        self._unsettled: dict[TopicPartition, int] = {}

    def put(self, records: SinkBatch) -> None:
        if not len(records):
            return
        chunks, refused = self._written(records)
        had_unsettled = bool(self._unsettled)
        for origin, offset in zip(records.origins, records.original_offsets, strict=True):
            self._unsettled.setdefault(origin, offset)
        try:
            connection = self._connected()
            for chunk in chunks:
                connection.send(chunk)
        except BrokenConnectionError as error:
            self._go_back(str(error), only_batch=not had_unsettled)
            return
        # Last, so that a record that fails the task does not prevent the others from being sent.
        for record, reason in refused:
            give_up(self.context, record, reason)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:  # noqa: ARG002
        """Wait until the receiver's machine has acknowledged everything."""
        if not self._unsettled:
            return
        try:
            self._connected().settle()
        except BrokenConnectionError as error:
            self._disconnect()
            self._unsettled.clear()
            raise RetriableError(
                f"{error}; what was sent since the last commit is sent again.", self._backoff_seconds
            ) from error
        self._unsettled.clear()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._unsettled.pop(partition, None)

    def stop(self) -> None:
        self._disconnect()

    @property
    def _backoff_seconds(self) -> float:
        return self.config.retry_backoff_ms / 1000

    def _connected(self) -> ReceiverConnection:
        if self._connection is None:
            config = self.config
            self._connection = ReceiverConnection(
                config.syslog_host,
                config.syslog_port,
                config.host_rules,
                self._tls,
                config.syslog_timeout_ms / 1000,
                lambda: self.context.wait(_LOOK_SECONDS),
            )
        return self._connection

    def _disconnect(self) -> None:
        if (connection := getattr(self, "_connection", None)) is not None:
            connection.close()
            self._connection = None

    def _go_back(self, reason: str, *, only_batch: bool) -> None:
        """Have everything sent again that may not have arrived, in its order.

        If that is the batch alone, it is put again. Otherwise consuming goes back, and the batch comes in its turn.
        """
        self._disconnect()
        unsettled, self._unsettled = self._unsettled, {}
        if only_batch:
            raise RetriableError(f"{reason}.", self._backoff_seconds)
        self.context.offset(unsettled)

    def _written(self, records: SinkBatch) -> tuple[list[bytes], list[tuple[SinkRecord, DataError]]]:
        """Return the messages, several to a chunk, and the records that cannot be messages."""
        chunks: list[bytes] = []
        refused: list[tuple[SinkRecord, DataError]] = []
        parts: list[bytes] = []
        size = 0
        for record in records:
            try:
                message = self._writer.write(record)
            except DataError as error:
                refused.append((record, error))
                continue
            parts.append(message)
            size += len(message)
            if size >= _CHUNK_BYTES:
                chunks.append(b"".join(parts))
                parts, size = [], 0
        if parts:
            chunks.append(b"".join(parts))
        return chunks, refused


class SyslogSinkConnector(SinkConnector[SyslogSinkConfig]):
    """Sends records as syslog messages of RFC 5424, over TCP or TLS."""

    task_class = SyslogSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration for each task; each worker adds its own rules for hosts."""
        return [self.config.props_for_tasks()] * max_tasks

    @classmethod
    def alter_offsets(cls, config: SyslogSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: the sink keeps none of its own."""
        return True

"""The syslog source, for UDP, TCP and TLS, and the RELP source, whose senders wait for acknowledgements.

====================================  =================================================================================
kill -9 of the task or worker here    then
====================================  =================================================================================
UDP, before Kafka's acknowledgement   what is in the kernel's buffer, in the queue and under way to Kafka is lost
TCP and TLS, likewise                 the same: TCP has acknowledged it to the sender, which does not send it again;
                                      what the sender has not sent before its connection broke, it keeps
RELP, before Kafka's acknowledgement  the sender has no acknowledgement, and sends the message again: nothing is lost
RELP, after Kafka's acknowledgement   the sender may not have it: the message may come twice
====================================  =================================================================================

A task that is stopped loses nothing over TCP: it tells the senders, and publishes what they have sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from connect.data import SourceBatch, SourceRecord
from connect.measurement import Measurement
from connect.source import SourceConnector, SourceTask
from connectors.syslog.reception import SHARED_KEY, Reception, source_partition
from connectors.syslog.source_config import ListenerConfig, RelpSourceConfig, SyslogSourceConfig
from connectors.syslog.streams import Receipt

__all__ = ["RelpSourceConnector", "RelpSourceTask", "SyslogSourceConnector", "SyslogSourceTask"]

_LOOK_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.005
_DRAIN_SECONDS: Final = 2.0
_DRAIN_LOOK_SECONDS: Final = 0.01
_EVERYTHING: Final = 1 << 60


class SyslogSourceTask(SourceTask[SyslogSourceConfig]):
    """Receives syslog by UDP, TCP or TLS."""

    def start(self) -> None:
        scheme = {"UDP": "udp", "TCP": "tcp", "TCPSSL": "tls"}[self.config.syslog_listener]
        partition = source_partition(self.config, scheme)
        self._reception = Reception(self.config, self.context, partition, is_relp=False)
        self._reception.start()

    def poll(self) -> SourceBatch | None:
        taken = self._reception.take(self.config.syslog_queue_batch_size)
        if taken is None:
            self.context.poll_when_readable([], _LOOK_SECONDS)
            return None
        if taken.batch is not None and len(taken.batch) < self.config.syslog_queue_batch_size:
            # Few messages at a time cost several times as much each.
            self.context.poll_when_readable([], _GATHER_SECONDS)
        return taken.batch

    def last_poll(self) -> Iterable[SourceRecord]:
        """Return what is received already, and what the senders have sent before they notice that this task stops."""
        self._reception.drain(_DRAIN_SECONDS)
        while not self._reception.is_drained:
            if (taken := self._reception.take(_EVERYTHING)) is None:
                time.sleep(_DRAIN_LOOK_SECONDS)
            else:
                yield from taken.batch or ()
        if (taken := self._reception.take(_EVERYTHING)) is not None:
            yield from taken.batch or ()

    def stop(self) -> None:
        if (reception := getattr(self, "_reception", None)) is not None:
            reception.close()

    def measurements(self) -> Iterable[Measurement]:
        return self._reception.measurements()


class RelpSourceTask(SourceTask[RelpSourceConfig]):
    """Receives syslog by RELP, and acknowledges each message once Kafka has it."""

    def start(self) -> None:
        partition = source_partition(self.config, "relp+tls" if self.config.uses_tls else "relp")
        self._reception = Reception(self.config, self.context, partition, is_relp=True)
        self._receipts: dict[int, Receipt] = {}
        self._safe: list[Receipt] = []
        self._ends: set[int] = set()
        self._reception.start()

    def poll(self) -> SourceBatch | None:
        self._acknowledge()
        taken = self._reception.take(self.config.syslog_queue_batch_size)
        if taken is None:
            self.context.poll_when_readable([], _LOOK_SECONDS)
            return None
        self._reception.acknowledge(taken.given_up)
        if taken.batch is None:
            return None
        numbers = [int(offset["message"]) for offset in taken.batch.source_offsets]
        self._receipts.update(zip(numbers, taken.receipts, strict=True))
        self._ends.add(numbers[-1])
        return taken.batch

    def commit_record(self, record: SourceRecord) -> None:
        """Note that Kafka has a message; those of a batch are acknowledged together."""
        number = int(record.source_offset["message"])
        if (receipt := self._receipts.pop(number, None)) is not None:
            self._safe.append(receipt)
        if number in self._ends:
            self._ends.discard(number)
            self._acknowledge()

    def stop(self) -> None:
        if (reception := getattr(self, "_reception", None)) is not None:
            self._acknowledge()
            reception.close()

    def measurements(self) -> Iterable[Measurement]:
        yield from self._reception.measurements()
        yield Measurement(
            "relp_unacknowledged_messages", len(self._receipts), "Messages that Kafka has not acknowledged yet."
        )

    def _acknowledge(self) -> None:
        safe, self._safe = self._safe, []
        self._reception.acknowledge(safe)


def _task_configs(config: ListenerConfig, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
    """Return the same configuration for each task: all listen on the port, of one machine or of several."""
    shared = {SHARED_KEY: "true"} if max_tasks > 1 else {}
    return [{**config.originals, **shared}] * max_tasks


class SyslogSourceConnector(SourceConnector[SyslogSourceConfig]):
    """Receives syslog messages by UDP, TCP or TLS: RFC 5424, RFC 3164 and CEF."""

    task_class = SyslogSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return as many tasks as may be: the kernel divides the senders among those of a machine."""
        return _task_configs(self.config, max_tasks)


class RelpSourceConnector(SourceConnector[RelpSourceConfig]):
    """Receives syslog messages by RELP, rsyslog's protocol, and acknowledges each once Kafka has it."""

    task_class = RelpSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return as many tasks as may be: the kernel divides the connections among those of a machine."""
        return _task_configs(self.config, max_tasks)

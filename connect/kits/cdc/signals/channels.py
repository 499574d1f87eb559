"""Channels of signals: a Kafka topic and a file. The signal table is part of the stream, and REST of the runtime.

=================================================  ==================================================================
kill -9 here                                       then
=================================================  ==================================================================
after a record of the topic was taken, before an   it is taken again: its offset is part of the source offset
offset with it is stored
after a line of the file was taken, before the     the file still has it: it is taken again
offset is stored
after that, before the file is emptied             it is taken again, and its snapshot runs twice
=================================================  ==================================================================
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from connect.config import LOW, MEDIUM, Config, ConfigRuleError, Long, at_least, option
from connect.data.excerpt import excerpt
from connect.errors import ConfigError, ConnectError
from connect.source import Signal

if TYPE_CHECKING:
    from connect.internals.kafka.clients.one_partition import PartitionReader

__all__ = ["FileSignals", "KafkaSignals", "SignalOptions"]

logger = logging.getLogger(__name__)
_MOST_FILE_BYTES: Final = 1 << 20
_CONSUMER_PREFIX: Final = "signal.consumer."


class SignalOptions(Config):
    """Where signals come from, and how incremental snapshots read."""

    signal_data_collection: str = option(
        default="",
        importance=MEDIUM,
        doc="The table of the channel source, such as public.debezium_signal, with the columns id, type and data. Rows "
        "that are inserted into it are signals.",
    )
    signal_enabled_channels: tuple[Literal["source", "kafka", "file", "jmx", "in-process"], ...] = option(
        default=("source",),
        importance=MEDIUM,
        doc="Where signals are taken from: source is the table signal.data.collection, kafka the topic "
        "signal.kafka.topic, file the file signal.file. REST is always open (POST /connectors/NAME/signals); jmx and "
        "in-process have no effect.",
    )
    signal_poll_interval_ms: Long = option(
        default=5000, importance=MEDIUM, validator=at_least(1), doc="Milliseconds between two looks at topic and file."
    )
    signal_file: str = option(
        default="file-signals.txt",
        importance=MEDIUM,
        doc="File of the channel file: a JSON object with id, type and data in each line. Lines are removed once their "
        "signals are stored.",
    )
    signal_kafka_topic: str = option(
        default="",
        importance=MEDIUM,
        doc="Topic of the channel kafka, with one partition; by default topic.prefix and -signal. The key of a record "
        "must be topic.prefix, the value a JSON object with type and data.",
    )
    signal_kafka_bootstrap_servers: str = option(
        default="",
        importance=MEDIUM,
        doc="Brokers of that topic. Further settings of the client begin with signal.consumer.",
    )
    signal_kafka_poll_timeout_ms: int = option(
        default=100, importance=LOW, validator=at_least(0), doc="Milliseconds to wait for records of that topic."
    )
    incremental_snapshot_chunk_size: int = option(
        default=1024, importance=MEDIUM, validator=at_least(1), doc="Rows that an incremental snapshot reads at once."
    )
    incremental_snapshot_watermarking_strategy: Literal["insert_insert", "insert_delete"] = option(
        default="insert_insert",
        importance=LOW,
        ignore_case=True,
        doc="Without effect: no watermarks are written to the signal table, since the database itself tells which "
        "changes a chunk has.",
    )
    incremental_snapshot_allow_schema_changes: bool = option(
        default=False,
        importance=LOW,
        doc="Without effect: tables may always be altered meanwhile, and each chunk has the columns of its time.",
    )
    read_only: bool = option(
        default=False,
        importance=LOW,
        doc="Without effect: snapshots and signals never write to the database.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Require the brokers of the channel kafka."""
        if "kafka" in self.signal_enabled_channels and not self.signal_kafka_bootstrap_servers.strip():
            yield ConfigRuleError(
                "signal.enabled.channels has kafka: list the brokers of its topic in signal.kafka.bootstrap.servers.",
                "signal.kafka.bootstrap.servers",
            )

    def consumer_settings(self) -> dict[str, str]:
        """Return the settings of the client that reads the topic, under Java's names."""
        own = self.originals_with_prefix(_CONSUMER_PREFIX)
        given = {key: value for key, value in own.items() if value is not None}
        return {**given, "bootstrap.servers": self.signal_kafka_bootstrap_servers}


class KafkaSignals:
    """Reads signals from partition 0 of a topic, after a stored offset or else what comes from now on.

    Used by one thread. The client is made by the first look, and commits nothing.
    """

    def __init__(self, topic: str, key: str, settings: Mapping[str, str], offset: int | None) -> None:
        self._topic = topic
        self._key = key
        self._settings = settings
        self._offset = offset
        self._reader: PartitionReader | None = None

    @property
    def is_open(self) -> bool:
        """Whether what is written to the topic from now on is read."""
        return self._reader is not None

    def take(self, seconds: float) -> list[tuple[int, Signal]]:
        """Return the next signals, each with the offset after it. Records that are none are logged and passed over."""
        if self._reader is None:
            from connect.internals.kafka.clients.one_partition import PartitionReader  # noqa: PLC0415 - loaded if used

            self._reader = PartitionReader(self._topic, self._settings, self._offset)
        found: list[tuple[int, Signal]] = []
        for offset, key, value in self._reader.take(seconds):
            if key == self._key.encode():
                signal = _signal(value, f"record {offset} of topic {self._topic}", f"{self._topic}-{offset}")
                found += [] if signal is None else [(offset + 1, signal)]
        return found

    def close(self) -> None:
        """Close the client."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class FileSignals:
    """Takes signals from the lines of a file, which are removed by :meth:`stored`. Used by one thread.

    Lines that are no signals are logged and removed too.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._taken = 0

    def take(self) -> list[Signal]:
        """Return the signals of whole lines that were added since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._taken)
                data = file.read(_MOST_FILE_BYTES)
        except FileNotFoundError:
            self._taken = 0
            return []
        except OSError as error:
            raise ConnectError(f"The file {self._path} of signal.file cannot be read: {error.strerror}") from error
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and data and self._is_whole(data):
            # Debezium's users write the last line without an end, as echo -n does.
            whole = data
        found = []
        for line in whole.splitlines():
            if line.strip():
                signal = _signal(line, f"a line of {self._path}", f"{self._path.name}-{self._taken}")
                found += [signal] if signal is not None else []
        self._taken += len(whole)
        return found

    def stored(self) -> None:
        """Empty the file if all of it was taken; lines that have come since stay, and are removed later."""
        if not self._taken:
            return
        try:
            with self._path.open("r+b") as file:
                if os.fstat(file.fileno()).st_size == self._taken:
                    file.truncate(0)
                    self._taken = 0
        except FileNotFoundError:
            self._taken = 0
        except OSError as error:
            raise ConnectError(f"The file {self._path} of signal.file cannot be emptied: {error.strerror}") from error

    @staticmethod
    def _is_whole(line: bytes) -> bool:
        try:
            json.loads(line)
        except ValueError:
            return False
        return True


def _signal(data: bytes | str | None, place: str, identity: str) -> Signal | None:
    """Return a signal written as JSON, or ``None`` if it is none, which is logged."""
    try:
        document: Any = json.loads(data or "")
        kind, given = document["type"], document.get("data") or {}
        told = json.loads(given) if isinstance(given, str) else given
        if not isinstance(kind, str) or not isinstance(told, dict):
            raise TypeError("type or data")
        return Signal(str(document.get("id") or identity), kind, told)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        logger.warning("%s is no signal, and is passed over: %s", place, excerpt(data))
        return None

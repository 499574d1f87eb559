"""The source of keys: it listens to what Redis tells of changes, and publishes the values that the keys have then.

Redis tells only those who listen, and does not repeat itself: changes while nobody listens are not seen. So a start,
and a connection that broke, are followed by a scan of all keys in mode LIVE, which finds every value; keys that were
deleted meanwhile are not told. The number of gaps is measured.

==============================  ================================================================================
kill -9 of the task here        then
==============================  ================================================================================
anywhere                        mode LIVE publishes all keys again, so that each value is there once more; keys
                                deleted before the successor listens are not told. LIVEONLY loses what changed
                                since the last record that Kafka has
==============================  ================================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from connect.data import Schema, SourceBatch, SourceRecord, ValueColumn
from connect.errors import ConnectError, RetriableError
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.redis.checks import notification_problem
from connectors.redis.failures import told
from connectors.redis.key_values import KEY_VALUE_SCHEMA, KeyState, read_keys
from connectors.redis.keys_config import RedisKeysSourceConfig
from connectors.redis.server import Client

__all__ = ["RedisKeysSourceConnector", "RedisKeysSourceTask"]

_log = logging.getLogger(__name__)
_KEY_SCHEMA: Final = Schema.string()
_WAIT_SECONDS: Final = 0.1
_LONGEST_SILENCE_SECONDS: Final = 10.0
"""After how long the server is asked whether it is there still."""
_MOST_WAITING: Final = 100_000
"""How many changed keys are held; the server holds back what is beyond, and in the end breaks the connection."""


class RedisKeysSourceTask(SourceTask[RedisKeysSourceConfig]):
    """Publishes keys: those that changed first, then the next of a scan."""

    def start(self) -> None:
        self._partition = {"keyspace": self.config.server.shown, "pattern": self.config.redis_keys_pattern}
        self._reader: Client | None = None
        self._listener: Any = None
        self._changed: dict[bytes, None] = {}
        self._cursor: int | None = None
        self._published = self._events = self._gaps = 0
        self._has_listened = False
        self._last_change = self._heard_at = time.monotonic()
        self._is_asked = False

    def poll(self) -> SourceBatch | None:
        try:
            return self._polled()
        except RetriableError:
            self._disconnect()
            raise

    def drained(self) -> bool:
        """Return whether nothing has changed for redis.keys.timeout."""
        timeout = self.config.redis_keys_timeout / 1000
        is_idle = not self._changed and self._cursor is None and self._has_listened
        return bool(timeout) and is_idle and time.monotonic() - self._last_change >= timeout

    def stop(self) -> None:
        self._disconnect()

    def measurements(self) -> Iterable[Measurement]:
        yield Measurement("redis_key_events_total", self._events, "Changes that Redis told.")
        yield Measurement("redis_key_gaps_total", self._gaps, "Times when nobody listened after the first time.")
        yield Measurement("redis_changed_keys", len(self._changed), "Changed keys that wait for being read.")

    def _polled(self) -> SourceBatch | None:
        reader = self._connected()
        is_busy = bool(self._changed) or self._cursor is not None
        self._listen(0.0 if is_busy else _WAIT_SECONDS)
        if self._changed:
            keys = list(self._changed)[: self.config.batch_size]
            states = read_keys(reader, keys)
            for key in keys:
                del self._changed[key]
            return self._batch(states)
        if self._cursor is not None:
            return self._batch(self._scanned(reader, self._cursor))
        return None

    def _scanned(self, reader: Client, cursor: int) -> Sequence[KeyState]:
        with told("scan the keys"):
            pattern, count = self.config.redis_keys_pattern, self.config.batch_size
            following, keys = reader.execute_command("SCAN", cursor, "MATCH", pattern, "COUNT", count)
        states = read_keys(reader, keys) if keys else ()
        self._cursor = int(following) or None
        return states

    def _listen(self, seconds: float) -> None:
        """Take what Redis has told of changes, waiting for the first for some time."""
        with told("listen to changes of keys"):
            while len(self._changed) < _MOST_WAITING:
                message = self._listener.get_message(timeout=seconds)
                if message is None:
                    self._check_silence()
                    return
                seconds, self._heard_at, self._is_asked = 0.0, time.monotonic(), False
                if message["type"] == "pmessage":
                    self._events += 1
                    self._last_change = time.monotonic()
                    self._changed[message["channel"].partition(b"__:")[2]] = None

    def _check_silence(self) -> None:
        """Ask a server that is silent to answer; raise if it has not: who only listens does not see that the network
        has lost the connection."""
        now, patience = time.monotonic(), self.config.server.timeout_seconds
        silent = now - self._heard_at
        if self._is_asked and silent >= patience:
            raise RetriableError(f"Redis has not answered within {patience:g} s (redis.timeout): listening anew.")
        if not self._is_asked and silent >= min(patience, _LONGEST_SILENCE_SECONDS):
            self._listener.ping()
            self._heard_at, self._is_asked = now, True

    def _batch(self, states: Sequence[KeyState]) -> SourceBatch | None:
        told_states = [state for state in states if state.error is None or not self._given_up(state)]
        if not told_states:
            return None
        first = self._published + 1
        self._published += len(told_states)
        now = int(time.time() * 1000)
        return SourceBatch.of(
            self.config.topic,
            ValueColumn([state.value for state in told_states], KEY_VALUE_SCHEMA),
            source_partition=self._partition,
            source_offsets=[{"record": number} for number in range(first, self._published + 1)],
            key=ValueColumn([state.value["key"] for state in told_states], _KEY_SCHEMA),
            timestamps=[now] * len(told_states),
        )

    def _given_up(self, state: KeyState) -> bool:
        """Report a key that cannot be told; raises if that is not tolerated."""
        assert state.error is not None
        record = SourceRecord(self.config.topic, state.key, source_partition=self._partition)
        self.context.errant_record_reporter.report(record, state.error)
        return True

    # -- the connections -----------------------------------------------------------------------------------------

    def _connected(self) -> Client:
        if self._reader is None:
            reader = self.config.client()
            if problem := notification_problem(reader):
                reader.close()
                raise ConnectError(problem)
            self._subscribe()
            if self._has_listened:
                self._gaps += 1
                _log.warning("Changes of keys were not heard for a while%s", self._consequence)
            self._has_listened = True
            # After the subscription, so that what changes during the scan is heard.
            if self.config.scans:
                self._cursor = 0
            self._reader = reader
        return self._reader

    @property
    def _consequence(self) -> str:
        return ": all keys are read again" if self.config.scans else ", and are not published (mode=LIVEONLY)"

    def _subscribe(self) -> None:
        config = self.config
        subscriber: Any = config.client()
        self._listener = subscriber.pubsub()
        channel = f"__keyspace@{config.server.database}__:{config.redis_keys_pattern}"
        with told("listen to changes of keys"):
            self._listener.psubscribe(channel)
            while (message := self._listener.get_message(timeout=config.server.timeout_seconds)) is not None:
                if message["type"] == "psubscribe":
                    self._heard_at, self._is_asked = time.monotonic(), False
                    return
        raise RetriableError("Redis does not confirm that it tells changes of keys.")

    def _disconnect(self) -> None:
        for connection in (getattr(self, "_listener", None), getattr(self, "_reader", None)):
            if connection is not None:
                connection.close()
        self._listener = self._reader = None


class RedisKeysSourceConnector(SourceConnector[RedisKeysSourceConfig]):
    """Publishes keys of Redis that change, with their values. What nobody hears is not told again."""

    task_class = RedisKeysSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return one task: Redis tells every listener of all changes."""
        return [self.config.props_for_tasks()]

    @classmethod
    def exactly_once_support(cls, config: RedisKeysSourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """There are no positions."""
        return ExactlyOnceSupport.UNSUPPORTED

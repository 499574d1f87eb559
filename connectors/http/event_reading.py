"""The reading of a server-sent event stream: which records its events become, and when to reconnect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connect.data import NO_HEADERS, Schema, SourceRecord
from connect.errors import ConnectError, DataError
from connect.kits.http.messages import Request
from connect.kits.http.retries import Backoff, retry_after
from connect.kits.json_text import parse_json
from connectors.http.events import Event, EventParser
from connectors.http.items import Items
from connectors.http.source_config import HttpSourceConfig
from connectors.http.source_requests import SourceRequests
from connectors.http.steps import Malformed, TryLater

__all__ = ["EventReading"]

_NO_MORE: Final = 204


class EventReading:
    """Decides how to read a stream, without waiting or doing I/O."""

    def __init__(self, config: HttpSourceConfig, partition: Mapping[str, str], last_id: str) -> None:
        self._config = config
        self._partition = dict(partition)
        self._requests = SourceRequests(config)
        self._items = Items(config)
        self._backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        self._most_tries = -1 if config.max_retries is None else config.max_retries
        self._tries = 0
        self._last_id = last_id
        self._retry_seconds: float | None = None
        self._parser = EventParser(config.http_event_max_bytes, last_id)
        self.is_over = False
        """Whether the server has said that the stream has ended for good."""

    def request(self) -> Request:
        """Return the request that continues after the last event."""
        self._retry_seconds = self._parser.retry_seconds or self._retry_seconds
        self._parser = EventParser(self._config.http_event_max_bytes, self._last_id)
        return self._requests.events(self._last_id, self._config.initial_fields())

    def opened(self, status: int, headers: Mapping[str, str], now: float) -> TryLater | None:
        """Judge the head of an answer: ``None`` if events follow, otherwise when to retry."""
        if status == _NO_MORE:
            self.is_over = True
            return None
        place = "The stream of http.request.url"
        if status in self._config.process:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "text/event-stream":
                raise ConnectError(
                    f"{place} is not an event stream: its Content-Type is {kind or 'missing'}. Correct the URL, or "
                    "set http.events=false."
                )
            return None
        if status in self._config.retry:
            asked = retry_after(headers, now)
            return self.failed(f"{place} was answered with HTTP status {status}", asked)
        raise ConnectError(f"{place} was answered with HTTP status {status}: correct the URL or the configuration.")

    def failed(self, reason: str, wait: float | None = None) -> TryLater:
        """Return when to reconnect after a failure. Raises :class:`~connect.errors.ConnectError` after too many."""
        self._tries += 1
        if 0 <= self._most_tries < self._tries:
            raise ConnectError(f"{reason} (tried {self._tries} times; see max.retries)")
        least = self._parser.retry_seconds or self._retry_seconds or 0.0
        return TryLater(reason, max(self._backoff.seconds(self._tries) if wait is None else wait, least))

    def ended(self) -> float:
        """Return the seconds until the next connection, after a stream that ended normally."""
        found = self._parser.retry_seconds or self._retry_seconds
        return self._config.retry_backoff_ms / 1000 if found is None else found

    def records(self, part: bytes) -> list[SourceRecord | Malformed]:
        """Return the records of the events completed by these bytes."""
        events = self._parser.feed(part)
        if part:
            self._tries = 0
        return [self._record(event) for event in events]

    def _record(self, event: Event) -> SourceRecord | Malformed:
        self._last_id = event.id
        offset: dict[str, Any] = {"event.id": event.id}
        headers = NO_HEADERS.add("http.event", event.name, Schema.string())
        try:
            content = (
                event.data
                if self._config.http_response_type == "text"
                else parse_json(event.data.encode(), "The data of an event")
            )
            record = self._items.record(self._items.read(content))
        except DataError as error:
            record = SourceRecord(self._config.kafka_topic, event.data)
            return Malformed(record.replace(source_partition=self._partition, source_offset=offset), error)
        return record.replace(source_partition=self._partition, source_offset=offset, headers=headers)

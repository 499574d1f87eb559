"""The HTTP source: the records of a REST API, or of an event stream, become records of a topic."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from connect.data import Offset, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import NoAnswerError, Response, TimedOutError
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.http.background import Background, await_outcome
from connectors.http.client_config import http_client
from connectors.http.event_reading import EventReading
from connectors.http.items import fingerprint
from connectors.http.list_reading import ListReading
from connectors.http.places import Place, check_offset
from connectors.http.source_config import HttpSourceConfig
from connectors.http.splits import ListSplits
from connectors.http.steps import Ask, Malformed, Outcome, Publish, Rest, Steps, TryLater

if TYPE_CHECKING:
    from connect.kits.http.transport import Stream

__all__ = ["HttpSourceConnector", "HttpSourceTask"]

_LONGEST_WAIT_SECONDS: Final = 1.0
"""Seconds after which a poll gives way to commits."""


class HttpSourceTask(SourceTask[HttpSourceConfig]):
    """Polls a server, and publishes what is new.

    Crash points: the offsets are the only state, and each determines the request after its record. After a kill between
    publishing records and committing their offsets, they are published again.
    """

    def start(self) -> None:
        partition = _partition(self.config.http_request_url.strip())
        reader = self.context.offset_storage_reader
        # The Java connector has one source partition, without a name.
        kept = reader.offset(partition) or reader.offset({})
        self._client = http_client(self.config)
        self._failure: Exception | None = None
        self._is_drained = False
        if self.config.http_events:
            last_id = str((kept or {}).get("event.id", ""))
            self._reader: _ListReader | _EventReader = _EventReader(self, EventReading(self.config, partition, last_id))
        else:
            initial = self.config.initial_fields()
            place = Place.from_offset(kept) if kept else Place(initial, initial)
            self._reader = _ListReader(self, ListReading(self.config, partition).steps(place), is_done=place.is_done)

    def poll(self) -> Iterable[SourceRecord]:
        if self._failure is not None:
            raise self._failure
        self._is_drained = False
        found = self._reader.poll()
        return self._published(found)

    def drained(self) -> bool:
        """Return whether the list was read to its end; a stream has no end."""
        return self._reader.is_at_end

    def stop(self) -> None:
        """Abort what is under way, without waiting for a server that does not answer."""
        if (client := getattr(self, "_client", None)) is not None:
            client.close()
            self._reader.close()

    def wait(self, until: float) -> bool:
        """Wait until a time, but not for long; return whether it has come."""
        left = until - time.monotonic()
        if left > _LONGEST_WAIT_SECONDS:
            self.context.wait(_LONGEST_WAIT_SECONDS)
            return False
        return left <= 0 or self.context.wait(left)

    @property
    def client(self) -> HttpClient:
        """The HTTP client."""
        return self._client

    def without_secrets(self, error: BaseException) -> BaseException:
        """Return an error with the credentials in it hidden."""
        if isinstance(error, ConnectError) and (text := self._client.hide(str(error))) != str(error):
            return ConnectError(text)
        return error

    def _published(self, items: Sequence[SourceRecord | Malformed]) -> list[SourceRecord]:
        """Return the records and report malformed items; if a report fails the task, publish those before it."""
        records: list[SourceRecord] = []
        for item in items:
            if isinstance(item, SourceRecord):
                records.append(item)
                continue
            try:
                self.context.errant_record_reporter.report(item.record, item.error)
            except Exception as error:
                if not records:
                    raise
                self._failure = error
                break
        return records


class _ListReader:
    """Carries out the steps of a list reading."""

    def __init__(self, task: HttpSourceTask, steps: Steps[None], *, is_done: bool) -> None:
        self._task = task
        self._steps = steps
        self._background: Background[Response] = Background("http source")
        self._outcome: Outcome = None
        self._rest_until: float | None = None
        self._is_done = is_done
        self.is_at_end = is_done

    def poll(self) -> Sequence[SourceRecord | Malformed]:
        """Return the next records; empty if that takes time."""
        while not self._is_done:
            if self._background.is_busy and not self._await():
                return ()
            if self._rest_until is not None:
                if not self._task.wait(self._rest_until):
                    return ()
                self._rest_until, self.is_at_end = None, False
            found = self._step()
            if found is not None:
                return found
        self.is_at_end = True
        self._task.context.wait(_LONGEST_WAIT_SECONDS)
        return ()

    def close(self) -> None:
        """End the thread."""
        self._background.close()

    def _step(self) -> Sequence[SourceRecord | Malformed] | None:
        """Carry out the next step; return what to publish now, or ``None`` to continue."""
        outcome, self._outcome = self._outcome, None
        try:
            step = self._steps.send(outcome)
        except StopIteration:
            self._is_done = True
            return None
        except ConnectError as error:
            raise self._task.without_secrets(error) from None
        match step:
            case Ask(request):
                self._background.begin(lambda: self._task.client.send(request))
            case Publish(items):
                return items
            case Rest(seconds, is_end):
                self._rest_until, self.is_at_end = time.monotonic() + seconds, is_end
                if is_end:
                    # Makes the end of the list visible to drained.
                    return ()
            case TryLater(reason, seconds):
                raise RetriableError(self._task.client.hide(reason), retry_after=max(seconds, 0.001))
        return None

    def _await(self) -> bool:
        found = await_outcome(self._background, self._task.context.wait)
        if found is None:
            return False
        response, error = found
        if error is not None and not isinstance(error, NoAnswerError):
            raise self._task.without_secrets(error)
        self._outcome = error if isinstance(error, NoAnswerError) else response
        return True


class _EventReader:
    """Keeps a stream open and reads it."""

    def __init__(self, task: HttpSourceTask, reading: EventReading) -> None:
        self._task = task
        self._reading = reading
        self._opening: Background[Stream] = Background("http stream")
        self._parts: Background[bytes] = Background("http events")
        self._stream: Stream | None = None
        self._rest_until: float | None = None
        self.is_at_end = False

    def poll(self) -> Sequence[SourceRecord | Malformed]:
        """Return the records of the next events; empty if there are none yet."""
        if self._reading.is_over:
            self.is_at_end = True
            self._task.context.wait(_LONGEST_WAIT_SECONDS)
            return ()
        if self._rest_until is not None:
            if not self._task.wait(self._rest_until):
                return ()
            self._rest_until = None
        return self._read(self._stream) if self._stream is not None else self._open()

    def close(self) -> None:
        """End the threads; the client closes the connection."""
        self._opening.close()
        self._parts.close()

    def _open(self) -> Sequence[SourceRecord]:
        if not self._opening.is_busy:
            request = self._reading.request()
            self._opening.begin(lambda: self._task.client.open(request))
        found = await_outcome(self._opening, self._task.context.wait)
        if found is None:
            return ()
        stream, error = found
        if error is not None:
            self._fail(error)
        assert stream is not None
        try:
            later = self._reading.opened(stream.status, stream.headers, time.time())
        except BaseException:
            stream.close()
            raise
        if later is not None or self._reading.is_over:
            stream.close()
        if later is not None:
            raise RetriableError(later.reason, retry_after=max(later.seconds, 0.001))
        if not self._reading.is_over:
            self._stream = stream
        return ()

    def _read(self, stream: Stream) -> Sequence[SourceRecord | Malformed]:
        if not self._parts.is_busy:
            self._parts.begin(stream.read)
        found = await_outcome(self._parts, self._task.context.wait)
        if found is None:
            return ()
        part, error = found
        if error is None and part:
            return self._reading.records(part)
        stream.close()
        self._stream = None
        # A stream that is silent for too long may be dead: reconnect as if it had ended.
        if error is not None and not isinstance(error, TimedOutError):
            self._fail(error)
        self._rest_until = time.monotonic() + self._reading.ended()
        return ()

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, NoAnswerError):
            raise self._task.without_secrets(error)
        later = self._reading.failed(str(error))
        raise RetriableError(later.reason, retry_after=max(later.seconds, 0.001)) from None


class HttpSourceConnector(SourceConnector[HttpSourceConfig]):
    """Reads REST APIs and event streams: paging, increments, children, long polling and server-sent events."""

    task_class = HttpSourceTask
    watches = False

    def start(self) -> None:
        self._splits: ListSplits | None = None

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:  # noqa: ARG002
        """Return one task: a list has a single order."""
        return [self.config.props_for_tasks()]

    def splits(self, max_splits: int) -> Sequence[Mapping[str, str | None]] | None:
        """Return the list up to its current end: ranges of its pages where the server reports a total, else one split.

        A stream has no end.
        """
        if self.config.http_events or self.config.http_long_polling:
            return None
        partition = _partition(self.config.http_request_url.strip())
        if self._splits is None:
            self._splits = ListSplits(self.config, partition, self.context.wait)
        kept = self.context.offset_storage_reader.offsets([partition, {}])
        split = self._splits.next(next(filter(None, kept), None), max_splits)
        return [{**self.config.originals, **each} for each in split]

    def stop(self) -> None:
        """Close the connections used for finding splits."""
        if self._splits is not None:
            self._splits.close()

    @classmethod
    def exactly_once_support(cls, config: HttpSourceConfig) -> ExactlyOnceSupport:
        """Supported for repeatable reads: lists whose pages do not change, and streams that resume by id."""
        return ExactlyOnceSupport.UNSUPPORTED if config.http_long_polling else ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: HttpSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:
        """Accept offset fields that are strings and numbers."""
        for partition, offset in offsets.items():
            parsed = json.loads(partition)
            if parsed and parsed != _partition(config.http_request_url.strip()):
                raise ConnectError(f"The only partition is {json.dumps(_partition(config.http_request_url.strip()))}")
            if offset is not None:
                check_offset(offset)
        return True


def _partition(url: str) -> dict[str, str]:
    """Return the source partition of a list. Its path may contain a secret, so it is replaced by a fingerprint."""
    address, _, _ = url.partition("?")
    scheme, _, rest = address.partition("://")
    return {"url": f"{scheme}://{rest.partition('/')[0]}", "list": fingerprint(address)}

"""The source of Elasticsearch and OpenSearch: documents become records, in the order of a field, and again new ones."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from connect.data import Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import NoAnswerError, Request, Response, TooLargeError
from connect.kits.http.retries import retry_after
from connect.kits.http.senders import Answered, Senders
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.elasticsearch.checks import CheckedSourceConfig
from connectors.elasticsearch.cluster import JSON, is_passing, refusal
from connectors.elasticsearch.indexes import IndexMonitor
from connectors.elasticsearch.positions import Position, partition_of
from connectors.elasticsearch.reading import Ask, Hit, IndexReading, Step, TooLarge
from connectors.elasticsearch.source_config import SearchTaskConfig
from connectors.elasticsearch.source_records import MalformedError, RecordMaker

__all__ = ["ElasticsearchSourceConnector", "ElasticsearchSourceTask"]

_LONGEST_WAIT_S: Final = 1.0
_SLICE_S: Final = 0.05
_LOOK_S: Final = 0.001
"""How long to wait to find out whether the task must stop: a wait of 0 does not check."""


class _Reader:
    """An index that is being read: the generator of its steps, and when its next round begins."""

    def __init__(self, config: SearchTaskConfig, index: str, offset: Offset | None) -> None:
        self.reading = IndexReading(index, config.selection, Position.from_offset(offset), time.monotonic)
        self.maker = RecordMaker(config, index)
        self.steps = self.reading.steps()
        self.due = 0.0


class ElasticsearchSourceTask(SourceTask[SearchTaskConfig]):
    """Reads indexes one after the other, each to its end, and then again.

    The offset of a record names its document in the order of cursor, id and index; reading continues with the next one.

    =================================  ===========================================================================
    kill -9 here                       then
    =================================  ===========================================================================
    before records are acknowledged    they are read and published again
    after that, before their offsets   the same: they are there twice, unless the worker publishes exactly once
    are committed
    the server, while it is read       the request is sent again; a point in time that is gone is made anew, and
                                       reading continues after the last document
    =================================  ===========================================================================
    """

    def start(self) -> None:
        config = self.config
        names = config.task_indexes
        kept = self.context.offset_storage_reader.offsets([partition_of(name) for name in names])
        self._readers = [_Reader(config, name, offset) for name, offset in zip(names, kept, strict=True)]
        self._client = HttpClient(config.client_settings(2), config.credentials)
        self._senders: Senders[Ask] = Senders(self._client, 1, "search")
        self._active: _Reader | None = None
        self._ask: Ask | None = None
        """The request of the active reader that is to be sent or under way."""
        self._is_sent = False
        self._node = 0
        self._failures = 0
        self._failure: Exception | None = None

    def poll(self) -> SourceBatch | list[SourceRecord]:
        if self._failure is not None:
            raise self._failure
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while time.monotonic() < deadline:
            if self._active is None and not self._begin():
                break
            found = self._go_on()
            if found is None or found:
                return found or []
        return []

    def drained(self) -> bool:
        """Return whether every index was read to the end that it had when it was looked at."""
        return all(reader.reading.is_at_end for reader in self._readers)

    def stop(self) -> None:
        """Abort what is under way, without waiting for a cluster that does not answer."""
        if hasattr(self, "_senders"):
            self._client.abort()
            self._senders.close()

    # -- readers ---------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Begin the next round of the index that is due; return whether one is."""
        reader = min(self._readers, key=lambda each: each.due, default=None)
        wait = _LONGEST_WAIT_S if reader is None else reader.due - time.monotonic()
        if reader is None or wait > 0:
            self.context.poll_when_readable([], wait)
            return False
        self._active = reader
        self._take(reader, next(reader.steps))
        return True

    def _go_on(self) -> SourceBatch | list[SourceRecord] | None:
        """Await the answer to a request, and return the records of the next step; None if the poll is to end."""
        reader = self._active
        if reader is None:
            return []
        answer: Response | TooLarge | None = None
        if self._ask is not None:
            self._send(self._ask)
            answered = self._senders.take(_SLICE_S)
            if answered is None:
                return [] if self.context.wait(_LOOK_S) else None
            self._is_sent = False
            answer = self._judged(answered)
        try:
            step = reader.steps.send(answer)
        except ConnectError as error:
            raise self._hidden(error) from error
        return self._records(reader, self._take(reader, step))

    def _send(self, ask: Ask) -> None:
        """Send a request, unless it is under way."""
        if not self._is_sent:
            crash_point("search-source-before-request")
            self._senders.send(ask, self._request(ask))
            self._is_sent = True

    def _take(self, reader: _Reader, step: Step) -> Sequence[Hit]:
        """Send the request of a step, or end the round, and return the documents of the step."""
        self._ask = step.ask
        if step.is_end:
            self._active = None
            reader.due = time.monotonic() + self.config.poll_interval_ms / 1000
        elif step.ask is not None:
            self._send(step.ask)
        return step.hits

    def _records(self, reader: _Reader, hits: Sequence[Hit]) -> SourceBatch | list[SourceRecord] | None:
        if not hits:
            # At the end of a round, so that it is seen.
            return [] if self._active is not None else None
        made = reader.maker.records(hits)
        if isinstance(made, SourceBatch):
            return made
        records: list[SourceRecord] = []
        for each in made:
            if isinstance(each, SourceRecord):
                records.append(each)
            elif (failure := self._reported(each)) is not None:
                # What was read before it is published first.
                self._failure = failure
                if not records:
                    raise failure
                return records
        return records

    def _reported(self, malformed: MalformedError) -> Exception | None:
        """Report a document without a schema; return what fails the task, if that does."""
        text = orjson.dumps(malformed.record.value).decode()
        try:
            self.context.errant_record_reporter.report(malformed.record.replace(value=text), malformed)
        except Exception as error:
            return error
        return None

    # -- requests --------------------------------------------------------------------------------------------------

    def _request(self, ask: Ask) -> Request:
        nodes = self.config.nodes
        body = None if ask.body is None else orjson.dumps(ask.body)
        return Request(ask.method, nodes[self._node % len(nodes)] + ask.path, JSON if body is not None else {}, body)

    def _judged(self, answered: Answered[Ask]) -> Response | TooLarge:
        """Return the answer for the reading; raise if the request is to be sent again, or cannot be."""
        response, error = answered.response, answered.error
        if isinstance(error, TooLargeError):
            return TooLarge(error.reason)
        asked: float | None = None
        if isinstance(error, NoAnswerError):
            self._node += 1
            reason = str(error)
        elif response is None:
            assert error is not None
            raise self._hidden(error) from error
        elif not is_passing(response):
            self._failures = 0
            return response
        else:
            reason, asked = refusal(response), retry_after(response.headers, time.time())
        raise self._again(self._client.hide(reason), asked)

    def _again(self, reason: str, asked: float | None) -> ConnectError:
        self._failures += 1
        if self._failures > self.config.max_retries:
            return ConnectError(f"{reason} It was tried {self._failures} times (max.retries).")
        wait = self.config.backoff.seconds(self._failures) if asked is None else asked
        return RetriableError(f"{reason.rstrip('.')}; retrying in {wait:.1f} s.", retry_after=max(wait, _LOOK_S))

    def _hidden(self, error: Exception) -> Exception:
        text = self._client.hide(str(error))
        return error if text == str(error) else ConnectError(text)


class ElasticsearchSourceConnector(SourceConnector[CheckedSourceConfig]):
    """Reads the documents of indexes, data streams and aliases of Elasticsearch and OpenSearch, and those that come."""

    task_class = ElasticsearchSourceTask

    def start(self) -> None:
        self._monitor: IndexMonitor | None = None
        self.watches = bool(self.config.patterns)
        if self.watches:
            self._monitor = IndexMonitor(self.config, self.context)
            self._monitor.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return tasks that share the indexes; none as long as there are no indexes."""
        found = self._monitor.names() if self._monitor is not None else ()
        names = tuple(dict.fromkeys((*self.config.names, *found)))
        own = self.config.props_for_tasks()
        count = min(max_tasks, len(names))
        return [{**own, "task.indexes": ",".join(names[number::count])} for number in range(count)]

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()

    @classmethod
    def exactly_once_support(cls, config: CheckedSourceConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Supported: a document has one place in the order, from which reading goes on."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config: CheckedSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:
        """Accept the offsets of indexes, with a value for each field of the cursor."""
        for partition, offset in offsets.items():
            found = json.loads(partition)
            if not isinstance(found, dict) or set(found) != {"index"}:
                raise ConnectError('A partition is {"index": "NAME"}, the name of an index, data stream or alias.')
            cursor = Position.from_offset(offset).cursor
            if cursor is not None and len(cursor) != len(config.cursor_field):
                raise ConnectError(
                    f"The cursor of {found['index']} has {len(cursor)} values, but cursor.field names "
                    f"{len(config.cursor_field)} fields: give one for each."
                )
        return True

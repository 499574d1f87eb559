"""The sinks of Elasticsearch and OpenSearch: records become documents, sent in bulk requests."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from connect.data import SinkBatch, SinkRecord, TopicPartition, Type
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import NoAnswerError, Request, Response
from connect.kits.http.retries import retry_after
from connect.kits.http.senders import Answered, Senders
from connect.sink import SinkConnector, SinkTask
from connectors.elasticsearch.bulk import Bulk, BulkQueue, Outcome, Verdict, verdicts
from connectors.elasticsearch.checks import CheckedElasticsearchConfig, CheckedOpenSearchConfig
from connectors.elasticsearch.cluster import Cluster, is_passing, refusal
from connectors.elasticsearch.documents import Documents, LeftOut, Operation, Refused
from connectors.elasticsearch.elasticsearch_config import ElasticsearchSinkConfig
from connectors.elasticsearch.mappings import mapping_of
from connectors.elasticsearch.opensearch_config import OpenSearchSinkConfig
from connectors.elasticsearch.sink_config import Behavior, SearchSinkConfig

__all__ = [
    "ElasticsearchSinkConnector",
    "ElasticsearchSinkTask",
    "OpenSearchSinkConnector",
    "OpenSearchSinkTask",
]

_log = logging.getLogger(__name__)
C = TypeVar("C", bound=SearchSinkConfig)

_SLICE_SECONDS: Final = 0.05
_LONGEST_PUT_SECONDS: Final = 20.0
_LONGEST_COMMIT_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 2.0
"""How long the last commit of a task that is to stop waits for the cluster."""
_LOOK_SECONDS: Final = 0.001
"""How long to wait to find out whether the task must stop: a wait of 0 does not check."""

_TOO_LARGE: Final = 413
_BAD_REQUEST: Final = 400
_OF_A_DOCUMENT: Final = (
    "action_request_validation_exception",
    "json_parse_exception",
    "parsing_exception",
    "x_content_parse_exception",
)
"""Kinds of errors for which a cluster refuses a request as a whole because of one operation in it."""

_DENIED: Final = (401, 403)
_MISSING_INDEX: Final = "index_not_found_exception"


class SearchSinkTask(SinkTask[C], Generic[C]):
    """Writes records as documents, with several requests under way.

    Records are held until the cluster has accepted them; offsets are committed when none before them is held. A commit
    waits for some of that time only, so that a task stops, and stays in its group, while the cluster does not answer.

    ==================================  ==========================================================================
    kill -9 here                        then
    ==================================  ==========================================================================
    before a request, or while it is    the records since the last commit are consumed and sent again: a document
    under way                           with an id is written again as it is, one without is there twice
    after it, before the commit of the  the same; where the offset is the version, the cluster refuses what it has,
    offsets                             and keeps what is newer
    after a document was refused        it is refused and reported again if its offset was not committed
    ==================================  ==========================================================================
    """

    def start(self) -> None:
        config = self.config
        self._writing = config.writing
        self._documents = Documents(self._writing)
        connections = config.max_in_flight_requests
        self._client = HttpClient(config.client_settings(connections + 1), config.credentials)
        self._sign = config.signature()
        self._cluster = Cluster(self._client, config.nodes, self._sign, config.backoff, config.max_retries)
        self._senders: Senders[Bulk] = Senders(self._client, connections, "bulk")
        self._queue = BulkQueue(config.batch_size, config.bulk_size_bytes, config.linger_ms / 1000)
        self._prepared: set[str] = set()
        self._mapped: set[str] = set()
        self._reason = ""

    def put(self, records: SinkBatch) -> None:
        self._pump()
        self._make_room(len(records))
        made = [
            self._with_resource(each) if isinstance(each, Operation) else each
            for each in self._documents.operations(records)
        ]
        now = time.monotonic()
        for each in made:
            if isinstance(each, Operation):
                self._queue.add(each, now)
            elif isinstance(each, LeftOut):
                self._leave_out(each)
            else:
                self._refuse(each)
        self._pump()
        self._come_back()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets up to what the cluster has not accepted; wait for that, less if the task is to stop."""
        started = time.monotonic()
        self._pump(flushes=True)
        while len(self._queue):
            self._check_flush_timeout()
            waited = time.monotonic() - started
            if waited > _LONGEST_COMMIT_SECONDS:
                break
            if waited > _STOP_SECONDS and not self.context.wait(_LOOK_SECONDS):
                break
            self._take(self._patience())
            self._pump(flushes=True)
        crash_point("search-sink-before-commit")
        return self._queue.durable(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._queue.forget(partitions)

    def stop(self) -> None:
        """Abort what is under way, without waiting for a cluster that does not answer."""
        if hasattr(self, "_senders"):
            self._client.abort()
            self._senders.close()

    def _check_flush_timeout(self) -> None:
        """Raise if the cluster has had what a task holds for too long."""
        if self._queue.waited(time.monotonic()) <= self.config.flush_timeout_ms / 1000:
            return
        held = len(self._queue)
        self._queue.forget()
        raise ConnectError(
            f"The cluster has not accepted {held} documents within flush.timeout.ms="
            f"{self.config.flush_timeout_ms}.{self._last_reason()}"
        )

    # -- records ---------------------------------------------------------------------------------------------------

    def _make_room(self, count: int) -> None:
        """Wait until there is room for a batch; one that is larger than all room waits until nothing is held."""
        most = max(0, self.config.max_buffered_records - count)
        started = time.monotonic()
        while len(self._queue) > most:
            self._take(self._patience())
            self._pump(flushes=True)
            if not self.context.wait(_LOOK_SECONDS):
                raise RetriableError("The task is to stop or to pause; the records are put again.", retry_after=0.01)
            if time.monotonic() - started > _LONGEST_PUT_SECONDS and len(self._queue) > most:
                # Between two puts the consumer sends its heartbeats.
                raise RetriableError(f"The cluster takes its time.{self._last_reason()}", retry_after=0.01)

    def _with_resource(self, operation: Operation) -> Operation | Refused:
        """Return the operation, whose index exists then; refused if the cluster takes no such index or mapping."""
        try:
            self._prepare(operation)
        except DataError as error:
            return Refused(operation.record, error)
        return operation

    def _prepare(self, operation: Operation) -> None:
        """Make the index of a document, and send its mapping, once."""
        name, record = operation.resource.name, operation.record
        schema = record.value_schema
        has_mapping = (
            schema is not None
            and schema.type is Type.STRUCT
            and record.value is not None
            and not self._writing.ignores_schema_of(record.topic)
        )
        if name in self._prepared and (not has_mapping or name in self._mapped):
            return
        mapping = None
        if schema is not None and has_mapping:
            compacts = self._writing.compacts_maps
            mapping = mapping_of(schema, compacts_maps=compacts, written=self._documents.writer)
            self._mapped.add(name)
        try:
            self._cluster.prepare(operation.resource, mapping, self._template())
        except BaseException:
            self._mapped.discard(name)
            raise
        self._prepared.add(name)

    def _template(self) -> str | None:
        return None

    def _leave_out(self, left: LeftOut) -> None:
        reporter = self.context.errant_record_reporter
        _log.debug("Skipping %s: %s.", _shown(left.record), left.reason)
        if left.is_reported and reporter is not None and self._tolerates():
            reporter.report(left.record, DataError(f"Cannot write a record without a value: {left.reason}."))

    def _refuse(self, refused: Refused) -> None:
        """Report a record that cannot become a document; raises if that fails the task."""
        reporter = self.context.errant_record_reporter
        if self._writing.drops_invalid:
            _log.warning("Skipping %s: %s", _shown(refused.record), refused.error)
            if reporter is not None and self._tolerates():
                reporter.report(refused.record, refused.error)
        elif reporter is not None:
            reporter.report(refused.record, refused.error)
        else:
            raise ConnectError(f"{_shown(refused.record)} cannot be written: {refused.error}") from refused.error

    def _tolerates(self) -> bool:
        return (self.config.originals.get("errors.tolerance") or "none").lower() == "all"

    # -- requests --------------------------------------------------------------------------------------------------

    def _pump(self, *, flushes: bool = False) -> None:
        """Take what has been answered, and send what may be sent."""
        while self._take(0.0):
            pass
        now = time.monotonic()
        while self._queue.flying < self.config.max_in_flight_requests:
            bulk = self._queue.next(now, flushes=flushes)
            if bulk is None:
                return
            crash_point("search-sink-before-request")
            self._senders.send(bulk, self._request(bulk))

    def _request(self, bulk: Bulk) -> Request:
        body, headers = bulk.body, {}
        if self.config.compresses:
            body, headers = gzip.compress(body, 1), {"Content-Encoding": "gzip"}
        return self._sign(self._cluster.bulk_request(body, headers))

    def _come_back(self) -> None:
        """Have the runtime call again when there is something to do, even if no records come."""
        due = self._queue.due(time.monotonic())
        if self._queue.flying:
            due = _SLICE_SECONDS if due is None else min(due, _SLICE_SECONDS)
        if due is not None:
            self.context.timeout(max(due, _LOOK_SECONDS))

    def _patience(self) -> float:
        due = self._queue.due(time.monotonic())
        return _SLICE_SECONDS if due is None else min(_SLICE_SECONDS, max(due, _LOOK_SECONDS))

    def _take(self, seconds: float) -> bool:
        """Wait for an answer, and do what it says; return whether there was one."""
        answered = self._senders.take(seconds)
        if answered is None:
            return False
        if self._queue.landed(answered.job):
            self._judge(answered)
        return True

    def _judge(self, answered: Answered[Bulk]) -> None:
        bulk, response, error = answered.job, answered.response, answered.error
        if isinstance(error, NoAnswerError):
            self._cluster.turn()
            self._send_again(bulk, str(error))
        elif response is None:
            raise self._hidden(error)
        elif 200 <= response.status < 300:
            crash_point("search-sink-after-request")
            try:
                judged = verdicts(bulk, response.body)
            except DataError as broken:
                self._send_again(bulk, str(broken))
                return
            self._settle(judged)
        else:
            self._refused(bulk, response)

    def _refused(self, bulk: Bulk, response: Response) -> None:
        """Decide on a request that was refused as a whole."""
        text = refusal(response)
        reason = self._client.hide(text)
        is_too_large = response.status == _TOO_LARGE
        is_of_one = response.status == _BAD_REQUEST and text.partition(": ")[2].startswith(_OF_A_DOCUMENT)
        if is_too_large or is_of_one:
            if len(bulk.operations) > 1:
                self._queue.halve(bulk, time.monotonic())
                return
            told = f"the document is too large ({reason})" if is_too_large else reason
            self._settle([Verdict(bulk.operations[0], Outcome.MALFORMED, told)])
        elif is_passing(response):
            self._send_again(bulk, reason, retry_after(response.headers, time.time()))
        elif response.status in _DENIED:
            raise ConnectError(f"The cluster does not let this user write: {reason}. Check the credentials and rights.")
        else:
            raise ConnectError(f"The cluster refuses bulk requests: {reason}. Check connection.url.")

    def _settle(self, judged: Sequence[Verdict]) -> None:
        again = [verdict for verdict in judged if verdict.outcome is Outcome.AGAIN]
        for name in {each.operation.resource.name for each in again if each.reason.startswith(_MISSING_INDEX)}:
            self._prepared.discard(name)
            self._mapped.discard(name)
        for verdict in judged:
            if verdict.outcome is not Outcome.AGAIN:
                self._queue.done(verdict.operation)
        if again:
            self._again([verdict.operation for verdict in again], again[0].reason)
        for verdict in judged:
            self._conclude(verdict)

    def _send_again(self, bulk: Bulk, reason: str, asked: float | None = None) -> None:
        """Have a request that was refused as a whole sent again, unless that was done as often as allowed."""
        operations = bulk.operations
        failures = max(operation.failures for operation in operations) + 1
        if failures > self.config.max_retries:
            first = _shown(operations[0].record)
            raise ConnectError(
                f"The cluster did not accept {len(operations)} documents, the first of them {first}: "
                f"{self._client.hide(reason)} They were tried {failures} times (max.retries)."
            )
        for operation in operations:
            operation.failures = failures
        self._again(operations, reason, asked)

    def _again(self, operations: Sequence[Operation], reason: str, asked: float | None = None) -> None:
        """Have operations tried again later; how long, flush.timeout.ms limits."""
        self._reason = reason
        for operation in operations:
            operation.tries += 1
        # An index that was deleted meanwhile is made again; if that cannot be now, the next attempt does it.
        with suppress(RetriableError, DataError):
            for operation in operations:
                self._prepare(operation)
        tries = max(operation.tries for operation in operations)
        wait = self.config.backoff.seconds(tries) if asked is None else asked
        _log.info("Trying %d documents again in %.1f s: %s", len(operations), wait, self._client.hide(reason))
        self._queue.again(operations, time.monotonic() + wait)

    def _conclude(self, verdict: Verdict) -> None:
        """Report a document that the cluster has refused for good; raises if that fails the task."""
        if verdict.outcome in (Outcome.DONE, Outcome.AGAIN):
            return
        record, error = verdict.operation.record, DataError(f"Indexing failed: {verdict.reason}")
        if verdict.outcome is Outcome.CONFLICT:
            self._conclude_conflict(verdict, error)
        elif verdict.outcome is Outcome.MALFORMED:
            self._give_up(record, error, self._writing.on_malformed)
        else:
            raise ConnectError(
                f"{_shown(record)} was not written. {error} Others would be refused as well: correct the index or the "
                "rights of the user, and restart the task."
            ) from error

    def _conclude_conflict(self, verdict: Verdict, error: DataError) -> None:
        behavior = self._writing.on_conflict
        operation = verdict.operation
        if operation.tries or operation.resource.is_data_stream or _is_own_version(verdict):
            # It was written before, by this request or one before a restart.
            return
        if behavior is not Behavior.IGNORE:
            self._give_up(operation.record, error, behavior)

    def _give_up(self, record: SinkRecord, error: DataError, behavior: Behavior) -> None:
        reporter = self.context.errant_record_reporter
        if behavior is Behavior.FAIL:
            if reporter is None:
                raise ConnectError(f"{_shown(record)} was not written. {error}") from error
            reporter.report(record, error)
            return
        level = logging.DEBUG if behavior is Behavior.IGNORE else logging.WARNING
        _log.log(level, "Skipping %s. %s", _shown(record), error)
        if reporter is not None and self._tolerates():
            reporter.report(record, error)

    def _hidden(self, error: Exception | None) -> Exception:
        text = self._client.hide(str(error))
        return error if error is not None and text == str(error) else ConnectError(text)

    def _last_reason(self) -> str:
        return f" The last reason: {self._client.hide(self._reason)}" if self._reason else ""


def _is_own_version(verdict: Verdict) -> bool:
    """Whether the document has the very version that was to be written: it was, before a restart."""
    version = verdict.operation.version
    return version is not None and f"current version [{version}]" in verdict.reason


def _shown(record: SinkRecord) -> str:
    return f"the record at offset {record.original_offset} of {record.original_topic}-{record.original_partition}"


class ElasticsearchSinkTask(SearchSinkTask[ElasticsearchSinkConfig]):
    """Writes to Elasticsearch, or to OpenSearch with Elasticsearch's options."""


class OpenSearchSinkTask(SearchSinkTask[OpenSearchSinkConfig]):
    """Writes to OpenSearch, or to Elasticsearch with OpenSearch's options."""

    def _template(self) -> str | None:
        return self.config.data_streams_existing_index_template_name


class _SearchSinkConnector(SinkConnector[C], Generic[C]):
    watches = False

    @classmethod
    def alter_offsets(cls, config: C, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: the sink keeps none of its own."""
        return True


class ElasticsearchSinkConnector(_SearchSinkConnector[CheckedElasticsearchConfig]):
    """Writes records to Elasticsearch as documents."""

    task_class = ElasticsearchSinkTask


class OpenSearchSinkConnector(_SearchSinkConnector[CheckedOpenSearchConfig]):
    """Writes records to OpenSearch as documents."""

    task_class = OpenSearchSinkTask

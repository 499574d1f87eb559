"""The HTTP sink: records become requests."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.http.messages import NoAnswerError, Response
from connect.kits.http.retries import retry_after
from connect.kits.http.senders import Answered, Senders
from connect.kits.json_text import json_text
from connect.sink import SinkConnector, SinkTask
from connectors.http.background import LOOK
from connectors.http.charset import shown_body
from connectors.http.client_config import http_client
from connectors.http.exchange import body_excerpt, remedy
from connectors.http.lanes import Lanes
from connectors.http.sink_config import HttpSinkConfig
from connectors.http.sink_requests import Job, Position, Refused, SinkRequests, position_of

__all__ = ["HttpSinkConnector", "HttpSinkTask"]

_log = logging.getLogger(__name__)
_SLICE_SECONDS: Final = 0.05
_LONGEST_PUT_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 0.5
"""Seconds that a stopping task waits for requests under way: answered ones need not be sent again."""


@dataclass(slots=True)
class _Progress:
    """The progress of a batch that is put again: which records were sent, and how often others were tried."""

    sent: set[Position] = field(default_factory=set)
    tries: dict[Position, int] = field(default_factory=dict)
    due: dict[Position, float] = field(default_factory=dict)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(partitions)
        self.sent = {position for position in self.sent if position[0] not in gone}
        self.tries = {position: tries for position, tries in self.tries.items() if position[0] not in gone}
        self.due = {position: due for position, due in self.due.items() if position[0] not in gone}


class HttpSinkTask(SinkTask[HttpSinkConfig]):
    """Sends the records of each batch, and returns when all have been accepted or given up.

    Crash points: offsets are committed after ``put``, so after a kill the records sent since the last commit are sent
    again. A server that recognises records by an id, such as ``${topic}-${partition}-${offset}`` in a header, takes
    each once.
    """

    def start(self) -> None:
        config = self.config
        self._requests = SinkRequests(config)
        self._client = http_client(config, most_connections=config.http_max_in_flight)
        self._senders: Senders[Job] = Senders(
            self._client, config.http_max_in_flight, "http", config.http_response_report_bytes
        )
        self._progress = _Progress()
        self._in_flight: dict[Position, Job] = {}
        self._is_put_again = False
        self._why = ""
        self._retry, self._backoff = config.retry, config.backoff
        self._result_topic = config.topic_of(config.reporter_result_topic_name)
        self._error_topic = config.topic_of(config.reporter_error_topic_name)

    def put(self, records: SinkBatch) -> None:
        if not self._is_put_again and not self._in_flight:
            self._progress = _Progress()
        self._is_put_again = True
        # First, settle the requests that were under way when the task was paused.
        self._settle(Lanes())
        lanes, refused = self._planned(records)
        self._settle(lanes)
        # Last, so that a record that fails the task does not prevent earlier records from being sent.
        for each in refused:
            self._give_up((each.record,), each.error, None)
        self._is_put_again = False

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._progress.forget(partitions)
        if not self.context.assignment:
            self._is_put_again = False

    def stop(self) -> None:
        """Abort what is under way, without waiting for a server that does not answer."""
        if (client := getattr(self, "_client", None)) is not None:
            client.close()
            self._senders.close()

    def _planned(self, records: SinkBatch) -> tuple[Lanes, list[Refused]]:
        """Return the requests still to be made, and the records that cannot be sent."""
        lanes, refused = Lanes(), []
        wanted = [record for record in records if position_of(record) not in self._progress.sent]
        for made in self._requests.jobs(wanted):
            if isinstance(made, Job):
                lanes.add(made)
            elif made.tolerated:
                level = logging.WARNING if self.config.on_null == "log" else logging.DEBUG
                _log.log(level, "Skipping %s: %s", _shown(made.record), made.error)
                self._progress.sent.add(position_of(made.record))
            else:
                refused.append(made)
        return lanes, refused

    def _settle(self, lanes: Lanes) -> None:
        """Send the jobs in the lanes and wait for them; raises ``RetriableError`` if that takes long or must wait."""
        started = looked = time.monotonic()
        while not lanes.is_empty or self._in_flight:
            self._send_ready(lanes)
            if not self._in_flight:
                wait = max(0.001, (lanes.due or 0.0) - time.monotonic())
                raise RetriableError(f"{self._why.rstrip('.')}; retrying in {wait:.1f} s.", retry_after=wait)
            self._take_outcome(lanes, _SLICE_SECONDS)
            now = time.monotonic()
            if now - looked >= _SLICE_SECONDS:
                looked = now
                if not self.context.wait(LOOK):
                    self._stop_early(lanes, "The task is to stop or to pause")
            if now - started >= _LONGEST_PUT_SECONDS:
                # Between two puts the consumer sends its heartbeats.
                self._stop_early(lanes, "The server takes its time")

    def _send_ready(self, lanes: Lanes) -> None:
        now = time.monotonic()
        while len(self._in_flight) < self.config.http_max_in_flight and (job := lanes.next(now)) is not None:
            due = self._progress.due.get(job.position, 0.0)
            if due > now:
                lanes.again(job, due)
                continue
            self._in_flight[job.position] = job
            self._senders.send(job, job.request)

    def _stop_early(self, lanes: Lanes, why: str) -> None:
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._in_flight and (left := deadline - time.monotonic()) > 0:
            self._take_outcome(lanes, left)
        raise RetriableError(f"{why}; the remaining records are sent with the next put.", retry_after=0.01)

    def _take_outcome(self, lanes: Lanes, seconds: float) -> None:
        outcome = self._senders.take(seconds)
        if outcome is None:
            return
        job = outcome.job
        known = self._in_flight.pop(job.position, None) is job
        is_done = not known or self._judged(job, outcome)
        # The lanes of an earlier put are gone; its jobs are planned again.
        if known and not lanes.is_empty:
            if is_done:
                lanes.done(job)
            else:
                lanes.again(job, self._progress.due[job.position])

    def _judged(self, job: Job, outcome: Answered[Job]) -> bool:
        """Return whether a job is done, because its records were accepted or are given up; otherwise it must be
        repeated.
        """
        response, error = outcome.response, outcome.error
        if response is not None and 200 <= response.status < 300:
            self._sent(job, response)
            return True
        if error is not None and not isinstance(error, NoAnswerError):
            raise self._without_secrets(error)
        reason = self._client.hide(
            str(error)
            if response is None
            else f"{job.request.shown} was answered with HTTP status {response.status}{body_excerpt(response)}"
        )
        if response is not None and response.status not in self._retry:
            reason += remedy(response.status)
            if 300 <= response.status < 400:
                reason += f". Redirects that would lose the body are not followed: correct {self.config.url_key}."
            self._give_up(job.records, DataError(reason), response)
            return True
        tries = self._progress.tries.get(job.position, 0) + 1
        if 0 <= self.config.most_retries < tries:
            self._exhausted(job, DataError(f"{reason} (tried {tries} times; see max.retries)"), response)
            return True
        asked = retry_after(response.headers, time.time()) if response is not None else None
        wait = self._backoff.seconds(tries) if asked is None else asked
        self._progress.tries[job.position] = tries
        self._progress.due[job.position] = time.monotonic() + wait
        self._why = reason
        return False

    def _exhausted(self, job: Job, error: DataError, response: Response | None) -> None:
        if (again := self.config.kafka_retry_backoff_ms) is not None:
            self._progress.tries.pop(job.position, None)
            raise RetriableError(str(error), retry_after=max(again / 1000, 0.001))
        self._give_up(job.records, error, response)

    def _sent(self, job: Job, response: Response) -> None:
        for record in job.records:
            self._progress.sent.add(position_of(record))
            if self._result_topic is not None:
                self._tell(self._result_topic, record, response, None)

    def _give_up(self, records: Sequence[SinkRecord], reason: DataError, response: Response | None) -> None:
        """Report records according to ``behavior.on.error``; raises if that fails the task."""
        reporter = self.context.errant_record_reporter
        for record in records:
            if self._error_topic is not None:
                self._tell(self._error_topic, record, response, str(reason))
            match self.config.behavior_on_error.lower():
                case "fail" if reporter is not None:
                    reporter.report(record, reason)
                case "fail":
                    raise ConnectError(f"{_shown(record)} was not delivered: {reason}") from reason
                case "log":
                    _log.error("Skipping %s, which was not delivered: %s", _shown(record), reason)
                case _:
                    _log.debug("Skipping %s, which was not delivered: %s", _shown(record), reason)
            self._progress.sent.add(position_of(record))

    def _tell(self, topic: str, record: SinkRecord, response: Response | None, error: str | None) -> None:
        """Publish an answer: the position of its record, the status, the body and the error."""
        document = {
            "topic": record.original_topic,
            "partition": record.original_partition,
            "offset": record.original_offset,
            "status": None if response is None else response.status,
            "body": None if response is None else self._client.hide(shown_body(response)),
            "error": error,
        }
        self.context.publish(topic, _key_bytes(record), json.dumps(document, ensure_ascii=False).encode())

    def _without_secrets(self, error: Exception) -> Exception:
        text = self._client.hide(str(error))
        return error if text == str(error) else ConnectError(text)


def _key_bytes(record: SinkRecord) -> bytes | None:
    key = record.key
    if key is None or isinstance(key, bytes):
        return key
    return (key if isinstance(key, str) else json_text(key, schema=record.key_schema)).encode("utf-8", "replace")


def _shown(record: SinkRecord) -> str:
    return f"The record at offset {record.original_offset} of {record.original_topic}-{record.original_partition}"


class HttpSinkConnector(SinkConnector[HttpSinkConfig]):
    """Sends records to REST APIs, one by one or in batches."""

    task_class = HttpSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration for each task."""
        return [self.config.props_for_tasks()] * max_tasks

    @classmethod
    def alter_offsets(cls, config: HttpSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:  # noqa: ARG003
        """Accept any offsets: the sink keeps none of its own."""
        return True

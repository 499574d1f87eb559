"""Answers inquiries about a connector's dead letter queue, in a child process: lists and replays records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any, Final

from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import Failure
from connect.internals.crash import crash_point
from worker.config.connector import SinkConnectorConfig
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.dead_letters.dead_letter import DeadLetterOrigins
from worker.runtime.dead_letters.queue import DeadLetterQueue, ErrorHeaders
from worker.runtime.dead_letters.reading import (
    DeadLetterReader,
    Range,
    ranges_after,
    ranges_of,
    ranges_to_replay,
    rest_of,
)
from worker.runtime.dead_letters.replay import TaskReplay, Trial, replayed
from worker.runtime.link import Link
from worker.security.redaction import Redaction

__all__ = ["TOLERANT", "answer_of_dead_letters"]

# A replay continues with the next record whatever is wrong with one, and does not retry.
TOLERANT: Final = {
    "errors.tolerance": "all",
    "errors.tolerance.limit": "-1",
    "errors.tolerance.rate": "-1",
    "errors.retry.timeout": "0",
}
"""The settings that a replay uses instead of the connector's own ``errors.*``."""


def answer_of_dead_letters(
    inquiry: messages.ListDeadLetters | messages.ReplayDeadLetters, link: Link, redaction: Redaction
) -> messages.Report:
    """Answer an inquiry about a dead letter queue."""
    if isinstance(inquiry, messages.ListDeadLetters):
        return _list(inquiry, redaction)
    return _replay(inquiry, link, redaction)


def _list(inquiry: messages.ListDeadLetters, redaction: Redaction) -> messages.DeadLettersListed:
    """List the queue after a position."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    # The writer of an error report may not have known all secrets.
    assembly.hide_secrets()
    queue = DeadLetterReader(assembly)
    begins, ends = queue.bounds()
    ranges = ranges_after(inquiry.after, begins, ends)
    page = queue.read(ranges, inquiry.limit)
    rest = rest_of(ranges, page.reached)
    following = (rest[0].partition, rest[0].first - 1) if rest else None
    position = queue.position()
    return messages.DeadLettersListed(
        queue.topic,
        [record.document(redaction) for record in page.records],
        following,
        {str(partition): offset for partition, offset in position.items()},
        _count(ranges_after(None, begins, ends)),
        _count(ranges_to_replay(position, ends, begins, ends)),
    )


def _count(ranges: Sequence[Range]) -> int:
    return sum(item.end - item.first for item in ranges)


def _replay(inquiry: messages.ReplayDeadLetters, link: Link, redaction: Redaction) -> messages.DeadLettersReplayed:
    """Deliver records again, or with ``dry_run`` try what the connector's chain would do with them.

    Without a selection, those that fail again are appended to the queue with their new errors, and the position of the
    replay moves past all of them: none is lost, and none blocks the others.
    """
    assembly = Assembly.resolve(inquiry.worker, {**inquiry.config, **TOLERANT}, redaction)
    assembly.hide_secrets()
    assert isinstance(assembly.config, SinkConnectorConfig)
    origins = DeadLetterOrigins(assembly.config, assembly.internal_topics)
    queue = DeadLetterReader(assembly)
    begins, ends = queue.bounds()
    until = ends if inquiry.until is None else {int(partition): end for partition, end in inquiry.until.items()}
    if inquiry.selection is None:
        ranges = ranges_to_replay(queue.position(), until, begins, ends)
    else:
        ranges = ranges_of(inquiry.selection, begins, ends)
    page = queue.read(ranges, inquiry.limit)
    records = {record.place: record for record in page.records}
    originals = {place: origins.original(record) for place, record in records.items()}
    reasons = {place: origins.why_not(original, inquiry.to) for place, original in originals.items()}
    refused = {place: reason for place, reason in reasons.items() if reason is not None}
    to_replay = {place: original for place, original in originals.items() if original and place not in refused}
    outcomes = [] if inquiry.dry_run else replayed(inquiry.to, list(to_replay.values()), assembly, link)
    if inquiry.dry_run:
        refused |= _tried(inquiry.to, to_replay, assembly, link)
    failures = {place: failure for place, failure in zip(to_replay, outcomes, strict=False) if failure is not None}
    if inquiry.selection is None and not inquiry.dry_run:
        _put_back(list(failures.values()), assembly)
        crash_point("before-replay-position")
        queue.move_position({ranges[index].partition: offset for index, offset in page.reached.items()})
    failed = refused | {place: f"{item.stage.value}: {item.error}" for place, item in failures.items()}
    rest = rest_of(ranges, page.reached)
    return messages.DeadLettersReplayed(
        queue.topic,
        [_delivered(place, original) for place, original in to_replay.items() if place not in failed],
        [_failed(place, redaction.redacted(reason)) for place, reason in failed.items()],
        [astuple(item) for item in rest],
        {str(partition): end for partition, end in until.items()},
        bool(rest),
    )


def _tried(
    to: str, records: Mapping[tuple[int, int], RawRecord], assembly: Assembly, link: Link
) -> dict[tuple[int, int], str]:
    """Return which of these records would fail again, and why, by their places."""
    if to == "task":
        TaskReplay(assembly, link).check()
    trial = Trial(assembly) if records else None
    reasons = {place: None if trial is None else trial.refusal(record) for place, record in records.items()}
    return {place: reason for place, reason in reasons.items() if reason is not None}


def _put_back(failures: Sequence[Failure], assembly: Assembly) -> None:
    if not failures:
        return
    config = assembly.config
    producer = Clients(assembly, 0).dlq_producer()
    headers = ErrorHeaders(config.name, 0, assembly.redaction)
    queue = DeadLetterQueue(producer, config.errors_deadletterqueue_topic_name, headers)
    for failure in failures:
        queue.report(failure)
    queue.flush()


def _delivered(place: tuple[int, int], original: RawRecord) -> dict[str, Any]:
    return {"partition": place[0], "offset": place[1], "topic": original.topic}


def _failed(place: tuple[int, int], reason: str) -> dict[str, Any]:
    return {"partition": place[0], "offset": place[1], "error": reason}

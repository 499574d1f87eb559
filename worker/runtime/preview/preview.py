"""The answer to a preview: what a connector would do with its next records, without doing it.

Nothing is produced, no topic is created, no offset is stored, no consumer group is joined and no task of a sink is
started. The ``start`` and ``poll`` of a source's plugin do run; its ``commit`` and ``commit_record`` are not called.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from connect.bulk_source import BulkSourceTask
from connect.errors import ConnectError
from connect.internals.chain.stack_trace import stack_trace
from connect.internals.chain.tolerance import Tolerance
from worker.config.connector import ConnectorConfig
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.link import Link
from worker.runtime.preview.bulk import is_bulk, previewed_tables
from worker.runtime.preview.documents import Document, LimitedDocuments, RecordDocuments
from worker.runtime.preview.offsets import stored_offsets
from worker.runtime.preview.sink import SinkPreview
from worker.runtime.preview.source import SourcePreview
from worker.security.redaction import Redaction

__all__ = ["preview"]

_PUBLISHES: Final = (
    "the source publishes by itself, as it reads: there is nothing to be seen before. Run it with another topic to try "
    "it"
)
_GRACE_SECONDS: Final = 3.0
"""How many seconds a call of the plugin may still last when the time is up."""
_GRACE_OF_ENGINE_SECONDS: Final = 55.0
"""The same for a call that starts an engine such as Spark; the worker waits some seconds longer."""


def preview(inquiry: messages.PreviewConnector, link: Link, redaction: Redaction) -> messages.PreviewEnded:
    """Send each record as it comes. Return why there are no more.

    Raises a :class:`~connect.errors.ConnectError` if the configuration is invalid.
    """
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    assembly.hide_secrets()
    assembly.check_spark()
    deadline = time.monotonic() + inquiry.seconds
    grace = _GRACE_OF_ENGINE_SECONDS if is_bulk(assembly) else _GRACE_SECONDS
    hangs = threading.Timer(inquiry.seconds + grace, _tell_of_hang, (link, redaction, threading.get_ident()))
    hangs.daemon = True
    hangs.start()
    try:
        return _previewed(inquiry, link, assembly, deadline)
    finally:
        hangs.cancel()


def _previewed(
    inquiry: messages.PreviewConnector, link: Link, assembly: Assembly, deadline: float
) -> messages.PreviewEnded:
    redaction = assembly.redaction
    # A stage that fails is shown at once: nothing is retried.
    policy = replace(assembly.config.error_policy, retry_timeout=0)
    tolerance = Tolerance(policy, (), lambda _: False)
    documents = RecordDocuments(assembly.config.transformations(), _outcome(assembly.config), redaction)

    def show(document: Document) -> None:
        link.send(messages.Previewed(document))

    bulk = is_bulk(assembly)
    # Records come first, and leave half of the room for tables.
    size = inquiry.bytes // 2 if bulk else inquiry.bytes
    records = LimitedDocuments(show, size)
    if assembly.is_source:
        if issubclass(assembly.connector_class.task_class, BulkSourceTask):
            return messages.PreviewEnded(_PUBLISHES)
        source = SourcePreview(assembly, tolerance, documents, stored_offsets(inquiry, assembly), records)
        return _ended(lambda: source.run(inquiry.records, deadline), redaction)
    sink = SinkPreview(assembly, tolerance, documents, records)

    def run() -> str:
        reason = sink.run(inquiry.records, deadline, from_beginning=inquiry.from_beginning)
        if bulk:
            tables = LimitedDocuments(show, size)
            ranges = sink.ranges(inquiry.records, from_beginning=inquiry.from_beginning)
            for table in previewed_tables(assembly, ranges, inquiry.records):
                tables(documents.of_table(table))
        return reason

    return _ended(run, redaction)


def _tell_of_hang(link: Link, redaction: Redaction, thread: int) -> None:
    """End the preview of a plugin that does not return; the supervisor ends its process."""
    frame = sys._current_frames().get(thread)
    trace = redaction.redacted("".join(traceback.format_stack(frame))) if frame is not None else None
    reason = "the plugin has not returned long after the time was up; it is where the trace ends"
    link.send(messages.PreviewEnded(reason, trace, failed=True))


def _ended(run: Callable[[], str], redaction: Redaction) -> messages.PreviewEnded:
    """Return the end of a run. An error, which would fail the task, is shown after the records before it."""
    try:
        return messages.PreviewEnded(redaction.redacted(run()))
    except Exception as error:
        reason = str(error) if isinstance(error, ConnectError) else f"{type(error).__name__}: {error}"
        trace = None if isinstance(error, ConnectError) else redaction.redacted(stack_trace(error))
        return messages.PreviewEnded(redaction.redacted(reason), trace, failed=True)


def _outcome(config: ConnectorConfig) -> str:
    """Return what happens to a record that cannot be processed, in words."""
    if not config.tolerates_errors:
        return "the task fails (errors.tolerance=none)"
    queue = config.errors_deadletterqueue_topic_name
    return f"left out, and sent to the dead letter queue {queue}" if queue else "left out (errors.tolerance=all)"

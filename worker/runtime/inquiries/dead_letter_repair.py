"""Answers inquiries about one dead letter, in a child process: its editable forms, and its replay after an edit."""

from __future__ import annotations

from typing import Any, Final

from connect.internals.chain.raw_records import RawRecord
from worker.config.connector import SinkConnectorConfig
from worker.errors import BadRequestError
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.dead_letters.dead_letter import REPLAYED, DeadLetter, DeadLetterOrigins
from worker.runtime.dead_letters.forms import PartForms, header_form
from worker.runtime.dead_letters.queue import PREFIX
from worker.runtime.dead_letters.reading import DeadLetterReader, ranges_of
from worker.runtime.dead_letters.repair import Edit, changes_of
from worker.runtime.dead_letters.replay import Trial, replayed
from worker.runtime.inquiries.dead_letters import TOLERANT
from worker.runtime.link import Link
from worker.runtime.preview.documents import LimitedDocuments, RecordDocuments
from worker.security.redaction import Redaction

__all__ = ["read_dead_letter", "repair_dead_letter"]

_OUTCOME: Final = "it would fail again; nothing is delivered"
_MOST_SHOWN: Final = 1 << 20


def read_dead_letter(inquiry: messages.ReadDeadLetter, redaction: Redaction) -> messages.DeadLetterRead:
    """Read a record in all its forms."""
    assembly = _assembly(inquiry, redaction)
    queue = DeadLetterReader(assembly)
    letter = _letter(queue, inquiry.partition, inquiry.offset)
    return messages.DeadLetterRead(queue.topic, None if letter is None else _document(letter, assembly))


def repair_dead_letter(
    inquiry: messages.RepairDeadLetter, link: Link, redaction: Redaction
) -> messages.DeadLetterRepaired:
    """Deliver an edited record, if it passes the connector's chain.

    The record in the queue stays as it was, whatever crashes; a crash before the answer may leave it delivered.
    """
    assembly = _assembly(inquiry, redaction)
    queue = DeadLetterReader(assembly)
    letter = _letter(queue, inquiry.partition, inquiry.offset)
    if letter is None:
        return messages.DeadLetterRepaired(queue.topic, False, None, [], None, None)
    original = _original(letter, inquiry.to, assembly)
    edited = Edit.read(inquiry.edit).applied(original, _forms(assembly))
    changes = changes_of(original, edited, redaction.redacted)
    trace = Trial(assembly).traced(edited)
    shown: list[dict[str, Any]] = []
    documents = RecordDocuments(assembly.config.transformations(), _OUTCOME, redaction)
    LimitedDocuments(shown.append, _MOST_SHOWN)(documents.of_sink(edited, trace))
    error = Trial.error_of(trace)
    reason = None if error is None else f"{error.stage.value}: {error.cause}"
    if error is None and not inquiry.dry_run:
        (failure,) = replayed(inquiry.to, [edited], assembly, link)
        reason = None if failure is None else f"{failure.stage.value}: {failure.error}"
    reason = None if reason is None else redaction.redacted(reason)
    return messages.DeadLetterRepaired(queue.topic, True, edited.topic, changes, shown[0], reason)


def _assembly(inquiry: messages.ReadDeadLetter | messages.RepairDeadLetter, redaction: Redaction) -> Assembly:
    assembly = Assembly.resolve(inquiry.worker, {**inquiry.config, **TOLERANT}, redaction)
    assembly.hide_secrets()
    return assembly


def _letter(queue: DeadLetterReader, partition: int, offset: int) -> DeadLetter | None:
    ranges = ranges_of([(partition, offset, offset + 1)], *queue.bounds())
    return next(iter(queue.read(ranges, 1).records), None) if ranges else None


def _original(letter: DeadLetter, to: str, assembly: Assembly) -> RawRecord:
    assert isinstance(assembly.config, SinkConnectorConfig)
    origins = DeadLetterOrigins(assembly.config, assembly.internal_topics)
    original = origins.original(letter)
    reason = origins.why_not(original, to)
    if reason is not None or original is None:
        raise BadRequestError(reason or "")
    return original


def _document(letter: DeadLetter, assembly: Assembly) -> dict[str, Any]:
    """Return the record as in the list, with all forms of its parts and its own headers."""
    topic = letter.context.get("topic") or ""
    forms = _forms(assembly)
    parts = {part: forms[part].document(topic, data) for part, data in (("key", letter.key), ("value", letter.value))}
    for forms_of_part in filter(None, parts.values()):
        if (why := forms_of_part["no_json"]) is not None:
            forms_of_part["no_json"] = assembly.redaction.redacted(why)
    own = (header for header in letter.headers if not header[0].startswith(PREFIX) and header[0] != REPLAYED)
    headers = [{"key": name, "value": header_form(value)} for name, value in own]
    return letter.document(assembly.redaction) | {"forms": {**parts, "headers": headers}}


def _forms(assembly: Assembly) -> dict[str, PartForms]:
    return {part: PartForms(assembly, part) for part in ("key", "value")}

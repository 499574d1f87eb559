"""The compaction of a sink's tables, in a process of its own."""

from __future__ import annotations

from typing import Any

from worker.errors import BadRequestError
from worker.runtime.assembly import Assembly
from worker.runtime.control import Link
from worker.security.redaction import Redaction
from worker.supervisor.messages import messages

__all__ = ["compact_tables"]


def compact_tables(inquiry: messages.CompactTables, link: Link, redaction: Redaction) -> messages.CompactionEnded:
    """Have the connector's plugin merge the files, and tell of each table when it is done."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    assembly.hide_secrets()
    assembly.check_spark()
    if assembly.is_source:
        raise BadRequestError("Only a sink has tables to compact, and this connector is a source.")
    connector_class: Any = assembly.connector_class
    for done in connector_class.compact(assembly.connector_config, inquiry.tables):
        link.send(
            messages.TableCompacted(
                done.table, done.files_before, done.files_after, done.bytes_before, done.bytes_after
            )
        )
    return messages.CompactionEnded()

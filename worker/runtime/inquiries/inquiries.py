"""Answers inquiries, questions about plugins, in a child process that then ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connect.config import ConfigKey, key_info
from connect.errors import ConfigError, ConnectError, NotFoundError, PluginError
from connect.internals.plugins import PluginKind, load_class
from connect.providers import RefusedReferenceError
from worker.config.validators import CONNECTOR_VERSION
from worker.errors import BadRequestError
from worker.kafka.clients import roles
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.choices import find_choices
from worker.runtime.inquiries.connector_keys import framework_of
from worker.runtime.inquiries.dead_letter_repair import read_dead_letter, repair_dead_letter
from worker.runtime.inquiries.dead_letters import answer_of_dead_letters
from worker.runtime.inquiries.offsets import answer_of_offsets
from worker.runtime.inquiries.validation import validate
from worker.runtime.java.inquiries import describe_java
from worker.runtime.link import Link
from worker.runtime.preview.preview import preview
from worker.runtime.providers import provider_of, provider_registry
from worker.runtime.source.fencing import fence
from worker.security.redaction import Redaction

__all__ = ["answer", "compact_tables", "fence_producers"]


def answer(inquiry: messages.Inquiry, link: Link, redaction: Redaction) -> messages.Report:
    """Answer an inquiry; mistakes in it are a :class:`~messages.Refused` without secrets."""
    try:
        return _answer(inquiry, link, redaction)
    except (ConfigError, NotFoundError, PluginError, BadRequestError, RefusedReferenceError) as error:
        return messages.Refused(redaction.redacted(str(error)), invalid=True)
    except ConnectError as error:
        return messages.Refused(redaction.redacted(str(error)), invalid=False)


def _answer(inquiry: messages.Inquiry, link: Link, redaction: Redaction) -> messages.Report:  # noqa: PLR0911 - a table
    match inquiry:
        case messages.ValidateConfig():
            return validate(inquiry, redaction)
        case messages.FindChoices():
            return find_choices(inquiry, redaction)
        case messages.DescribePlugin():
            return _describe(inquiry, redaction)
        case messages.PreviewConnector():
            return preview(inquiry, link, redaction)
        case messages.CompactTables():
            return compact_tables(inquiry, link, redaction)
        case messages.LookUpValues():
            return _look_up(inquiry, redaction)
        case messages.ListDeadLetters() | messages.ReplayDeadLetters():
            return answer_of_dead_letters(inquiry, link, redaction)
        case messages.ReadDeadLetter():
            return read_dead_letter(inquiry, redaction)
        case messages.RepairDeadLetter():
            return repair_dead_letter(inquiry, link, redaction)
        case messages.FenceProducers():
            return fence_producers(inquiry, redaction)
        case _:
            return answer_of_offsets(inquiry, redaction)


def _look_up(inquiry: messages.LookUpValues, redaction: Redaction) -> messages.ValuesFound:
    registry = provider_registry(inquiry.worker)
    found = provider_of(inquiry.provider, inquiry.worker, registry, redaction).get(inquiry.path, inquiry.keys)
    return messages.ValuesFound(dict(found.values), found.ttl_ms)


def _describe(inquiry: messages.DescribePlugin, redaction: Redaction) -> messages.PluginDescribed:
    assembly = Assembly.resolve(inquiry.worker, {}, redaction)
    kind = PluginKind(inquiry.kind)
    entry = assembly.plugins.find(kind, inquiry.name, inquiry.version)
    if entry.java is not None:
        return messages.PluginDescribed(describe_java(assembly, entry, inquiry.version))
    plugin = load_class(entry)
    keys: tuple[ConfigKey, ...] = plugin.config_class.definitions() if hasattr(plugin, "config_class") else ()
    if kind is PluginKind.CONNECTOR:
        own = {key.name for key in keys}
        framework = framework_of(plugin).definitions()
        versioned = (replace(key, default=entry.version) if key.name == CONNECTOR_VERSION else key for key in framework)
        keys += tuple(key for key in versioned if key.name not in own)
    return messages.PluginDescribed([dict(key_info(key)) for key in keys if not key.internal])


def fence_producers(inquiry: messages.FenceProducers, redaction: Redaction) -> messages.Fenced:
    """Fence the former producer of each task (KIP-618), which may still run somewhere.

    Raises :class:`~connect.errors.ConnectError` if one cannot be fenced.
    """
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    worker, props = assembly.worker_props, assembly.props
    fence(
        (f"task {task}", roles.source_producer_properties(worker, props, task, exactly_once=True))
        for task in inquiry.tasks
    )
    return messages.Fenced()


def compact_tables(inquiry: messages.CompactTables, link: Link, redaction: Redaction) -> messages.CompactionEnded:
    """Let the connector's plugin merge the files of its tables, and report each table."""
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

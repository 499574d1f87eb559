"""What a child process answers once and then ends: what plugins are asked without a connector or task running."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from connect.config import ConfigKey, key_info
from connect.data import TopicPartition
from connect.errors import ConfigError, ConnectError, NotFoundError, PluginError
from connect.plugins import PluginKind, load_class
from worker.kafka import clients
from worker.kafka.consumer_groups import ConsumerGroup
from worker.runtime.assembly import Assembly
from worker.runtime.connector_keys import framework_of
from worker.runtime.log import Redaction
from worker.runtime.validate import validate
from worker.supervisor import messages

__all__ = ["answer"]


class _InvalidInquiryError(ConnectError):
    """What was asked is wrong."""


def answer(inquiry: messages.Inquiry, redaction: Redaction) -> messages.Report:
    """The answer to ``inquiry``; what is wrong with it, without secrets, as :class:`~messages.Refused`."""
    try:
        return _answer(inquiry, redaction)
    except (ConfigError, NotFoundError, PluginError, _InvalidInquiryError) as error:
        return messages.Refused(redaction.hide(str(error)), invalid=True)
    except ConnectError as error:
        return messages.Refused(redaction.hide(str(error)), invalid=False)


def _answer(inquiry: messages.Inquiry, redaction: Redaction) -> messages.Report:
    match inquiry:
        case messages.ValidateConfig():
            return validate(inquiry, redaction)
        case messages.DescribePlugin():
            return _describe(inquiry, redaction)
        case messages.AlterSourceOffsets():
            return _alter_source(inquiry, redaction)
        case messages.AlterSinkOffsets():
            return _alter_sink(inquiry, redaction)
        case messages.ReadSinkOffsets():
            return _read_sink(inquiry, redaction)


def _describe(inquiry: messages.DescribePlugin, redaction: Redaction) -> messages.PluginDescribed:
    assembly = Assembly.resolve(inquiry.worker, {}, redaction)
    kind = PluginKind(inquiry.kind)
    entry = assembly.registry.find(kind, inquiry.name)
    plugin = load_class(entry)
    version = str(entry.version or getattr(plugin, "version", "undefined"))
    if inquiry.version not in ("latest", version):
        raise _InvalidInquiryError(
            f"Plugin {entry.class_name} not found that matches the version range "
            f"[{inquiry.version},{inquiry.version}], available versions: [{version}]"
        )
    keys: tuple[ConfigKey, ...] = plugin.config_class.definitions() if hasattr(plugin, "config_class") else ()
    if kind is PluginKind.CONNECTOR:
        own = {key.name for key in keys}
        keys += tuple(key for key in framework_of(plugin).definitions() if key.name not in own)
    return messages.PluginDescribed([dict(key_info(key)) for key in keys if not key.internal])


def _alter_source(inquiry: messages.AlterSourceOffsets, redaction: Redaction) -> messages.OffsetsAltered:
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    offsets = {json.dumps(partition): offset for partition, offset in inquiry.offsets}
    return messages.OffsetsAltered(_agreed(assembly, offsets))


def _alter_sink(inquiry: messages.AlterSinkOffsets, redaction: Redaction) -> messages.OffsetsAltered:
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    group = _group(assembly)
    offsets: dict[tuple[str, int], int | None]
    if inquiry.offsets is None:
        offsets = dict.fromkeys(group.offsets())
    else:
        offsets = {(topic, partition): offset for topic, partition, offset in inquiry.offsets}
    partitions = {TopicPartition(*place): offset for place, offset in offsets.items()}
    managed = _agreed(assembly, partitions)
    if inquiry.offsets is None:
        group.reset()
    else:
        group.alter(offsets)
    return messages.OffsetsAltered(managed)


def _read_sink(inquiry: messages.ReadSinkOffsets, redaction: Redaction) -> messages.SinkOffsets:
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    found = _group(assembly).offsets()
    return messages.SinkOffsets([(topic, partition, offset) for (topic, partition), offset in found.items()])


def _group(assembly: Assembly) -> ConsumerGroup:
    consumer = clients.sink_consumer_properties(assembly.worker_props, assembly.props, 0)
    admin = clients.admin(clients.admin_properties(assembly.worker_props, assembly.props))
    return ConsumerGroup(admin, str(consumer.properties["group.id"]))


def _agreed(assembly: Assembly, offsets: Mapping[Any, Any]) -> bool:
    """Whether the connector has its offsets under control; what it refuses is the mistake of who wants to set them."""
    connector_class: Any = assembly.connector_class
    try:
        return bool(connector_class.alter_offsets(assembly.connector_config, offsets))
    except ConnectError as error:
        raise _InvalidInquiryError(str(error)) from error

"""Derives the settings and ACLs of a mirrored topic from those of its source topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from connectors.mirror.filters import ConfigPropertyFilter

__all__ = ["AclBinding", "Setting", "mirrored_acl", "settings_at_creation", "settings_to_alter"]

_DEFAULT: Final = "DEFAULT_CONFIG"
_BROKER_FILE: Final = "STATIC_BROKER_CONFIG"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a topic as its broker reports it; ``source`` is Kafka's name for where the value comes from."""

    name: str
    value: str | None
    source: str
    is_read_only: bool = False
    is_sensitive: bool = False


def settings_at_creation(source: Iterable[Setting], chosen: ConfigPropertyFilter) -> dict[str, str]:
    """Return the settings with which a mirrored topic is created."""
    return {name: value for name, value in settings_to_alter(source, chosen).items() if value is not None}


def settings_to_alter(source: Iterable[Setting], chosen: ConfigPropertyFilter) -> dict[str, str | None]:
    """Return the settings that a mirrored topic is to have; ``None`` stands for the default of the target.

    Settings that are not in it stay as they are: those that the filter leaves out, and those from the source's broker
    file.
    """
    return {
        setting.name: None if _has_target_default(setting, chosen) else setting.value
        for setting in _taken(source, chosen)
    }


def _taken(source: Iterable[Setting], chosen: ConfigPropertyFilter) -> Iterator[Setting]:
    for setting in source:
        if setting.is_read_only or setting.is_sensitive or setting.source == _BROKER_FILE:
            continue
        if chosen.should_replicate_config_property(setting.name):
            yield setting


def _has_target_default(setting: Setting, chosen: ConfigPropertyFilter) -> bool:
    return setting.source == _DEFAULT and not chosen.should_replicate_source_default(setting.name)


@dataclass(frozen=True, slots=True)
class AclBinding:
    """An ACL of a literally named topic, with Kafka's names such as ALLOW and READ for permission and operation."""

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


def mirrored_acl(binding: AclBinding, remote_topic: str) -> AclBinding | None:
    """Return the ACL of the mirrored topic; ``None`` if there is none.

    Only the mirror may write to the topic, so an ACL that allows to write is dropped, and one that allows all becomes
    one that allows to read. What is denied stays denied.
    """
    if binding.permission != "ALLOW":
        return replace(binding, topic=remote_topic)
    if binding.operation == "WRITE":
        return None
    operation = "READ" if binding.operation == "ALL" else binding.operation
    return replace(binding, topic=remote_topic, operation=operation)

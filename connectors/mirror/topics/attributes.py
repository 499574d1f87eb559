"""Settings and ACLs of a mirrored topic, by those of its source."""

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
    """A setting of a topic as its broker tells it; ``source`` says by Kafka's name where the value comes from."""

    name: str
    value: str | None
    source: str
    is_read_only: bool = False
    is_sensitive: bool = False


def settings_at_creation(source: Iterable[Setting], chosen: ConfigPropertyFilter) -> dict[str, str]:
    """The settings that a mirrored topic is created with."""
    return {name: value for name, value in settings_to_alter(source, chosen).items() if value is not None}


def settings_to_alter(source: Iterable[Setting], chosen: ConfigPropertyFilter) -> dict[str, str | None]:
    """What a mirrored topic's settings are to become; ``None`` stands for the default of the target.

    Settings that are not named stay as they are: those that the filter does not take, and those that the source has
    from the file of its brokers.
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
    """An ACL of one topic, named literally: ``permission`` and ``operation`` by Kafka's names, such as ALLOW READ."""

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


def mirrored_acl(binding: AclBinding, remote_topic: str) -> AclBinding | None:
    """The ACL of the mirrored topic; ``None`` if there is none.

    Only the mirror writes to the topic: who is allowed to write to the source is not, and who is allowed all may read.
    What is denied stays denied.
    """
    if binding.permission != "ALLOW":
        return replace(binding, topic=remote_topic)
    if binding.operation == "WRITE":
        return None
    operation = "READ" if binding.operation == "ALL" else binding.operation
    return replace(binding, topic=remote_topic, operation=operation)

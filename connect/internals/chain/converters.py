"""The converters that a connector's configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.converter import Converter, HeaderConverter
from connect.internals.chain.specs import VERSION, props_below
from connect.internals.plugins import PluginKind, PluginRegistry

__all__ = ["Converters", "converter_plugin", "converter_props"]


@dataclass(frozen=True, slots=True)
class Converters:
    """The key, value and header converters of a connector."""

    key: Converter[Any]
    value: Converter[Any]
    header: HeaderConverter[Any]

    def close(self) -> None:
        """Release the resources of all three."""
        self.key.close()
        self.value.close()
        self.header.close()


def converter_plugin(registry: PluginRegistry, props: Mapping[str, str], role: str) -> Any:
    """Return the converter that a configuration names for ``role``: ``key``, ``value`` or ``header``."""
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    given = {} if role == "header" else {"is_key": role == "key"}
    plugin = registry.load(kind, props[f"{role}.converter"], props.get(f"{role}.converter.{VERSION}"))
    return plugin.configured(converter_props(props, role), **given)


def converter_props(props: Mapping[str, str], role: str) -> dict[str, str]:
    """Return the keys of the converter for ``role``, without their prefix."""
    own = props_below(props, f"{role}.converter.")
    own.pop(VERSION, None)
    return {**own, "converter.type": role}

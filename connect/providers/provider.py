"""The interface of config providers, which supply secrets and other values from outside the configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connect.config import LOW, Long, at_least, option
from connect.errors import ConnectError

__all__ = ["ConfigData", "ConfigProvider", "RefusedReferenceError", "ttl_ms"]


class RefusedReferenceError(ConnectError):
    """A reference leads to nothing that can be read: a mistake in the configuration that contains it."""


@dataclass(frozen=True, slots=True)
class ConfigData:
    """The values that a provider has at a path, and the milliseconds until they expire (``None``: never)."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """Looks up the values that a configuration refers to as ``${provider:path:key}``."""

    @abstractmethod
    def configure(self, props: Mapping[str, str]) -> None:
        """Apply the settings ``config.providers.<name>.param.<setting>``. Called once, before ``get``."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the values of ``keys`` at ``path``, or all values at ``path`` if ``keys`` is ``None``.

        Leave out keys that do not exist; references to them stay unresolved. ``path`` is empty if the reference has
        none. Raises :class:`RefusedReferenceError` if the path is wrong, and another ``ConnectError`` if what it leads
        to cannot be asked now.
        """

    def close(self) -> None:
        """Close files and connections."""
        return


def ttl_ms() -> Long | None:
    """Declare the option ``ttl.ms``, which all providers here have."""
    return option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds after which values expire. Connectors with config.action.reload=restart are then restarted "
        "with fresh values. By default values do not expire, as with Kafka's providers.",
    )

"""The interface of config providers, which hold secrets and other values outside the configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connect.config import LOW, Long, at_least, option

__all__ = ["ConfigData", "ConfigProvider", "ttl_ms"]


@dataclass(frozen=True, slots=True)
class ConfigData:
    """The values that a provider has at a path, and the milliseconds until they expire: never, if ``None``."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """Looks up the values that a configuration refers to as ``${provider:path:key}``."""

    @abstractmethod
    def configure(self, props: Mapping[str, str]) -> None:
        """Take the settings ``config.providers.<name>.param.<setting>``; called once, before ``get``."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the values of ``keys`` at ``path``, or all values at ``path`` if ``keys`` is ``None``.

        A key that does not exist is left out, and its reference stays as it is written. ``path`` is empty if the
        reference has none. Raises ``ConnectError`` if the path cannot be read.
        """

    def close(self) -> None:
        """Close files and connections."""
        return


def ttl_ms() -> Long | None:
    """Declare the option ``ttl.ms``, which every provider here has."""
    return option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds after which values expire. Connectors with config.action.reload=restart are then restarted "
        "and look them up again. By default values are used until the connector is restarted for another reason, as "
        "with the providers of Kafka.",
    )

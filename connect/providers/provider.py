"""The interface of config providers, which hold secrets and other values outside the configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connect.config import LOW, Long, at_least, option

__all__ = ["ConfigData", "ConfigProvider", "ttl_ms"]


@dataclass(frozen=True, slots=True)
class ConfigData:
    """The values a provider has at a path, and for how many milliseconds they hold: ``None`` is for good."""

    values: Mapping[str, str] = field(repr=False)
    ttl_ms: int | None = None


class ConfigProvider(ABC):
    """Looks up the values that a configuration refers to as ``${provider:path:key}``."""

    @abstractmethod
    def configure(self, props: Mapping[str, str]) -> None:
        """Take what is set as ``config.providers.<name>.param.<setting>``; called once, before ``get``."""

    @abstractmethod
    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the values of ``keys`` at ``path``, all there are when ``keys`` is ``None``.

        A key that is not there is left out, and its reference stays as it is written. ``path`` is empty when
        the reference has none. A path that cannot be read is a ``ConnectError``.
        """

    def close(self) -> None:
        """Let go of files and connections."""
        return


def ttl_ms() -> Long | None:
    """Declare the option ``ttl.ms``, which every provider here has."""
    return option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        doc="For how many milliseconds what was looked up holds. After that, connectors with "
        "config.action.reload=restart are restarted and look it up again. Without it, it holds until they are "
        "restarted for another reason, as with the providers of Kafka.",
    )

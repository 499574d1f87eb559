"""The three kinds of Kafka client, and the properties of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["ClientKind", "ClientProperties", "PropertyValue"]

PropertyValue = str | int | bool


class ClientKind(Enum):
    """A kind of client. ``value`` is also its prefix in a worker's config (``producer.`` and so on)."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"

    @property
    def worker_prefix(self) -> str:
        """The prefix of this kind's settings in the worker's config."""
        return f"{self.value}."

    @property
    def override_prefix(self) -> str:
        """The prefix of this kind's settings in a connector's config."""
        return f"{self.value}.override."


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """The settings of one client, grouped by the component that applies them."""

    properties: Mapping[str, PropertyValue] = field(repr=False)
    """The settings for librdkafka, by canonical name. They may contain secrets, so they are not shown."""

    runtime: Mapping[str, str]
    """Java settings that librdkafka lacks and that the worker's own loops implement, such as ``max.poll.records``."""

    ignored: Mapping[str, str]
    """Settings without effect, each with the reason. The worker warns about each once."""

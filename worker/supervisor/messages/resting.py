"""The messages about the rest of a connector that watches nothing."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Idle", "Rest"]


@dataclass(frozen=True, slots=True)
class Idle:
    """All that the connector has to say is said, and it watches nothing: its process is of no use for now."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Stop the connector and exit: it counts as running, and its task configs are known (connectors only)."""

"""What is shown of every connector, made anew only for those of which something has changed. The herder's thread alone.

A view is made of values that are never changed but replaced: a connector's entry, the type that was learned of it, the
statuses, and what was measured. As long as these are the same objects, the view is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from worker.stores.config import ConnectorEntry
from worker.stores.status import Status
from worker.unit import Unit

__all__ = ["KeptViews", "Views", "by_connector"]

Views: TypeAlias = dict[str, dict[str, Any]]
"""The ``status`` and the ``info`` of a connector. They are shared with whoever asked before: nobody changes them."""


@dataclass(frozen=True, slots=True)
class _Kept:
    made_of: tuple[object, ...]
    views: Views


class KeptViews:
    """Keeps the views of connectors."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def get(self, name: str, made_of: tuple[object, ...], make: Callable[[], Views]) -> Views:
        """The views that were made of the very same objects, or else new ones."""
        kept = self._kept.get(name)
        if kept is None or not _same(kept.made_of, made_of):
            kept = self._kept[name] = _Kept(made_of, make())
        return kept.views

    def forget(self, name: str) -> None:
        """The connector is no more."""
        self._kept.pop(name, None)


def by_connector(
    connectors: Mapping[str, ConnectorEntry], statuses: Mapping[Unit, Status]
) -> dict[str, list[tuple[Unit, Status]]]:
    """The statuses of each connector and its tasks, in no order."""
    parts: dict[str, list[tuple[Unit, Status]]] = {name: [] for name in connectors}
    for part in statuses.items():
        if (of_connector := parts.get(part[0].connector)) is not None:
            of_connector.append(part)
    return parts


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))

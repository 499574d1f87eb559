"""Requests for the offsets of connectors, and for their lag. Any thread may make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from worker.herder.inbox import Request, Requests
from worker.herder.offsets.groups import ConsumerOffsets
from worker.herder.offsets.offsets import ConnectorOffsets

__all__ = ["OffsetRequests"]

Document: TypeAlias = dict[str, Any]


class OffsetRequests:
    """Has the herder read and change offsets."""

    def __init__(self, requests: Requests, offsets: ConnectorOffsets, groups: ConsumerOffsets) -> None:
        self._requests = requests
        self._offsets = offsets
        self._groups = groups

    def read(self, name: str) -> Request[Document]:
        """The offsets of a connector, in Kafka Connect's form."""
        return self._requests.begin(lambda request: self._offsets.read(request, name))

    def alter(self, name: str, offsets: Sequence[Mapping[str, Any]] | None) -> Request[Document]:
        """Set offsets of a stopped connector, or reset all where ``offsets`` is ``None``; a message for the user."""
        return self._requests.begin(lambda request: self._offsets.alter(request, name, offsets))

    def reset(self, name: str, body: Mapping[str, Any], *, dry_run: bool) -> Request[list[Document]]:
        """Move the group of a stopped sink; each partition with its offset before and after.

        A dry run changes nothing and answers alike.
        """
        return self._requests.begin(lambda request: self._groups.reset(request, name, body, dry_run=dry_run))

    def lag(self, name: str) -> Request[Document]:
        """How far a connector is behind and how fast it goes, in all and by task; the tasks' workers are asked."""
        return self._requests.begin(lambda request: self._groups.lag(request, name))

"""Requests for the offsets and the lag of connectors. They may be made from any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from worker.herder.inbox import Request, Requests
from worker.herder.offsets.groups import ConsumerOffsets
from worker.herder.offsets.offsets import ConnectorOffsets

__all__ = ["OffsetRequests"]

Document: TypeAlias = dict[str, Any]


class OffsetRequests:
    """Reads and changes offsets."""

    def __init__(self, requests: Requests, offsets: ConnectorOffsets, groups: ConsumerOffsets) -> None:
        self._requests = requests
        self._offsets = offsets
        self._groups = groups

    def read(self, name: str) -> Request[Document]:
        """Return the offsets of a connector, in Kafka Connect's form."""
        return self._requests.begin(lambda request: self._offsets.read(request, name))

    def alter(self, name: str, offsets: Sequence[Mapping[str, Any]] | None) -> Request[Document]:
        """Set offsets of a stopped connector, or delete all without ``offsets``; return a message for the user."""
        return self._requests.begin(lambda request: self._offsets.alter(request, name, offsets))

    def reset(self, name: str, body: Mapping[str, Any], *, dry_run: bool) -> Request[list[Document]]:
        """Reset the group of a stopped sink; return each partition's offset before and after.

        A dry run changes nothing and returns the same.
        """
        return self._requests.begin(lambda request: self._groups.reset(request, name, body, dry_run=dry_run))

    def lag(self, name: str) -> Request[Document]:
        """Return a connector's lag and throughput, in total and by task, after asking the tasks' workers."""
        return self._requests.begin(lambda request: self._groups.lag(request, name))

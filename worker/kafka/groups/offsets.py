"""Reads, sets and deletes the offsets of a consumer group while it has no members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.internals.kafka.settings.client import ClientProperties

__all__ = ["ConsumerGroup"]

_TIMEOUT_SECONDS: Final = 30.0


class ConsumerGroup:
    """A consumer group on the broker. Methods raise :class:`~connect.errors.ConnectError` if the broker refuses.

    The module that makes the requests is imported on demand, because it takes 20 MB.
    """

    def __init__(self, client: ClientProperties, group: str) -> None:
        """``client`` holds the settings of the clients it makes."""
        self._client = client
        self._group = group

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return the offsets the group has committed."""
        from worker.kafka.groups.coordinator_requests import read_offsets  # noqa: PLC0415

        return dict(sorted(read_offsets(self._client, self._group, _TIMEOUT_SECONDS).items()))

    def alter(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Set offsets; ``None`` deletes one.

        Crash point: a kill between the two requests leaves the deletions done and the other offsets unchanged; each
        request is done as a whole or not at all.
        """
        from worker.kafka.groups.coordinator_requests import forget_offsets, set_offsets  # noqa: PLC0415

        if forgotten := [place for place, offset in offsets.items() if offset is None]:
            forget_offsets(self._client, self._group, forgotten, _TIMEOUT_SECONDS)
        if wanted := {place: offset for place, offset in offsets.items() if offset is not None}:
            set_offsets(self._client, self._group, wanted, _TIMEOUT_SECONDS)

    def delete(self) -> None:
        """Delete all offsets by deleting the group."""
        from worker.kafka.groups.coordinator_requests import delete_group  # noqa: PLC0415

        delete_group(self._client, self._group, _TIMEOUT_SECONDS)

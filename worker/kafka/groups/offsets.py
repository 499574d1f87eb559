"""The offsets of a consumer group: read, altered and reset, while the group has no members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.kafka.settings.client import ClientProperties

__all__ = ["ConsumerGroup"]

_TIMEOUT: Final = 30.0


class ConsumerGroup:
    """One group on the broker. Every method raises :class:`~connect.errors.ConnectError` when the broker refuses.

    What makes the requests is imported when it is needed: it takes 20 MB.
    """

    def __init__(self, client: ClientProperties, group: str) -> None:
        """``client`` is what clients of it are made from."""
        self._client = client
        self._group = group

    def offsets(self) -> dict[tuple[str, int], int]:
        """The offsets the group has committed."""
        from worker.kafka.groups.coordinator_requests import read_offsets  # noqa: PLC0415

        return dict(sorted(read_offsets(self._client, self._group, _TIMEOUT).items()))

    def alter(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Set offsets; ``None`` forgets one.

        Crash point: a kill between the two requests leaves those forgotten that were to be, and the others as they
        were; each of the two is done as a whole or not at all.
        """
        from worker.kafka.groups.coordinator_requests import forget_offsets, set_offsets  # noqa: PLC0415

        if forgotten := [place for place, offset in offsets.items() if offset is None]:
            forget_offsets(self._client, self._group, forgotten, _TIMEOUT)
        if wanted := {place: offset for place, offset in offsets.items() if offset is not None}:
            set_offsets(self._client, self._group, wanted, _TIMEOUT)

    def delete(self) -> None:
        """Forget every offset, by deleting the group."""
        from worker.kafka.groups.coordinator_requests import delete_group  # noqa: PLC0415

        delete_group(self._client, self._group, _TIMEOUT)

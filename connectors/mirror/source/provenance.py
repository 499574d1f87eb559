"""Where records have been, by a header that each mirror adds: so that none goes back to a cluster that it came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

__all__ = ["Provenance"]

Pairs: TypeAlias = Sequence[tuple[str, Any]]
"""The headers of a record as the client has them."""


class Provenance:
    """The header ``name`` of one flow: a record has one for each cluster that it came from, with its alias."""

    def __init__(self, name: str, source_alias: str, target_alias: str) -> None:
        self._own = (name, source_alias.encode())
        self._back = (name, target_alias.encode())

    def comes_from_target(self, headers: Pairs | None) -> bool:
        """Whether a record with these headers has been at the target."""
        return headers is not None and self._back in headers

    def added(self, headers: Pairs | None) -> list[tuple[str, Any]]:
        """The headers of the copy of a record."""
        return [*(headers or ()), self._own]

"""A reporter of bad records whose reports do not become durable for a while."""

from __future__ import annotations

from typing import Any

from connect.errors import RetriableError
from connect.testing import ErrantRecords

__all__ = ["LateReports"]


class LateReports(ErrantRecords[Any]):
    """Tolerates bad records. Its reports are not durable until ``are_durable`` is set."""

    def __init__(self) -> None:
        super().__init__(tolerate=True)
        self.are_durable = False

    def flush(self) -> None:
        if not self.are_durable:
            raise RetriableError("The reports are not durable yet.", retry_after=0.0)

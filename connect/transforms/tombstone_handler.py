"""TombstoneHandler: drops or fails records without a value."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar

from connect.config import MEDIUM, Config, option
from connect.data import Batch, Record
from connect.errors import DataError
from connect.transformation import Transformation

__all__ = ["TombstoneHandler", "TombstoneHandlerConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_log: Final = logging.getLogger(__name__)
_LEVELS: Final = {
    "warn": logging.WARNING,
    "drop_warn": logging.WARNING,
    "ignore": logging.DEBUG,
    "drop_silent": logging.DEBUG,
}


class TombstoneHandlerConfig(Config):
    """The handling of tombstones."""

    behavior: Literal["warn", "ignore", "fail", "drop_warn", "drop_silent"] = option(
        default="warn",
        importance=MEDIUM,
        ignore_case=True,
        doc="Tombstones are dropped and logged as a warning (warn or drop_warn), dropped and logged for debugging "
        "only (ignore or drop_silent), or they fail.",
    )


class TombstoneHandler(Transformation[TombstoneHandlerConfig]):
    """Drops or fails the records whose value is null."""

    def apply(self, record: R) -> R | None:
        """Return the record, or ``None`` if it is a tombstone."""
        if record.value is not None:
            return record
        self._report(1, record.topic)
        return None

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch without its tombstones."""
        kept = [index for index, value in enumerate(batch.value.values()) if value is not None]
        if len(kept) == len(batch):
            return [batch]
        self._report(len(batch) - len(kept), batch.topic)
        return [batch.take(kept)] if kept else []

    def _report(self, count: int, topic: str) -> None:
        level = _LEVELS.get(self.config.behavior)
        if level is None:
            raise DataError(f"Tombstone record of topic {topic} encountered and behavior is set to fail")
        _log.log(level, "Dropped %d tombstone(s) of topic %s", count, topic)

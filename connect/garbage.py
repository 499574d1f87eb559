"""The garbage collector in processes that move records: tuned to find cycles without scanning every record."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["COLLECT_AFTER", "collect_seldom"]

COLLECT_AFTER: Final = (50_000, 10, 10)
"""Thresholds for :func:`gc.set_threshold`. Python's default of 700 objects is less than a batch holds, so each batch
would be scanned many times while it is made."""


def collect_seldom() -> None:
    """Exempt the objects that exist now from collection, and collect those that come later less often.

    Call it after the imports, before the first record. Exempt objects are no longer written to by the collector, so a
    forked process shares them with its parent: some 7 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)

"""Settings of Python's garbage collector that keep it from rescanning long-lived objects such as modules and "
"records."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["COLLECT_AFTER", "collect_seldom", "importing"]

COLLECT_AFTER: Final = (50_000, 10, 10)
"""Thresholds for :func:`gc.set_threshold`. Python's default of 700 objects is smaller than a batch, so that each batch
would be scanned many times while it is built."""


def collect_seldom() -> None:
    """Exempt all existing objects from collection, and collect later ones less often.

    Call it after the imports and before the first record. The collector no longer writes to exempt objects, so a forked
    process shares them with its parent: about 7 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


@contextmanager
def importing() -> Iterator[None]:
    """Disable collection while modules are imported, and exempt them from it afterwards.

    A worker of a thousand modules starts faster and exits in half the time; otherwise the interpreter would scan all of
    them repeatedly on exit.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

"""The histograms of tasks: their names and bucket bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["BOUNDS", "COMMIT", "LATENCY", "POLL", "PUT"]

POLL: Final = "poll-batch"
PUT: Final = "put-batch"
COMMIT: Final = "offset-commit"
LATENCY: Final = "record-latency"

_OF_CALLS: Final = (0.001, 0.01, 0.1, 1.0, 10.0)
_OF_LATENCY: Final = (0.1, 1.0, 10.0, 60.0, 600.0)

BOUNDS: Final[Mapping[str, tuple[float, ...]]] = {
    POLL: _OF_CALLS,
    PUT: _OF_CALLS,
    COMMIT: _OF_CALLS,
    LATENCY: _OF_LATENCY,
}
"""The upper bounds of the buckets in seconds, without the last bucket.

Few, because each is one more series per task.
"""

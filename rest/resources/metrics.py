"""``/metrics``: the metrics of the worker in the format of Prometheus."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from flask import Blueprint, Response, request

from worker.errors import BadRequestError, UnavailableError
from worker.metrics.catalogue import Dialect
from worker.metrics.families import families
from worker.metrics.processes import use_of
from worker.metrics.snapshot import Snapshot
from worker.metrics.text import OPENMETRICS, PLAIN, accepts_openmetrics, exposition

__all__ = ["METRICS", "metrics"]

METRICS: Final = "metrics.scrape"
"""The endpoint, which answers in other types than JSON."""

_DIALECTS: Final = {dialect.value: dialect for dialect in Dialect}


def metrics(snapshot: Callable[[], Snapshot | None], version: str) -> Blueprint:
    """Create the resource; ``snapshot`` returns the latest one without waiting, ``version`` is Sluice's."""
    blueprint = Blueprint("metrics", __name__)

    @blueprint.get("/metrics")
    def scrape() -> Response:
        dialect = _DIALECTS.get(asked := request.args.get("format", Dialect.STRIMZI.value))
        if dialect is None:
            raise BadRequestError(f"Unknown format={asked!r}: use one of {', '.join(_DIALECTS)}.")
        if (seen := snapshot()) is None:
            raise UnavailableError("The worker has only just started and has no metrics yet. Try again in a moment.")
        openmetrics = accepts_openmetrics(request.headers.get("Accept", ""))
        found = families(seen, dialect, time.time(), use_of, os.getpid(), version)
        return Response(exposition(found, openmetrics=openmetrics), content_type=OPENMETRICS if openmetrics else PLAIN)

    return blueprint

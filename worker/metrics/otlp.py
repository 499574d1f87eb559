"""Pushes metrics to an OpenTelemetry collector: OTLP over HTTP, with the names of a scrape."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from connect.errors import ConnectError
from connect.internals.extras import missing_extra
from worker.metrics.catalogue import Dialect
from worker.metrics.families import families
from worker.metrics.processes import use_of
from worker.metrics.snapshot import Snapshot
from worker.metrics.text import Family, Kind, Labels

__all__ = ["OtlpPush", "OtlpSettings", "metrics_data", "parse_headers"]

logger = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class OtlpSettings:
    """Where to push, how often in seconds, and with which headers."""

    endpoint: str
    interval: float
    headers: Mapping[str, str] = field(repr=False)


def parse_headers(text: str) -> dict[str, str]:
    """Parse a list of ``NAME=VALUE`` headers. Raises ``ValueError``, which never shows a value."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and mark for name, mark, _ in pairs):
        raise ValueError("Write it as NAME=VALUE,NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


class OtlpPush:
    """Pushes from its own thread. A collector that does not answer costs only a line in the log.

    ``snapshot`` returns the worker's last snapshot at once. Raises :class:`~connect.errors.ConnectError` if the
    packages for it are not installed.
    """

    def __init__(self, settings: OtlpSettings, snapshot: Callable[[], Snapshot | None], version: str) -> None:
        if (missing := missing_extra("otlp", "opentelemetry")) is not None:
            raise ConnectError(f"metrics.otlp.endpoint is {settings.endpoint}. {missing}")
        # Imported here, so that only workers that push load it.
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

        self._exporter = OTLPMetricExporter(settings.endpoint, headers=dict(settings.headers), timeout=_TIMEOUT_SECONDS)
        self._settings = settings
        self._snapshot = snapshot
        self._version = version
        self._began = time.time_ns()
        self._failed = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="otlp", daemon=True)

    def start(self) -> None:
        """Start pushing."""
        # The library would log each failure with its trace; one line when it begins to fail is enough.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._thread.start()

    def close(self) -> None:
        """Stop pushing. A push in progress is abandoned with its thread."""
        self._stopped.set()
        self._exporter.shutdown()

    def _loop(self) -> None:
        while not self._stopped.wait(self._settings.interval):
            seen = self._snapshot()
            if seen is not None:
                self._push(seen)

    def _push(self, seen: Snapshot) -> None:
        found = families(seen, Dialect.STRIMZI, time.time(), use_of, os.getpid(), self._version)
        try:
            outcome = self._exporter.export(metrics_data(found, seen.worker_id, self._version, self._began))
            is_failed = outcome.name != "SUCCESS"
        except Exception:
            logger.debug("A push of metrics failed", exc_info=True)
            is_failed = True
        if is_failed and not self._failed and not self._stopped.is_set():
            logger.warning("Metrics could not be pushed to %s; trying again", self._settings.endpoint)
        elif self._failed and not is_failed:
            logger.info("Metrics are pushed to %s again", self._settings.endpoint)
        self._failed = is_failed


def metrics_data(found: Iterable[Family], worker_id: str, version: str, began: int) -> Any:
    """Return the families as OpenTelemetry's ``MetricsData``; ``began`` is when counting began, in ns since 1970."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    resource = Resource(
        {"service.name": "sluice", "service.version": version, "service.instance.id": worker_id or "worker"}
    )
    now = time.time_ns()
    metrics = [_metric(family, began, now) for family in found if family.series or family.histograms]
    scope = ScopeMetrics(InstrumentationScope("sluice", version), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, began: int, now: int) -> Any:
    from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        Sum,
    )

    data: Any
    cumulative = AggregationTemporality.CUMULATIVE
    if family.kind is Kind.HISTOGRAM:
        points = [
            HistogramDataPoint(
                attributes=_attributes(labels),
                start_time_unix_nano=began,
                time_unix_nano=now,
                count=int(sum(kept.counts)),
                sum=kept.total,
                bucket_counts=[int(count) for count in kept.counts],
                explicit_bounds=list(kept.bounds),
                min=0.0,
                max=0.0,
            )
            for labels, kept in family.histograms
        ]
        data = Histogram(points, cumulative)
    else:
        numbers = [NumberDataPoint(_attributes(labels), began, now, float(value)) for labels, value in family.series]
        data = Sum(numbers, cumulative, is_monotonic=True) if family.kind is Kind.COUNTER else Gauge(numbers)
    return Metric(family.name, family.help, "", data)


def _attributes(labels: Labels) -> dict[str, str]:
    return dict(labels)

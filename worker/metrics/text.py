"""Families of metrics, and their text formats for Prometheus and OpenMetrics.

For the 20,000 series of 300 connectors, prometheus-client takes 80 to 180 ms of CPU, during which it holds the
interpreter lock; this module takes a tenth of that (``docs/adr/0017-metrics-written-by-hand.md``). Tests read the
output with prometheus-client's parsers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

__all__ = ["OPENMETRICS", "PLAIN", "Family", "Histogram", "Kind", "Labels", "accepts_openmetrics", "exposition"]

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The labels of a series, in order."""

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TOTAL: Final = "_total"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Kind(Enum):
    """The kinds of metrics. A gauge's name may end in ``_total``."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Histogram:
    """The sum of all values, the upper bounds of the buckets, and the number of values in each and above the last."""

    total: float
    bounds: tuple[float, ...]
    counts: Sequence[float]


@dataclass(frozen=True, slots=True)
class Family:
    """The series of one name. The name of a counter ends in ``_total``."""

    name: str
    kind: Kind
    help: str
    series: list[tuple[Labels, float]] = field(default_factory=list)
    histograms: list[tuple[Labels, Histogram]] = field(default_factory=list)


def accepts_openmetrics(accept: str) -> bool:
    """Return whether a scraper's ``Accept`` names OpenMetrics."""
    return "application/openmetrics-text" in accept.lower()


def exposition(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """Return the text to scrape. Families without series and values that are not numbers are left out."""
    lines: list[str] = []
    shown: dict[Labels, str] = {}
    for family in families:
        if not family.series and not family.histograms:
            continue
        name = family.name
        declared = name.removesuffix(_TOTAL) if openmetrics and family.kind is Kind.COUNTER else name
        lines.append(f"# HELP {declared} {family.help}\n# TYPE {declared} {family.kind.value}\n")
        for labels, value in family.series:
            if (text := shown.get(labels)) is None:
                text = shown[labels] = _labels(labels)
            if value == value:  # noqa: PLR0124 - it is not where it is no number
                lines.append(f"{name}{text} {_number(value)}\n")
        for labels, histogram in family.histograms:
            lines.extend(_histogram_lines(name, labels, histogram))
    if openmetrics:
        lines.append("# EOF\n")
    return "".join(lines).encode(errors="replace")


def _histogram_lines(name: str, labels: Labels, histogram: Histogram) -> Iterable[str]:
    count = 0.0
    for bound, more in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        count += more
        yield f"{name}_bucket{_labels((*labels, ('le', _number(bound))))} {_number(count)}\n"
    text = _labels(labels)
    yield f"{name}_sum{text} {_number(histogram.total)}\n{name}_count{text} {_number(count)}\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels) + "}"


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return repr(float(value))

"""Charts of what a worker remembers of the last minutes of connectors."""

from __future__ import annotations

from dataclasses import dataclass

from rest.ui.sparkline import Sparkline, sparkline
from worker.metrics.history import Part, Series

__all__ = ["Charts", "charts_of"]


@dataclass(frozen=True, slots=True)
class Charts:
    """The lines of one connector and the newest values; ``None`` where there is too little to draw, or to know."""

    rate: Sparkline | None
    lag: Sparkline | None
    newest_rate: float | None
    newest_lag: float | None
    unit: str | None


def charts_of(part: Part, width: int = 90, height: int = 18) -> dict[str, Charts]:
    """The charts of each connector of which something is known."""
    return {name: _charts(series, width, height) for name, series in part.connectors.items()}


def _charts(series: Series, width: int, height: int) -> Charts:
    return Charts(
        sparkline(series.rate, "Records a second", width=width, height=height),
        sparkline(series.lag, f"Lag in {series.unit or 'records'}", width=width, height=height),
        series.rate[-1] if series.rate else None,
        series.lag[-1] if series.lag else None,
        series.unit,
    )

"""What becomes of a load with bad records: it fails, or goes on without them and tells of it (invariant I4)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from connect.errors import DataError
from connectors.spark.report import Reports

__all__ = ["Tolerance"]

logger = logging.getLogger(__name__)

_TOLD: Final = 10


class Tolerance:
    """``errors.tolerance`` for whole loads. A dead letter queue would be filled where :meth:`tell` is called."""

    def __init__(self, props: Mapping[str, str]) -> None:
        self._tolerant = props.get("errors.tolerance", "none").lower() == "all"

    def check(self, reports: Reports) -> None:
        """Raise :class:`~connect.errors.DataError` for the first bad record, unless bad ones are left out."""
        rejections = reports.rejections()
        if rejections and not self._tolerant:
            raise DataError(
                f"Bad record in {rejections[0]}. Correct it at its source, or set errors.tolerance=all to leave "
                "such records out."
            )

    def tell(self, reports: Reports) -> None:
        """Write the bad records that are left out to the log."""
        count = sum(report.rejected for report in reports)
        if not count:
            return
        read = sum(report.read for report in reports)
        first = "; ".join(map(str, reports.rejections()[:_TOLD]))
        logger.warning("%d of %d records are left out (errors.tolerance=all), the first: %s", count, read, first)

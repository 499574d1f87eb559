"""When a mirrored topic is deleted because its source is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

__all__ = ["Deletions"]


class Deletions:
    """Tells which topics have been missing at the source for ``grace`` seconds, as seen in every look. For one thread.

    A source that does not answer, or has no topic at all, has not deleted anything: from then on the time begins anew.
    Times are in seconds, of any clock.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._missing: dict[str, float] = {}

    @property
    def missing(self) -> Mapping[str, float]:
        """Since when topics are missing."""
        return self._missing

    def recall(self, missing: Mapping[str, float]) -> None:
        """Go on from what was known before a restart."""
        self._missing = {**missing, **self._missing}

    def source_is_away(self) -> None:
        """Note that the source has not answered."""
        self._missing.clear()

    def due(self, there: Collection[str], mirrored: Collection[str], now: float) -> list[str]:
        """Those of the ``mirrored`` topics that are gone for long enough; ``there`` is all that the source has."""
        if not there:
            self.source_is_away()
            return []
        self._missing = {topic: self._missing.get(topic, now) for topic in mirrored if topic not in there}
        return sorted(topic for topic, since in self._missing.items() if now - since >= self._grace)

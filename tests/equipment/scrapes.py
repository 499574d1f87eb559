"""Scrapes, parsed by prometheus-client."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

__all__ = ["Scrape"]


class Scrape:
    """The series of a scrape, by name and labels. Raises ``ValueError`` if the text has the wrong format."""

    def __init__(self, text: str, *, openmetrics: bool = False) -> None:
        self.families = list((openmetrics_families if openmetrics else plain_families)(text))
        self.series = [
            (sample.name, dict(sample.labels), sample.value) for family in self.families for sample in family.samples
        ]

    def named(self, name: str, /, **labels: str) -> list[float]:
        """The values of the series with this name and these labels."""
        return [value for _, value in self._found(name, labels)]

    def labels(self, name: str, /, **labels: str) -> list[dict[str, str]]:
        """The labels of these series."""
        return [found for found, _ in self._found(name, labels)]

    def answers(self, selector: str) -> bool:
        """Whether there is a series for ``name{label,label=value}``: with these labels, and values where given."""
        name, _, inner = selector.rstrip("}").partition("{")
        wanted = dict(part.partition("=")[::2] for part in inner.split(",") if part)
        return any(
            wanted.keys() <= found.keys() and all(not value or found[key] == value for key, value in wanted.items())
            for found in self.labels(name)
        )

    def _found(self, name: str, labels: dict[str, str]) -> Iterator[tuple[dict[str, str], float]]:
        for each, found, value in self.series:
            if each == name and labels.items() <= found.items():
                yield found, value

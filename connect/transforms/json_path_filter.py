"""JsonPathFilter: keeps or drops records by a JSON path into the key or value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connect.data import Batch, Record
from connect.errors import ConfigError
from connect.transforms.condition_filter import ConditionFilter, ConditionFilterConfig, MissingFieldError
from connect.transforms.json_path import JsonPath
from connect.transforms.key_or_value import KeyOrValueTransformation

__all__ = ["JsonPathFilter", "JsonPathFilterConfig"]


class JsonPathFilterConfig(ConditionFilterConfig):
    """The condition is a JSON path, and met where it leads to something."""

    def check(self) -> list[ConfigError]:
        """Refuse what is not a JSON path."""
        JsonPath(self.filter_condition, "filter.condition")
        return []


class JsonPathFilter(ConditionFilter[JsonPathFilterConfig], KeyOrValueTransformation[JsonPathFilterConfig]):
    """Keeps or drops the records in whose key or value a JSON path leads to something."""

    def __init__(self, config: JsonPathFilterConfig) -> None:
        super().__init__(config)
        self._path = JsonPath(config.filter_condition, "filter.condition")

    def subject(self, record: Record) -> Any:
        """The key or value."""
        return self.side.read(record)[1]

    def subjects(self, batch: Batch[Any]) -> Iterable[Any]:
        """The keys or values."""
        return self.side.column(batch).values()

    def meets(self, subject: Any) -> bool:
        """Whether the path leads to something. Within a filter, a missing field meets no condition."""
        if any(found is not None for found in self._path.select(subject)):
            return True
        if self._path.reaches(subject):
            return False
        raise MissingFieldError(f"{self.side.name} has nothing, or null, at {self._path.text}")

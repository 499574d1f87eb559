"""The names of tables: ``table.name.format`` and the namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from connectors.spark.iceberg.catalog import TableName

if TYPE_CHECKING:
    from connectors.spark.sink.config import SparkSinkConfig

__all__ = ["TableNames"]

_TOPIC: Final = "${topic}"


@dataclass(frozen=True, slots=True)
class TableNames:
    """Names the tables of a connector; ``known`` are all possible ones, if known beforehand."""

    namespace: tuple[str, ...]
    template: str
    known: Sequence[TableName] | None = None

    @classmethod
    def of(cls, config: SparkSinkConfig) -> TableNames:
        """Return the names for a configuration."""
        *namespace, template = (config.iceberg_tables or (config.table_name_format,))[0].split(".")
        if not namespace:
            namespace = [part for part in config.topics_dir.split("/") if part]
        naming = cls(tuple(namespace), template)
        topics = [topic.strip() for topic in (config.originals.get("topics") or "").split(",") if topic.strip()]
        if _TOPIC not in template:
            return cls(naming.namespace, template, [TableName(naming.namespace, template)])
        if topics and not config.originals.get("transforms"):
            return cls(naming.namespace, template, [naming.table(topic) for topic in topics])
        return naming

    def table(self, topic: str) -> TableName:
        """Return the table of a topic, possibly under the name a transformation has given it."""
        return TableName(self.namespace, self.template.replace(_TOPIC, topic))

    def parsed(self, text: str) -> TableName:
        """Return the table whose full name is ``text``."""
        prefix = "".join(f"{part}." for part in self.namespace)
        return TableName(self.namespace, text.removeprefix(prefix))

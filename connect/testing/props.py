"""The configurations of a connector and of its tasks, as the runtime makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.connector import Connector
from connect.errors import ConnectError
from connect.source import SourceConnector

__all__ = ["connector_props", "split_props", "task_props"]


def connector_props(
    connector_class: type[Connector[Any]], props: Mapping[str, str], max_tasks: int = 1
) -> dict[str, str]:
    """Return ``props`` together with the keys that every connector configuration has."""
    name = f"{connector_class.__module__}.{connector_class.__qualname__}"
    return {"name": "test", "connector.class": name, "tasks.max": str(max_tasks), **props}


def task_props(connector: Connector[Any], max_tasks: int) -> list[dict[str, str]]:
    """Return a connector's task configs as its tasks receive them; raise ``ConnectError`` if they are invalid.

    Keys whose value is ``None`` are left out.
    """
    return _checked(connector, connector.task_configs(max_tasks), max_tasks, "task_configs", "max_tasks")


def split_props(connector: SourceConnector[Any], max_splits: int) -> list[dict[str, str]] | None:
    """Return the splits of a source, checked like task configs, or ``None`` if it cannot be divided."""
    splits = connector.splits(max_splits)
    return None if splits is None else _checked(connector, splits, max_splits, "splits", "max_splits")


def _checked(
    connector: Connector[Any], configs: Sequence[Mapping[str, str | None]], most: int, method: str, limit: str
) -> list[dict[str, str]]:
    if len(configs) > most:
        raise ConnectError(
            f"{type(connector).__name__}  made {len(configs)} task configs, but at most {most} are allowed: "
            f"{method} must respect {limit}."
        )
    for config in configs:
        wrong = [key for key, value in config.items() if not isinstance(value, str | None)]
        if wrong:
            raise ConnectError(
                f"A task config of {type(connector).__name__} has a value that is not a string, under the key "
                f"{wrong[0]!r}."
            )
    return [{key: value for key, value in config.items() if value is not None} for config in configs]

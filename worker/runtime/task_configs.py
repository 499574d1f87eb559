"""The check of the task configurations that a connector returns, before they leave its process.

What is no text would be refused by the leader again and again, or be written and read by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from connect.errors import ConnectError

__all__ = ["TaskConfigs", "checked_task_configs"]

TaskConfigs: TypeAlias = Sequence[Mapping[str, str | None]]


def checked_task_configs(connector: str, given: object) -> TaskConfigs:
    """The result of a connector's ``task_configs``; a :class:`~connect.errors.ConnectError` names a mistake in it.

    Values are not shown: what a plugin confuses may be a password (invariant I8).
    """
    for fault in _faults(given):
        raise ConnectError(
            f"task_configs of connector {connector} has to return a list with a mapping of text to text for each task, "
            f"but {fault}."
        )
    configs: TaskConfigs = given  # type: ignore[assignment]
    return configs


def _faults(given: object) -> Iterator[str]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray):
        yield f"returned {_kind(given)}"
        return
    for number, config in enumerate(given):
        where = f"number {number} of what it returned"
        if not isinstance(config, Mapping):
            yield f"{where} is {_kind(config)}"
            return
        for key, value in config.items():
            if fault := _fault_of_text(key):
                yield f"a key in {where} {fault}"
            elif value is not None and (fault := _fault_of_text(value)):
                yield f"the value of {key} in {where} {fault}"


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _fault_of_text(value: object) -> str:
    if not isinstance(value, str):
        return f"is {_kind(value)}"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "has half of a character (a lone surrogate)"
    return ""

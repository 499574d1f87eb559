"""Decides what to change so that a cluster's connectors match the files. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from connect.config import HIDDEN

__all__ = ["STATES", "Action", "Change", "Desired", "Existing", "Planned", "plan", "plan_text"]

STATES: Final = ("RUNNING", "PAUSED", "STOPPED")
"""The states that a file may request."""

_SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|jaas|api.?key|private.?key|\.pem$|keystore.key$", re.IGNORECASE
)
_REFERENCE: Final = re.compile(r"\$\{[^{}]*\}")
_HALTED: Final = ("PAUSED", "STOPPED")


class Action(StrEnum):
    """What to do with a connector."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Desired:
    """A connector as a file describes it; without a ``state`` it keeps its current one."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    file: Path
    state: str | None = None
    initial_state: str | None = None


@dataclass(frozen=True, slots=True)
class Existing:
    """A connector of the cluster, with its current state."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A key whose value changes; ``None`` if absent."""

    key: str
    before: str | None = field(repr=False)
    after: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for one connector: its configuration, its state, or neither."""

    name: str
    action: Action
    changes: tuple[Change, ...] = ()
    state_before: str | None = None
    state_after: str | None = None
    desired: Desired | None = field(default=None, repr=False)

    @property
    def changes_something(self) -> bool:
        """Whether there is anything to do."""
        return self.action is not Action.NONE or self.state_after is not None

    def document(self, secret_keys: Collection[str]) -> dict[str, Any]:
        """Return the plan as a JSON object, without secrets."""
        return {
            "name": self.name,
            "file": None if self.desired is None else str(self.desired.file),
            "action": self.action.value,
            "state": None if self.state_after is None else {"before": self.state_before, "after": self.state_after},
            "changes": [
                {"key": change.key, "before": before, "after": after}
                for change, before, after in _without_secrets(self.changes, secret_keys)
            ],
        }


def plan(desired: Iterable[Desired], existing: Mapping[str, Existing], *, prune: bool) -> list[Planned]:
    """Return the changes, in order; with ``prune``, connectors that no file describes are deleted last."""
    wanted = list(desired)
    planned = [_planned(item, existing.get(item.name)) for item in wanted]
    if prune:
        described = {item.name for item in wanted}
        planned += [Planned(name, Action.DELETE) for name in sorted(existing.keys() - described)]
    return planned


def _planned(desired: Desired, existing: Existing | None) -> Planned:
    before = {} if existing is None else existing.config
    changes = tuple(
        Change(key, before.get(key), desired.config.get(key))
        for key in sorted(before.keys() | desired.config.keys())
        if before.get(key) != desired.config.get(key)
    )
    if existing is None:
        state = desired.initial_state if desired.initial_state in _HALTED else None
        return Planned(desired.name, Action.CREATE, changes, None, state, desired)
    action = Action.UPDATE if changes else Action.NONE
    after = desired.state if _differs(desired.state, existing.state) else None
    return Planned(desired.name, action, changes, existing.state, after, desired)


def _differs(desired: str | None, existing: str | None) -> bool:
    """Return whether to request the state. It is not for a failed connector that should run, which is not stopped."""
    if desired is None:
        return False
    return existing in _HALTED if desired == "RUNNING" else existing != desired


def plan_text(planned: Sequence[Planned], secret_keys: Mapping[str, Collection[str]]) -> str:
    """Return the plan as text; ``secret_keys`` are those of each connector."""
    lines = [line for item in planned if item.changes_something for line in _lines(item, secret_keys)]
    unchanged = [item.name for item in planned if not item.changes_something]
    if unchanged:
        lines.append(f"unchanged  {', '.join(unchanged)}")
    return "\n".join(lines) or "There is nothing to do."


def _lines(item: Planned, secret_keys: Mapping[str, Collection[str]]) -> Iterator[str]:
    if item.action is not Action.NONE:
        state = f" ({item.state_after})" if item.action is Action.CREATE and item.state_after else ""
        yield f"{item.action.value:<9}  {item.name}{state}"
        for change, before, after in _without_secrets(item.changes, secret_keys.get(item.name, ())):
            if before is None:
                yield f"  + {change.key} = {after}"
            elif after is None:
                yield f"  - {change.key} = {before}"
            else:
                yield f"  ~ {change.key} = {before} -> {after}"
    if item.state_after is not None and item.action is not Action.CREATE:
        yield f"{'state':<9}  {item.name}: {item.state_before or 'unknown'} -> {item.state_after}"


def _without_secrets(
    changes: Iterable[Change], secret_keys: Collection[str]
) -> Iterator[tuple[Change, str | None, str | None]]:
    for change in changes:
        secret = change.key in secret_keys or _SECRET.search(change.key) is not None
        yield change, _shown(change.before, secret), _shown(change.after, secret)


def _shown(value: str | None, secret: bool) -> str | None:
    """Return a value as shown: a mere reference to a config provider reveals nothing."""
    if value is None or not secret:
        return value
    return value if _REFERENCE.fullmatch(value) else HIDDEN

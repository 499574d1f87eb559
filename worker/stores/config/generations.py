"""Decides which tasks keep running when a connector has new task configs, by giving each task a generation number.

A task keeps running if its configuration is unchanged, or changes only in a share that grows by items that no other
task has had (:data:`connect.source.SHARE_KEYS`). It gets the new configuration without a restart, and its producer is
not fenced. That is safe even if an old process of the task is still running: a process that does not know the new
configuration, because its worker is slow or about to be killed, writes only data that belongs to this task.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from connect.source import SHARE_KEYS

__all__ = ["Generations", "going_on"]

Config: TypeAlias = Mapping[str, str]


class Generations:
    """Tracks the task configs of connectors, in the thread that owns the view of the configurations.

    ``fences`` says whether former producers get fenced; until they are, items given up by a former task belong to no
    task.
    """

    def __init__(self, *, fences: bool = True) -> None:
        self._fences = fences
        self._numbers = itertools.count(1)
        self._configs: dict[str, tuple[Config, Sequence[Config]]] = {}
        self._since: dict[str, tuple[int, ...]] = {}
        self._unfenced: dict[str, frozenset[int] | None] = {}
        self._given_up: dict[str, frozenset[str]] = {}

    def follow(self, name: str, applied: Config, configs: Sequence[Config]) -> tuple[int, ...]:
        """Record new task configs, made from the configuration ``applied``.

        Return a number for each task, which stays the same while the task keeps running.
        """
        made_of, before = self._configs.get(name, ({}, ()))
        given_up = self._given_up.get(name, frozenset())
        on = going_on(before, configs, given_up) if made_of == applied else frozenset()
        number, since = next(self._numbers), self._since.get(name, ())
        self._since[name] = tuple(since[task] if task in on else number for task in range(len(configs)))
        self._note_ended(name, frozenset(range(len(before))) - on, known=name in self._configs)
        if self._fences:
            had = frozenset().union(*map(_share, before))
            self._given_up[name] = (given_up | had).difference(*map(_share, configs))
        self._configs[name] = applied, configs
        return self._since[name]

    def lose(self, name: str) -> None:
        """Record that the task configs of a connector are incomplete or removed."""
        self._configs.pop(name, None)
        self._since.pop(name, None)
        self._unfenced[name] = None

    def fenced(self, name: str, count: int) -> None:
        """Record that the former producers of a connector, which now has ``count`` tasks, are fenced."""
        _, configs = self._configs.get(name, ({}, ()))
        # Otherwise the record refers to task configs that this view has not seen.
        self._unfenced[name] = frozenset() if count == len(configs) else None
        self._given_up.pop(name, None)

    def unfenced(self, name: str) -> frozenset[int] | None:
        """Return the tasks that ended or restarted since the last fencing, or ``None`` if that may be any task."""
        return self._unfenced.get(name)

    def _note_ended(self, name: str, ended: frozenset[int], *, known: bool) -> None:
        before = self._unfenced.get(name, frozenset())
        self._unfenced[name] = before | ended if known and before is not None else None


def going_on(
    before: Sequence[Config], after: Sequence[Config], given_up: frozenset[str] = frozenset()
) -> frozenset[int]:
    """Return the numbers of the tasks that keep running.

    ``given_up`` holds the items of former tasks, which may still run.
    """
    owners: dict[str, set[int]] = {}
    for task, config in enumerate(before):
        for item in _share(config):
            owners.setdefault(item, set()).add(task)
    on = set()
    for task, (was, now) in enumerate(zip(before, after, strict=False)):
        if was == now:
            on.add(task)
        elif _only_grows(was, now):
            gained = _share(now) - _share(was)
            if gained.isdisjoint(owners) and gained.isdisjoint(given_up):
                on.add(task)
    return frozenset(on)


def _only_grows(was: Config, now: Config) -> bool:
    keys = _keys(was)
    if not keys or keys != _keys(now):
        return False
    rest = [{key: value for key, value in config.items() if key not in keys} for config in (was, now)]
    return rest[0] == rest[1] and all(_items(was, key) <= _items(now, key) for key in keys)


def _keys(config: Config) -> tuple[str, ...]:
    return tuple(key.strip() for key in config.get(SHARE_KEYS, "").split(",") if key.strip())


def _share(config: Config) -> frozenset[str]:
    """Return the items that belong to this task alone: those in the first of its share keys."""
    return frozenset().union(*(_items(config, key) for key in _keys(config)[:1]))


def _items(config: Config, key: str) -> frozenset[str]:
    return frozenset(item.strip() for item in config.get(key, "").split(",") if item.strip())

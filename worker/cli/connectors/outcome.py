"""Waits until connectors have become what a command wanted of them, and says what became of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from worker.cli.status_summary import failures, notices

if TYPE_CHECKING:
    from rest.client import RestClient

__all__ = ["Outcome", "outcome_of", "starts_of", "told_outcomes", "wait_options"]

F = TypeVar("F", bound=Callable[..., object])

_POLL_SECONDS: Final = 0.5
_STEADY_SECONDS: Final = 3.0
"""How long a connector has to run before it counts: many fail a moment after their start."""
_EMPTY_SECONDS: Final = 10.0
"""How long a connector may be without tasks before it counts as one that has none to give."""
_FAILED: Final = 3
_UNSETTLED: Final = 4
_HALTED: Final = frozenset({"PAUSED", "STOPPED"})


class Outcome(StrEnum):
    """What became of a connector."""

    RUNS = "runs"
    HAS_NO_TASKS = "runs without tasks"
    HALTED = "is halted"
    FAILED = "has failed"
    PENDING = "has not settled"


@dataclass(frozen=True, slots=True)
class _Told:
    outcome: Outcome
    text: str


def wait_options(command: F) -> F:
    """Add ``--wait`` and ``--timeout``, passed to the command as ``wait`` and ``timeout``."""
    timeout = click.option(
        "--timeout", type=click.FloatRange(1), default=120.0, show_default=True, help="Seconds to wait at most."
    )
    wait = click.option(
        "--wait",
        is_flag=True,
        help="Wait until they run; exit status 3 if one fails, 4 if one does neither in time.",
    )
    return wait(timeout(command))


def starts_of(client: RestClient, name: str) -> Mapping[str, str]:
    """Return when a connector and its tasks were started last, by which a restart is seen; empty if unknown."""
    from rest.client import RestError  # noqa: PLC0415 - it imports the client

    try:
        status = client.get(client.connector_path(name, "status"))
    except RestError:
        return {}
    parts = {"": status["connector"], **{str(task["id"]): task for task in status["tasks"]}}
    return {part: item["started_at"] for part, item in parts.items() if item.get("started_at")}


def outcome_of(status: Mapping[str, Any] | None, before: Mapping[str, str], restarted: Iterable[str]) -> Outcome:
    """Return what a status says; the ``restarted`` parts must have started since ``before``."""
    if status is None:
        return Outcome.PENDING
    parts = {"": status["connector"], **{str(task["id"]): task for task in status["tasks"]}}
    for part in restarted:
        if part in before and (part not in parts or parts[part].get("started_at") == before[part]):
            return Outcome.PENDING
    states = {item["state"] for item in parts.values()}
    if "FAILED" in states:
        return Outcome.FAILED
    if parts[""]["state"] in _HALTED:
        return Outcome.HALTED
    if states != {"RUNNING"}:
        return Outcome.PENDING
    return Outcome.RUNS if len(parts) > 1 else Outcome.HAS_NO_TASKS


def told_outcomes(
    client: RestClient, names: Iterable[str], seconds: float, before: Mapping[str, Mapping[str, str]] | None = None
) -> int:
    """Wait for each connector, print what became of it, and return the exit status.

    ``before`` are the starts of those that were restarted.
    """
    deadline = time.monotonic() + seconds
    statuses = []
    for name in names:
        told = _settled(client, name, (before or {}).get(name, {}), deadline)
        failed = told.outcome in (Outcome.FAILED, Outcome.PENDING)
        click.echo(f"{name} {told.outcome.value}{told.text}", err=failed)
        statuses.append({Outcome.FAILED: _FAILED, Outcome.PENDING: _UNSETTLED}.get(told.outcome, 0))
    return _FAILED if _FAILED in statuses else max(statuses, default=0)


def _settled(client: RestClient, name: str, before: Mapping[str, str], deadline: float) -> _Told:
    since, last = time.monotonic(), Outcome.PENDING
    while True:
        status = _status(client, name)
        outcome = outcome_of(status, before, before)
        now = time.monotonic()
        if outcome is not last:
            since, last = now, outcome
        if now - since >= _patience(outcome) or (now >= deadline and outcome is not Outcome.PENDING):
            return _Told(outcome, _details(status))
        if now >= deadline:
            return _Told(Outcome.PENDING, f": {_states(status)}")
        time.sleep(_POLL_SECONDS)


def _patience(outcome: Outcome) -> float:
    """Return for how long an outcome must last to count."""
    return {
        Outcome.RUNS: _STEADY_SECONDS,
        Outcome.HAS_NO_TASKS: _EMPTY_SECONDS,
        Outcome.PENDING: float("inf"),
    }.get(outcome, 0.0)


def _status(client: RestClient, name: str) -> dict[str, Any] | None:
    from rest.client import RestError  # noqa: PLC0415 - it imports the client

    try:
        status: dict[str, Any] = client.get(client.connector_path(name, "status"))
    except RestError:
        return None
    return status


def _details(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return ""
    failed = [f.cause if f.task is None else f"task {f.task}: {f.cause}" for f in failures(status)]
    told = failed or list(notices(status))
    return f": {told[0]}" if told else "."


def _states(status: Mapping[str, Any] | None) -> str:
    if status is None:
        return "it has no status yet."
    tasks = ", ".join(f"task {task['id']} {task['state']}" for task in status["tasks"]) or "no tasks"
    return f"connector {status['connector']['state']}, {tasks}."

"""What a connector's page says first: why it failed, hangs, loses records or waits, in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rest.ui.summaries import Trouble
from worker.traces import messages_of

__all__ = ["MOST_REASONS", "Reason", "reasons_of"]

MOST_REASONS: Final = 10
"""How many different reasons a page tells in full; the rest is in its table of tasks."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a connector, or those of its tasks to which the same has happened, are not well.

    ``messages`` begin with what ended the work; what caused it follows. ``since`` is when it began for the first of
    them, and ``trace`` that one's stack trace, if there is one.
    """

    trouble: Trouble
    title: str
    messages: Sequence[str]
    since: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class _Told:
    """A reason of one unit: of a task, or of the connector, whose number is ``None``."""

    trouble: Trouble
    messages: tuple[str, ...]
    task: int | None
    since: str = ""
    trace: str = ""


def reasons_of(status: Mapping[str, Any] | None) -> list[Reason]:
    """Return what is wrong with a connector, most urgent first; tasks with the same reason share it."""
    alike: dict[tuple[Trouble, tuple[str, ...]], list[_Told]] = {}
    for told in _told(status) if status is not None else ():
        alike.setdefault((told.trouble, told.messages), []).append(told)
    found = sorted(alike.values(), key=lambda group: group[0].trouble)
    return [_reason(group) for group in found]


def _told(status: Mapping[str, Any]) -> Iterator[_Told]:
    parts = [(None, status["connector"]), *((int(task["id"]), task) for task in status["tasks"])]
    for task, part in parts:
        if part.get("trace") or part["state"] == "FAILED":
            trouble = Trouble.FAILED if part["state"] == "FAILED" else Trouble.RESTARTING
            trace = str(part.get("trace") or "")
            yield _Told(trouble, tuple(messages_of(trace)), task, str(part.get("changed_at") or ""), trace)
        if hang := part.get("hanging"):
            text = f"The plugin's call of {hang['method']} has not returned. It is at {hang['line']}."
            yield _Told(Trouble.HANGING, (text,), task, str(hang["since"]), str(hang["trace"]))
        if wait := part.get("waiting"):
            yield _Told(Trouble.WAITING, (str(wait["reason"]),), task, str(wait.get("since") or ""))
    skipped = status.get("skipped")
    if skipped is not None and skipped["reason"]:
        yield _Told(Trouble.LOSING, (str(skipped["reason"]),), None, str(skipped["since"]))


def _reason(group: Sequence[_Told]) -> Reason:
    first = min(group, key=lambda told: told.since)
    tasks = [told.task for told in group if told.task is not None]
    who, many = _named(tasks, with_connector=any(told.task is None for told in group))
    match first.trouble:
        case Trouble.HANGING:
            title = f"Where {who} {'hang' if many else 'hangs'}"
        case Trouble.WAITING:
            title = f"What {who} {'wait' if many else 'waits'} for"
        case Trouble.LOSING:
            title = "Why the last record was skipped"
        case Trouble.RESTARTING:
            title = f"Why {who} {'were' if many else 'was'} restarted"
        case _:
            title = f"Why {who} failed"
    return Reason(first.trouble, title, first.messages, first.since, first.trace)


def _named(tasks: Sequence[int], *, with_connector: bool) -> tuple[str, bool]:
    """Return what to call some units of a connector, and whether that is a plural."""
    if len(tasks) > _MOST_NAMED:
        named = f"{len(tasks):,} tasks"
    elif len(tasks) > 1:
        named = f"tasks {', '.join(map(str, tasks[:-1]))} and {tasks[-1]}"
    else:
        named = "".join(f"task {task}" for task in tasks)
    parts = [*(["the connector"] if with_connector else []), *([named] if named else [])]
    return " and ".join(parts), len(tasks) + with_connector > 1

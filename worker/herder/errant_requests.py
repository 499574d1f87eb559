"""Requests about dead letter queues, read, and the answers to them: functions of what is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from worker.errors import BadRequestError
from worker.supervisor.messages import ErrantReplayed, ErrantSelection, ErrantsListed

__all__ = [
    "FIELDS",
    "Replay",
    "listed_document",
    "read_after",
    "read_limit",
    "read_replay",
    "replayed_document",
    "task_not_stopped",
]

FIELDS: Final = frozenset({"to", "selection", "dry_run", "until"})
"""The members a request to replay may have."""

MOST_LISTED: Final = 1000
_DEFAULT_LISTED: Final = 100
_TARGETS: Final = ("topic", "task")
_ALL: Final = "all"
_EXAMPLES: Final = '"all", or an array of {"partition": 0, "offset": 5} and {"partition": 0, "from": 5, "to": 9}'


@dataclass(frozen=True, slots=True)
class Replay:
    """What is to be replayed, and where to; without a ``selection`` all that was not replayed yet."""

    to: str
    selection: ErrantSelection | None
    until: dict[str, int] | None
    dry_run: bool


def read_limit(text: str | None) -> int:
    """How many records are to be listed at most."""
    if text is None:
        return _DEFAULT_LISTED
    if not (text.isascii() and text.isdigit() and len(text) <= 10) or not 1 <= int(text) <= MOST_LISTED:
        raise BadRequestError(f"limit {text!r} is not a number from 1 to {MOST_LISTED}.")
    return int(text)


def read_after(text: str | None) -> tuple[int, int] | None:
    """The record after which the list is to go on: ``partition:offset``, as ``next`` of the list before."""
    if not text:
        return None
    partition, colon, offset = text.partition(":")
    numbers = [int(part) for part in (partition, offset) if part.isascii() and part.isdigit() and len(part) < 20]
    if not colon or len(numbers) != 2:
        raise BadRequestError(f"after {text!r} is not partition:offset, such as 0:41.")
    return numbers[0], numbers[1]


def read_replay(body: Mapping[str, Any]) -> Replay:
    """What a request asks for. Raises :class:`BadRequestError` naming the member that is wrong."""
    to = body.get("to")
    if to not in _TARGETS:
        raise BadRequestError(
            f"to {to!r} is neither topic, which has everyone who reads the topics consume the records again, nor task, "
            "which gives them to the connector alone."
        )
    dry_run = body.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise BadRequestError(f"dry_run {dry_run!r} is neither true nor false.")
    return Replay(str(to), _selection(body.get("selection")), _until(body.get("until")), dry_run)


def listed_document(listed: ErrantsListed) -> dict[str, Any]:
    """The list as it is answered; ``next`` is what to go on ``after``."""
    following = None if listed.next is None else f"{listed.next[0]}:{listed.next[1]}"
    return {"topic": listed.topic, "records": listed.records, "next": following, "replayed": listed.replayed}


def replayed_document(replay: Replay, done: ErrantReplayed) -> dict[str, Any]:
    """The outcome as it is answered; ``next`` is the request that goes on with what remains."""
    following: dict[str, Any] | None = None
    if done.more and replay.selection is None and not replay.dry_run:
        following = {"to": replay.to, "selection": _ALL, "until": done.until}
    elif done.more:
        ranges = [{"partition": number, "from": first, "to": end - 1} for number, first, end in done.rest]
        following = {"to": replay.to, "selection": ranges, "dry_run": replay.dry_run}
    return {
        "topic": done.topic,
        "to": replay.to,
        "dry_run": replay.dry_run,
        "replayed": done.delivered,
        "failed": done.failed,
        "next": following,
    }


def task_not_stopped(name: str) -> BadRequestError:
    """The refusal to give records to a task that may be running: two would write at the same time."""
    return BadRequestError(
        f"to: the task of connector {name} can be given records only while the connector is STOPPED. Stop it with PUT "
        f"/connectors/{name}/stop, or replay to the topic."
    )


def _selection(given: object) -> ErrantSelection | None:
    if given == _ALL:
        return None
    if not isinstance(given, list) or not given:
        raise BadRequestError(f"selection has to be {_EXAMPLES}.")
    return [_range(item) for item in given]


def _range(item: object) -> tuple[int, int, int]:
    members = dict(item) if isinstance(item, dict) else {}
    numbers = all(type(value) is int and 0 <= value < 2**63 for value in members.values())
    if numbers and members.keys() == {"partition", "offset"}:
        return members["partition"], members["offset"], members["offset"] + 1
    if numbers and members.keys() == {"partition", "from", "to"} and members["from"] <= members["to"]:
        return members["partition"], members["from"], members["to"] + 1
    raise BadRequestError(f"selection: {item!r} selects nothing; it has to be {_EXAMPLES}.")


def _until(given: object) -> dict[str, int] | None:
    if given is None:
        return None
    if isinstance(given, dict) and all(_is_end(key, end) for key, end in given.items()):
        return given
    raise BadRequestError("until has to be what the answer before gave: the end of each partition of the queue.")


def _is_end(partition: str, end: object) -> bool:
    return partition.isascii() and partition.isdigit() and len(partition) < 10 and type(end) is int and 0 <= end < 2**63

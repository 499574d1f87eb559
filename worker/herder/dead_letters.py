"""Requests to list dead letters and to deliver them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

from worker.errors import BadRequestError, ConflictError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import LEAD_LOST, broken_off
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.stopped_connectors import StoppedConnectors
from worker.herder.dead_letter_repairs import Place, read_document, read_repair, read_target, repaired_document
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Request, Requests, Steps, asked
from worker.messages import messages
from worker.messages.messages import (
    DeadLetterSelection,
    DeadLettersListed,
    DeadLettersReplayed,
    Report,
)
from worker.stores.config.store import ConnectorEntry, TargetState

__all__ = [
    "FIELDS",
    "MOST_LISTED",
    "DeadLetters",
    "Replay",
    "listed_document",
    "read_after",
    "read_limit",
    "read_replay",
    "replayed_document",
    "task_not_stopped",
]

Document: TypeAlias = dict[str, Any]
R = TypeVar("R", bound=Report)
Delivery: TypeAlias = messages.ReplayDeadLetters | messages.RepairDeadLetter
FIELDS: Final = frozenset({"to", "selection", "dry_run", "until"})
"""The members that a replay request may have."""

MOST_LISTED: Final = 1000
"""How many dead letters are listed at once at most."""
_DEFAULT_LISTED: Final = 100
_ALL: Final = "all"
_EXAMPLES: Final = '"all", or an array of {"partition": 0, "offset": 5} and {"partition": 0, "from": 5, "to": 9}'
# An inquiry has 90 s; a task that fails is given each record by itself.
_AT_ONCE: Final = {"topic": 500, "task": 200}


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay request: the selected dead letters and the target. Without a ``selection``, all not replayed yet."""

    to: str
    selection: DeadLetterSelection | None
    until: dict[str, int] | None
    dry_run: bool


def read_limit(text: str | None) -> int:
    """Parse the maximum number of records to list."""
    if text is None:
        return _DEFAULT_LISTED
    if not (text.isascii() and text.isdigit() and len(text) <= 10) or not 1 <= int(text) <= MOST_LISTED:
        raise BadRequestError(f"limit is {text!r}; it must be a number from 1 to {MOST_LISTED}.")
    return int(text)


def read_after(text: str | None) -> tuple[int, int] | None:
    """Parse the position to list after: ``partition:offset``, as in ``next`` of the previous list."""
    if not text:
        return None
    partition, colon, offset = text.partition(":")
    numbers = [int(part) for part in (partition, offset) if part.isascii() and part.isdigit() and len(part) < 20]
    if not colon or len(numbers) != 2:
        raise BadRequestError(f"after is {text!r}; it must be partition:offset, such as 0:41.")
    return numbers[0], numbers[1]


def read_replay(body: Mapping[str, Any]) -> Replay:
    """Parse the body of a replay request. Raises :class:`BadRequestError` naming the invalid member."""
    to, dry_run = read_target(body)
    return Replay(to, _selection(body.get("selection")), _until(body.get("until")), dry_run)


def listed_document(listed: DeadLettersListed) -> dict[str, Any]:
    """Return the response with a list of dead letters; ``next`` is the ``after`` of the next request."""
    following = None if listed.next is None else f"{listed.next[0]}:{listed.next[1]}"
    return {
        "topic": listed.topic,
        "records": listed.records,
        "next": following,
        "replayed": listed.replayed,
        "total": listed.total,
        "remaining": listed.remaining,
    }


def replayed_document(replay: Replay, done: DeadLettersReplayed) -> dict[str, Any]:
    """Return the response to a replay; ``next`` is the request that continues with the remaining records."""
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
    """Return the error for replaying into a task that may be running: two processes would write at the same time."""
    return BadRequestError(
        f"Dead letters can be replayed to the task of connector {name} only while the connector is STOPPED. Stop it "
        f"with PUT /connectors/{name}/stop, or replay to the topic."
    )


def _selection(given: object) -> DeadLetterSelection | None:
    if given == _ALL:
        return None
    if not isinstance(given, list) or not given:
        raise BadRequestError(f"selection must be {_EXAMPLES}.")
    return [_range(item) for item in given]


def _range(item: object) -> tuple[int, int, int]:
    members = dict(item) if isinstance(item, dict) else {}
    numbers = all(type(value) is int and 0 <= value < 2**63 for value in members.values())
    if numbers and members.keys() == {"partition", "offset"}:
        return members["partition"], members["offset"], members["offset"] + 1
    if numbers and members.keys() == {"partition", "from", "to"} and members["from"] <= members["to"]:
        return members["partition"], members["from"], members["to"] + 1
    raise BadRequestError(f"selection: {item!r} selects nothing; it must be {_EXAMPLES}.")


def _until(given: object) -> dict[str, int] | None:
    if given is None:
        return None
    if isinstance(given, dict) and all(_is_end(key, end) for key, end in given.items()):
        return given
    raise BadRequestError("until must be the value from the previous response: the end of each partition of the queue.")


def _is_end(partition: str, end: object) -> bool:
    return partition.isascii() and partition.isdigit() and len(partition) < 10 and type(end) is int and 0 <= end < 2**63


class DeadLetters:
    """Lists and replays the dead letters of connectors. Methods may be called from any thread."""

    def __init__(
        self,
        requests: Requests,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        leadership: Leadership,
        inquiries: Inquiries,
        stopped: StoppedConnectors,
    ) -> None:
        self._requests = requests
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._leadership = leadership
        self._inquiries = inquiries
        self._stopped = stopped
        self._replaying: dict[str, Request[Document]] = {}
        leadership.when_lost(self._end)

    @asked
    def one(self, request: Request[Document], name: str, place: Place) -> Steps[Document]:
        """Return one dead letter of a connector in the forms in which it can be edited."""
        entry = self._connectors.entry(name)
        request.enter(f"reading the dead letter queue of connector {name}")
        inquiry = messages.ReadDeadLetter(dict(entry.config), self._worker_props, *place)
        report = yield from self._inquiries.ask(inquiry, messages.DeadLetterRead)
        return read_document(name, place, report)

    @asked
    def list(self, request: Request[Document], name: str, after: tuple[int, int] | None, limit: int) -> Steps[Document]:
        """List the dead letters of a connector: at most ``limit``, after a partition and offset of its queue."""
        entry = self._connectors.entry(name)
        request.enter(f"reading the dead letter queue of connector {name}")
        inquiry = messages.ListDeadLetters(dict(entry.config), self._worker_props, after, limit)
        report = yield from self._inquiries.ask(inquiry, messages.DeadLettersListed)
        return listed_document(report)

    @asked
    def replay(self, request: Request[Document], name: str, body: Mapping[str, Any]) -> Steps[Document]:
        """Deliver dead letters of a sink again. To deliver into its task, the sink must be stopped.

        The answer lists the delivered records and those that failed again, and has the request that continues.
        """
        replay = read_replay(body)
        inquiry = messages.ReplayDeadLetters(
            {}, self._worker_props, replay.to, replay.selection, replay.until, _AT_ONCE[replay.to], replay.dry_run
        )
        stage = f"replaying records of the dead letter queue of connector {name}"
        done = yield from self._deliver(request, name, inquiry, stage, messages.DeadLettersReplayed)
        return replayed_document(replay, done)

    @asked
    def repair(self, request: Request[Document], name: str, place: Place, body: Mapping[str, Any]) -> Steps[Document]:
        """Deliver a dead letter of a sink with edited parts, under the same conditions as a replay.

        The answer lists the changes and the record's way through the chain; a record that fails there is not delivered.
        """
        repair = read_repair(place, body)
        inquiry = messages.RepairDeadLetter(
            {}, self._worker_props, repair.to, *repair.place, dict(repair.edit), repair.dry_run
        )
        stage = f"delivering a repaired record of the dead letter queue of connector {name}"
        done = yield from self._deliver(request, name, inquiry, stage, messages.DeadLetterRepaired)
        return repaired_document(name, repair, done)

    def _deliver(self, request: Request[Document], name: str, inquiry: Delivery, stage: str, kind: type[R]) -> Steps[R]:
        """Deliver records of a sink on the leader, with no other delivery; any worker may do a dry run.

        To deliver to a task, its connector is kept stopped.
        """
        entry = self._connectors.entry(name)
        if self._connectors.is_source(name):
            raise BadRequestError(
                f"Connector {name} is a source: its queue keeps what was read, not what belongs on a topic. Remove the "
                f"cause, and set its offsets back with PATCH /connectors/{name}/offsets to read the records again."
            )
        if inquiry.dry_run:
            self._check(name, inquiry.to, entry)
            request.enter(stage)
            return (yield from self._inquiries.ask(replace(inquiry, config=dict(entry.config)), kind))
        yield from self._leadership.lead(request)
        entry = self._connectors.entry(name)
        self._check(name, inquiry.to, entry)
        self._replaying[name] = request
        try:
            if inquiry.to == "task":
                entry = yield from self._stopped.hold(request, name, task_not_stopped)
            request.enter(stage)
            return (yield from self._inquiries.ask(replace(inquiry, config=dict(entry.config)), kind))
        finally:
            del self._replaying[name]

    def _check(self, name: str, to: str, entry: ConnectorEntry) -> None:
        """Refuse a delivery that cannot be made now; a dry run is refused for the same reasons."""
        if to == "task" and entry.target is not TargetState.STOPPED:
            raise task_not_stopped(name)
        if name in self._replaying:
            raise ConflictError(f"Records of connector {name} are being replayed; ask again in a moment")

    def _end(self) -> None:
        """Cancel deliveries that the client can request again from the next leader."""
        for name, request in list(self._replaying.items()):
            request.break_off(broken_off(request, name, LEAD_LOST))

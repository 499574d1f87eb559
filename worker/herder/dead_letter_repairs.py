"""Request and response bodies for editing one dead letter before it is delivered again. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.errors import NotFoundError
from worker.errors import BadRequestError
from worker.messages.messages import DeadLetterRead, DeadLetterRepaired

__all__ = [
    "REPAIR_FIELDS",
    "Place",
    "Repair",
    "read_document",
    "read_place",
    "read_repair",
    "read_target",
    "repaired_document",
]

Place: TypeAlias = tuple[int, int]
"""The partition and the offset of a record in its queue."""

REPAIR_FIELDS: Final = frozenset({"to", "key", "value", "headers", "dry_run"})
"""The members that a repair request may have."""

_TARGETS: Final = ("topic", "task")
_FORMS: Final = ("text", "base64", "hex")
_DIGITS: Final = (9, 18)


@dataclass(frozen=True, slots=True)
class Repair:
    """A request to deliver the record at ``place`` with the parts in ``edit`` replaced."""

    place: Place
    to: str
    edit: Mapping[str, Any]
    dry_run: bool


def read_place(text: str) -> Place:
    """Parse a dead letter's place, ``partition:offset``. Raises :class:`NotFoundError` if it cannot exist."""
    parts = text.split(":")
    digits = [
        part.isascii() and part.isdigit() and len(part) <= most for part, most in zip(parts, _DIGITS, strict=False)
    ]
    if len(parts) != len(_DIGITS) or not all(digits):
        raise NotFoundError(f"There is no dead letter {text!r}: give it as partition:offset, such as 0:41.")
    return int(parts[0]), int(parts[1])


def read_target(body: Mapping[str, Any]) -> tuple[str, bool]:
    """Read where the records are to be delivered, and whether this is a dry run."""
    to = body.get("to")
    if to not in _TARGETS:
        raise BadRequestError(
            f"to is {to!r}; it must be topic, after which every reader of the topics consumes the records again, or "
            "task, which gives them to this connector alone."
        )
    dry_run = body.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise BadRequestError(f"dry_run is {dry_run!r}; it must be true or false.")
    return str(to), dry_run


def read_repair(place: Place, body: Mapping[str, Any]) -> Repair:
    """Parse the body of a repair request. Raises :class:`BadRequestError` naming the invalid member."""
    to, dry_run = read_target(body)
    edit: dict[str, Any] = {
        part: _form(body[part], part, (*_FORMS, "json")) for part in ("key", "value") if part in body
    }
    if "headers" in body:
        edit["headers"] = _headers(body["headers"])
    return Repair(place, to, edit, dry_run)


def read_document(name: str, place: Place, read: DeadLetterRead) -> dict[str, Any]:
    """Return the response to a request for one dead letter."""
    if read.record is None:
        raise _absent(name, place)
    return {"topic": read.topic, **read.record}


def repaired_document(name: str, repair: Repair, done: DeadLetterRepaired) -> dict[str, Any]:
    """Return the response to a repair: the lists of a replay, the changes, and the record's way through the chain."""
    if not done.found:
        raise _absent(name, repair.place)
    place = {"partition": repair.place[0], "offset": repair.place[1]}
    return {
        "topic": done.topic,
        "to": repair.to,
        "dry_run": repair.dry_run,
        "replayed": [] if done.error is not None else [{**place, "topic": done.destination}],
        "failed": [] if done.error is None else [{**place, "error": done.error}],
        "changes": done.changes,
        "record": done.trace,
    }


def _absent(name: str, place: Place) -> NotFoundError:
    return NotFoundError(f"There is no record {place[0]}:{place[1]} in the dead letter queue of connector {name}.")


def _form(given: object, what: str, forms: tuple[str, ...]) -> dict[str, str] | None:
    if given is None:
        return None
    if isinstance(given, dict) and len(given) == 1:
        ((kind, text),) = given.items()
        if kind in forms and isinstance(text, str):
            return {kind: text}
    raise BadRequestError(
        f"{what} must be null, or an object with one of the members {', '.join(forms)}, which is a string."
    )


def _headers(given: object) -> list[dict[str, Any]]:
    if not isinstance(given, list):
        raise BadRequestError('headers must be an array of {"key": "trace", "value": {"text": "abc"}}.')
    return [_header(item) for item in given]


def _header(given: object) -> dict[str, Any]:
    if not isinstance(given, dict) or given.keys() != {"key", "value"} or not isinstance(given["key"], str):
        raise BadRequestError('headers: each must be an object such as {"key": "trace", "value": {"text": "abc"}}.')
    return {"key": given["key"], "value": _form(given["value"], f"header {given['key']}", _FORMS)}

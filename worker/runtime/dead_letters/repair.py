"""Edits of a dead letter before it is delivered again, and the list of the changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from connect.config import HIDDEN
from connect.internals.chain.raw_records import RawHeaders, RawRecord
from worker.errors import BadRequestError
from worker.runtime.dead_letters.dead_letter import REPLAYED
from worker.runtime.dead_letters.forms import Form, PartForms, bytes_of
from worker.runtime.dead_letters.queue import PREFIX
from worker.security.redaction import sounds_secret

__all__ = ["Edit", "changes_of"]

_MOST_CHANGES: Final = 100
"""The maximum number of changes listed for one record."""
_MOST_CHARACTERS: Final = 500
_DEEPEST: Final = 40
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Edit:
    """The edited parts of a record; ``headers`` are all its own headers, if one of them is edited."""

    parts: Mapping[str, Form | None]
    headers: Sequence[tuple[str, Form | None]] | None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Edit:
        """Parse the members ``key``, ``value`` and ``headers`` of a request, those that it has."""
        headers = given.get("headers")
        return cls(
            {part: given[part] for part in ("key", "value") if part in given},
            None if headers is None else [(header["key"], header["value"]) for header in headers],
        )

    def applied(self, original: RawRecord, forms: Mapping[str, PartForms]) -> RawRecord:
        """Return the record to deliver. Raises a :class:`BadRequestError` that names an invalid part."""
        now = {"key": original.key, "value": original.value}
        then = {
            part: None if form is None else forms[part].encoded(original.topic, now[part], form)
            for part, form in self.parts.items()
        }
        headers = original.headers if self.headers is None else self._headers(original, self.headers)
        return replace(
            original, key=then.get("key", now["key"]), value=then.get("value", now["value"]), headers=headers
        )

    def _headers(self, original: RawRecord, wanted: Sequence[tuple[str, Form | None]]) -> RawHeaders:
        """Return the requested headers, and the mark of the replay."""
        for name, _ in wanted:
            if name.startswith(PREFIX) or name == REPLAYED:
                raise BadRequestError(f"headers: {name} is reserved for the worker; leave it out.")
        own = [(name, None if form is None else bytes_of(form, f"header {name}")) for name, form in wanted]
        return [*own, *(header for header in original.headers if header[0] == REPLAYED)]


def changes_of(before: RawRecord, after: RawRecord, hide: Callable[[str], str]) -> list[dict[str, str | None]]:
    """Return the changes of a record: each path, such as ``value.amount``, with its text before and after.

    Long texts are cut. Secrets are hidden by ``hide``, and where the name in a path suggests one.
    """
    found = [
        *_changes("key", before.key, after.key),
        *_changes("value", before.value, after.value),
        *_header_changes(before.headers, after.headers),
    ]
    shown: list[dict[str, str | None]] = [_shown_change(*change, hide) for change in found[:_MOST_CHANGES]]
    return [*shown, {"key": "and more", "before": None, "after": None}] if len(found) > _MOST_CHANGES else shown


def _changes(part: str, before: bytes | None, after: bytes | None) -> list[tuple[str, Any, Any]]:
    if before == after:
        return []
    trees = _tree(before), _tree(after)
    places = list(islice(_differences(part, *trees, 0), _MOST_CHANGES + 1)) if None not in trees else []
    return places or [(part, _text(before), _text(after))]


def _tree(data: bytes | None) -> Any:
    """Return the members of a JSON object or the items of an array; ``None`` for everything else."""
    try:
        found = json.loads(data or b"", parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _differences(path: str, before: Any, after: Any, depth: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves that differ."""
    kinds = [type(side) for side in (before, after) if side is not _NOTHING]
    if depth < _DEEPEST and all(kind is dict for kind in kinds):
        pairs = [side if side is not _NOTHING else {} for side in (before, after)]
        for name in dict.fromkeys((*pairs[0], *pairs[1])):
            old, new = (pair.get(name, _NOTHING) for pair in pairs)
            yield from _differences(f"{path}.{name}", old, new, depth + 1)
    elif depth < _DEEPEST and all(kind is list for kind in kinds):
        items = [side if side is not _NOTHING else [] for side in (before, after)]
        for index in range(max(map(len, items))):
            old, new = (item[index] if index < len(item) else _NOTHING for item in items)
            yield from _differences(f"{path}[{index}]", old, new, depth + 1)
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def _header_changes(before: RawHeaders, after: RawHeaders) -> Iterator[tuple[str, Any, Any]]:
    """Yield the changes of headers by name; of a repeated name, in order."""
    sides: list[dict[str, list[bytes | None]]] = [{}, {}]
    for side, headers in zip(sides, (before, after), strict=True):
        for name, value in headers:
            side.setdefault(name, []).append(value)
    for name in dict.fromkeys((*sides[0], *sides[1])):
        old, new = ([*map(_text, side.get(name, []))] for side in sides)
        for index in range(max(len(old), len(new))):
            was = old[index] if index < len(old) else _NOTHING
            becomes = new[index] if index < len(new) else _NOTHING
            if was is not becomes and was != becomes:
                yield f"headers.{name}", was, becomes


def _shown_change(place: str, before: Any, after: Any, hide: Callable[[str], str]) -> dict[str, str | None]:
    if any(sounds_secret(step.partition("[")[0]) for step in place.split(".")):
        return {"key": hide(place), "before": HIDDEN, "after": HIDDEN}
    return {"key": hide(place), "before": _leaf(before, hide), "after": _leaf(after, hide)}


def _leaf(value: Any, hide: Callable[[str], str]) -> str | None:
    """Return a text as it is, and everything else as JSON; ``None`` for nothing."""
    if value is _NOTHING:
        return None
    # Hide secrets before cutting the text: half a secret is not recognised as one.
    text = hide(value if isinstance(value, str) else _plain(value))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… ({len(text)} characters)"


def _plain(value: Any) -> str:
    """Return a value as JSON; a number with the digits that it has."""
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False, default=str)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"

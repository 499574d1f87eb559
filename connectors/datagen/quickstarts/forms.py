"""Building blocks of quickstarts: Avro types as Python objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "EMAILS",
    "FIRST_NAMES",
    "IP",
    "LAST_NAMES",
    "TIMESTAMP",
    "Quickstart",
    "array",
    "between",
    "choice",
    "counter",
    "date",
    "matching",
    "quickstart",
    "record",
    "timestamp",
]

FIRST_NAMES: Final = (
    "Amara", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ingrid", "Jonas", "Kaori", "Lamine",
    "Marta", "Nils", "Olga", "Pavel", "Rania", "Sven", "Tomas", "Yusuf",
)  # fmt: skip
LAST_NAMES: Final = (
    "Abebe", "Bauer", "Costa", "Diallo", "Eriksson", "Fischer", "Garcia", "Horvat", "Ito", "Jansen", "Keller", "Lopez",
    "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Sato", "Tanaka", "Weber",
)  # fmt: skip
_2020_MS: Final = 1_577_836_800_000
_2025_MS: Final = 1_735_689_600_000


@dataclass(frozen=True, slots=True)
class Quickstart:
    """A schema with annotations, and its key field."""

    key_field: str
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The schema as JSON."""
        return json.dumps(self.schema)


def quickstart(name: str, key: str, /, **fields: Any) -> Quickstart:
    """Return a quickstart whose records have this full name."""
    return Quickstart(key, record(name, **fields))


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return a record type."""
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


def array(items: Any, low: int, high: int) -> dict[str, Any]:
    """Return an array type of ``low`` to ``high`` elements."""
    return {"type": "array", "items": items, "arg.properties": {"length": {"min": low, "max": high + 1}}}


def choice(*options: Any, kind: str = "string") -> dict[str, Any]:
    """Return a choice among several values."""
    return {"type": kind, "arg.properties": {"options": list(options)}}


def between(kind: str, low: float, high: float, **attributes: Any) -> dict[str, Any]:
    """Return a number from ``low`` up to ``high``."""
    return {"type": kind, **attributes, "arg.properties": {"range": {"min": low, "max": high}}}


def counter(kind: str, start: int, *, step: int = 1, restart: int | None = None) -> dict[str, Any]:
    """Return a number that advances with each record."""
    iteration = {"start": start, "step": step} | ({} if restart is None else {"restart": restart})
    return {"type": kind, "arg.properties": {"iteration": iteration}}


def matching(regex: str, **attributes: Any) -> dict[str, Any]:
    """Return a string that matches a regular expression."""
    return {"type": "string", **attributes, "arg.properties": {"regex": regex}}


def date(first_day: int, last_day: int) -> dict[str, Any]:
    """Return a date by its days since 1970."""
    return between("int", first_day, last_day, logicalType="date")


def timestamp(*, step: int) -> dict[str, Any]:
    """Return a timestamp that advances by a number of milliseconds with each record."""
    return counter("long", _2020_MS, step=step, restart=_2025_MS) | {"logicalType": "timestamp-millis"}


TIMESTAMP: Final = timestamp(step=1000)
IP: Final = matching(r"(10|172|192)\.[1-9][0-9]\.[1-9][0-9]\.[1-9][0-9]")
EMAILS: Final = matching(r"[a-z]{5,9}@(example\.com|example\.org|example\.net)")

"""The annotations of a schema, ``arg.properties``, which say which values to generate for a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.errors import SchemaError

__all__ = ["ANNOTATIONS", "Annotations", "Iteration"]

ANNOTATIONS: Final = "arg.properties"

_KNOWN: Final = frozenset(
    {"options", "iteration", "range", "length", "regex", "prefix", "suffix", "keys", "odds", "distribution"}
)


@dataclass(frozen=True, slots=True)
class Iteration:
    """A series: its start, step and initial value, and where it restarts (``None``: at the limit of the type)."""

    start: Any
    step: Any
    initial: Any
    restart: Any


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations of one type; ``where`` is its location in the schema, for errors."""

    where: str
    given: Mapping[str, Any]

    @classmethod
    def of(cls, where: str, props: Mapping[str, Any]) -> Annotations:
        """Read the annotations from the properties of a type or a field."""
        found = props.get(ANNOTATIONS, {})
        if not isinstance(found, Mapping):
            raise SchemaError(f'{ANNOTATIONS} of {where} must be an object, such as {{"options": [1, 2]}}.')
        if "malformed.rate" in found:
            raise SchemaError(f"{where} has a malformed.rate, which is not supported: remove it from {ANNOTATIONS}.")
        return cls(where, found)

    @property
    def unknown(self) -> list[str]:
        """The names of unknown annotations."""
        return sorted(self.given.keys() - _KNOWN)

    def has(self, name: str) -> bool:
        """Return whether the annotation is present."""
        return self.given.get(name) is not None

    def options(self) -> Sequence[Any]:
        """Return the values to choose from."""
        found = self.given["options"]
        if isinstance(found, Mapping):
            raise self.refused("options", "reading options from a file is not supported; list the values")
        if not isinstance(found, list) or not found:
            raise self.refused("options", "give a list with at least one value")
        return found

    def keys(self) -> Annotations:
        """Return the annotations for the keys of a map."""
        found = self.given.get("keys", {})
        if not isinstance(found, Mapping):
            raise self.refused("keys", 'give an object, such as {"regex": "[a-z]{3}"}')
        return Annotations(f"the keys of {self.where}", found)

    def text(self, name: str) -> str:
        """Return a string annotation; empty if it is not present."""
        found = self.given.get(name, "")
        if not isinstance(found, str):
            raise self.refused(name, "give a string")
        return found

    def odds(self, default: float) -> float:
        """Return a probability."""
        found = self.given.get("odds", default)
        if not _is_number(found) or not 0 <= found <= 1:
            raise self.refused("odds", "give a number from 0 to 1")
        return float(found)

    def bounds(self, name: str, low: Any, high: Any) -> tuple[Any, Any]:
        """Return ``min`` and ``max``; the latter is exclusive."""
        found = self.given.get(name, {})
        if not isinstance(found, Mapping) or not all(_is_number(found.get(end, 0)) for end in ("min", "max")):
            raise self.refused(name, "give an object with the numbers min and max")
        least, most = found.get("min", low), found.get("max", high)
        if not low <= least < most <= high:
            raise self.refused(name, f"min must be less than max, and both must be between {low} and {high}")
        return least, most

    def length(self, low: int, high: int, most: int) -> tuple[int, int]:
        """Return the minimum length and the exclusive maximum, by default ``low`` and ``high``."""
        found = self.given.get("length")
        if found is None:
            return low, high
        if not isinstance(found, Mapping):
            found = {"min": found, "max": found + 1 if _is_number(found) else found}
        least: Any = found.get("min", 0)
        longest: Any = found.get("max", 2 * least + 1 if _is_number(least) else None)
        if not (_is_whole(least) and _is_whole(longest)) or not 0 <= least < longest:
            raise self.refused("length", "give a whole number from 0, or an object with min, and max greater than min")
        if longest > most + 1:
            raise self.refused("length", f"the maximum is {most}; give a smaller one")
        return int(least), int(longest)

    def iteration(self) -> Iteration:
        """Return the series as written; the type checks whether its numbers must be integers."""
        found = self.given["iteration"]
        numbers = found.values() if isinstance(found, Mapping) else ["?"]
        if not isinstance(found, Mapping) or "start" not in found or not all(map(_is_number, numbers)):
            raise self.refused("iteration", "give an object with the number start, and restart, step and initial")
        start, restart = found["start"], found.get("restart")
        step = found.get("step", -1 if restart is not None and restart < start else 1)
        return Iteration(start, step, found.get("initial", start), restart)

    def refused(self, name: str, remedy: str) -> SchemaError:
        """Return the error for an invalid annotation."""
        return SchemaError(f"{ANNOTATIONS} of {self.where}: {name} is not valid: {remedy}.")


def _is_number(value: object) -> bool:
    # NaN and the infinities are extensions of Python's JSON.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value - value == 0


def _is_whole(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())

"""Paths to fields: a name, or in nested structs and maps a path of names (KIP-821).

In syntax version ``V1`` the whole text is one name. In ``V2`` dots separate names; a name that contains dots is
enclosed in backticks. A backtick within it that is followed by a dot is escaped with a backslash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar

from connect.config import ConfigRuleError
from connect.data import Field, Schema, Type

__all__ = ["FieldPath", "FieldSyntax", "FieldTree", "parse_field_path"]

FieldSyntax: TypeAlias = Literal["V1", "V2"]
T = TypeVar("T")


def parse_field_path(text: str, syntax: FieldSyntax, key: str = "field") -> FieldPath:
    """Parse ``text``, the value of the option ``key``, to a path."""
    return FieldPath(text, (text,) if syntax == "V1" else tuple(_steps(text, key)))


def _steps(text: str, key: str) -> Iterable[str]:
    start = 0
    while start < len(text):
        if text[start] == "`":
            step, start = _quoted(text, start, key)
        else:
            dot = text.find(".", start)
            end = len(text) if dot < 0 else dot
            step, start = text[start:end], end + 1
        yield step
    if text.endswith("."):
        yield ""


def _quoted(text: str, opening: int, key: str) -> tuple[str, int]:
    """Return the name that begins with the backtick at ``opening``, and the position of the next one."""
    name: list[str] = []
    start = at = opening + 1
    while True:
        at = text.find("`", at)
        if at < 0:
            _incomplete(text, opening, key)
        escaped = text[at - 1] == "\\"
        last = at == len(text) - 1
        if last and escaped:
            _incomplete(text, opening, key)
        if last or (text[at + 1] == "." and not escaped):
            name.append(text[start:at])
            return "".join(name), at + 2
        if text[at + 1] == ".":
            name.append(text[start : at - 1] + "`")
            start = at + 1
        at += 1


def _incomplete(text: str, opening: int, key: str) -> NoReturn:
    advice = f"consider adding a backslash before backtick at position {opening} to escape it"
    raise ConfigRuleError(f"Incomplete backtick pair in path: [{text}], {advice}", key)


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The path to one field, which may be in nested structs; ``text`` is the path as the user wrote it."""

    text: str
    steps: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the field itself."""
        return self.steps[-1] if self.steps else ""

    def field_of(self, schema: Schema) -> Field | None:
        """Return the field in a struct schema, or ``None``."""
        current: Schema = schema
        found: Field | None = None
        for step in self.steps:
            if current.type is not Type.STRUCT or (found := current.field(step)) is None:
                return None
            current = found.schema
        return found

    def read(self, value: Mapping[str, Any] | None) -> Any:
        """Return the value of the field in a struct or map, or ``None`` if the field or a parent is missing."""
        current: Any = value
        for step in self.steps:
            if not isinstance(current, Mapping):
                return None
            current = current.get(step)
        return current


@dataclass(slots=True)
class FieldTree(Generic[T]):
    """Fields by path, each with a value such as its new type, as a tree of the structs that contain them."""

    leaves: dict[str, T] = field(default_factory=dict)
    branches: dict[str, FieldTree[T]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[tuple[FieldPath, T]]) -> FieldTree[T]:
        """Build the tree of ``paths``. The last of several equal paths wins."""
        tree: FieldTree[T] = cls()
        for path, leaf in paths:
            node = tree
            for step in path.steps[:-1]:
                node = node.branches.setdefault(step, FieldTree())
            node.leaves[path.name] = leaf
        return tree

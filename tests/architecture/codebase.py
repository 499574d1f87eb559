"""The modules of the code, as files and as imported."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("connect", "connectors", "converters", "worker", "rest")


@dataclass(frozen=True)
class Module:
    """One file of the code."""

    path: str
    name: str

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.name.partition(".")[0]

    @property
    def text(self) -> str:
        """The source."""
        return (ROOT / self.path).read_text(encoding="utf-8")

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    def imports(self) -> list[tuple[int, str]]:
        """Every module that is imported anywhere in the file, at run time, with the line."""
        return self._imports

    @functools.cached_property
    def _imports(self) -> list[tuple[int, str]]:
        return list(imports_of(self.tree.body))

    def load(self) -> ModuleType | str:
        """The module, imported, or the name of the library that it needs and that is not here."""
        try:
            return importlib.import_module(self.name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in PACKAGES:
                raise
            return error.name

    def __str__(self) -> str:
        return self.path


def modules() -> list[Module]:
    """Every module, in the order of their paths."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return [_module(file.relative_to(ROOT)) for file in files]


def is_below(path: str, *places: str) -> bool:
    """Whether a path is one of these files, or in one of these folders."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def imports_of(nodes: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """The modules that some statements import, and those in them; what is for type checkers only is left out."""
    for node in nodes:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports_of(node.orelse)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."
        else:
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from imports_of(getattr(node, field, []))


@functools.cache
def _module(path: Path) -> Module:
    parts = path.with_suffix("").parts
    return Module(str(path), ".".join(parts[:-1] if parts[-1] == "__init__" else parts))

"""The outline of a class: its base classes, read from source code without running it.

Configurations may come from anyone who can reach the REST API. Because importing a module runs it, whether a name
refers to a plugin must be known before anything is imported.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

from connect.errors import PluginError

__all__ = ["ancestors", "declared_version", "is_importable", "summary"]

_OURS: Final = ("connect.", "converters.", "connectors.")

_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class _Class:
    """A class as written in the source: the dotted names of its bases, its nested classes, its ``version``, and the
    first paragraph of its docstring.
    """

    bases: tuple[str, ...]
    nested: Mapping[str, _Class]
    version: str | None = None
    summary: str = ""


@dataclass(slots=True)
class _Outline:
    """The classes of a module, and what its other names refer to: dotted paths, or dotted names in the module."""

    classes: dict[str, _Class] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    synonyms: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    """A class, the module that defines it and its name in that module."""

    module: str
    name: str
    outline: _Class

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def is_importable(path: str) -> bool:
    """Return whether a package or module exists for the first part of a dotted path."""
    return _top_spec(path.partition(".")[0]) is not None


def ancestors(path: str) -> frozenset[str]:
    """Return the dotted paths, where defined, of a class and of all classes that it inherits.

    Classes created at run time, or not named in the source, are not included. Raises
    :class:`~connect.errors.PluginError` if the class does not exist or its source cannot be read.
    """
    lookup = _Lookup()
    first = lookup.find(path)
    if first is None:
        raise PluginError(f"Class {path} cannot be found: no importable module defines it.")
    seen: set[str] = set()
    waiting = [first]
    while waiting:
        found = waiting.pop()
        if found.path not in seen:
            seen.add(found.path)
            waiting += lookup.bases(found)
    return frozenset(seen)


def declared_version(path: str, folder: Path | None) -> str | None:
    """Return the ``version`` declared as text in a class, or in a class that it inherits.

    Modules in ``folder`` take precedence over the import path. Raises :class:`~connect.errors.PluginError` if a source
    cannot be read.
    """
    lookup = _Lookup(folder)
    first = lookup.find(path)
    seen: set[str] = set()
    waiting = [first] if first is not None else []
    while waiting:
        found = waiting.pop(0)
        if found.path in seen or found.path.startswith(_OURS):
            continue
        if found.outline.version is not None:
            return found.outline.version
        seen.add(found.path)
        waiting += lookup.bases(found)
    return None


def summary(path: str, folder: Path | None = None) -> str:
    """Return the first paragraph of a class's docstring in one line; empty if there is none that can be read.

    Modules in ``folder`` take precedence over the import path.
    """
    try:
        found = _Lookup(folder).find(path)
    except PluginError:
        return ""
    return "" if found is None else found.outline.summary


class _Lookup:
    """A single search, which stops at circular definitions. Modules in ``folder`` take precedence."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._under_way: set[str] = set()

    def find(self, path: str) -> _Found | None:
        """Return the class of a dotted path, wherever it is defined."""
        if path in self._under_way:
            return None
        self._under_way.add(path)
        try:
            located = self._locate(path)
            return None if located is None else self._within(*located)
        finally:
            self._under_way.discard(path)

    def bases(self, found: _Found) -> Iterator[_Found]:
        """Yield the base classes of a class, as far as they can be found."""
        spec = self._spec(found.module)
        if spec is None:
            return
        imports = _outline_of(spec).imports
        for name in found.outline.bases:
            # A class may have the name of the imported one that it inherits.
            path = imports.get(name) if name == found.name else None
            base = self.find(path) if path is not None else self._within(spec, tuple(name.split(".")))
            if base is not None:
                yield base

    def _within(self, spec: ModuleSpec, names: tuple[str, ...]) -> _Found | None:
        """Return the class with that name in a module, or in the module from which that name was imported."""
        outline = _outline_of(spec)
        first, rest = names[0], names[1:]
        if first in outline.classes:
            return _nested(spec.name, first, outline.classes[first], rest)
        if first in outline.imports:
            return self.find(".".join((outline.imports[first], *rest)))
        if first in outline.synonyms:
            return self.find(".".join((spec.name, outline.synonyms[first], *rest)))
        everything = (self.find(".".join((module, *names))) for module in outline.stars)
        return next((found for found in everything if found is not None), None)

    def _locate(self, path: str) -> tuple[ModuleSpec, tuple[str, ...]] | None:
        """Return the innermost module on a dotted path, and the rest of the path."""
        parts = path.split(".")
        spec = self._top(parts[0])
        for index, part in enumerate(parts[1:], start=1):
            inner = None if spec is None else _inner_spec(spec, part)
            if inner is None:
                return None if spec is None else (spec, tuple(parts[index:]))
            spec = inner
        return None

    def _spec(self, module: str) -> ModuleSpec | None:
        first, *parts = module.split(".")
        spec = self._top(first)
        for part in parts:
            spec = None if spec is None else _inner_spec(spec, part)
        return spec

    def _top(self, name: str) -> ModuleSpec | None:
        if self._folder is not None and (spec := PathFinder.find_spec(name, [str(self._folder)])) is not None:
            return spec
        return _top_spec(name)


def _nested(module: str, name: str, outline: _Class, rest: tuple[str, ...]) -> _Found:
    for part in rest:
        if part not in outline.nested:
            # A variant (Trim.Value), which its owner's own base class makes of the owner.
            break
        name, outline = f"{name}.{part}", outline.nested[part]
    return _Found(module, name, outline)


def _top_spec(name: str) -> ModuleSpec | None:
    """Return the location of a top-level module, which Python finds without running the module."""
    try:
        return importlib.util.find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        return None


def _inner_spec(spec: ModuleSpec, part: str) -> ModuleSpec | None:
    # By importlib.util.find_spec the package around it would be imported.
    locations = spec.submodule_search_locations
    found = None if locations is None else PathFinder.find_spec(part, list(locations))
    if found is None:
        return None
    # Under its whole name, a folder without __init__.py would ask its parent for its places, which is not imported.
    inner = ModuleSpec(f"{spec.name}.{part}", found.loader, origin=found.origin)
    inner.has_location = found.has_location
    inner.submodule_search_locations = found.submodule_search_locations and list(found.submodule_search_locations)
    return inner


def _outline_of(spec: ModuleSpec) -> _Outline:
    if not spec.has_location or spec.origin is None or not spec.origin.endswith(".py"):
        return _Outline()
    try:
        status = Path(spec.origin).stat()
        return _parsed(spec.name, spec.origin, status.st_mtime_ns, status.st_size)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PluginError(f"The source of {spec.name}, {spec.origin}, cannot be read: {error}") from error


@lru_cache(maxsize=_KEPT)
def _parsed(module: str, file: str, _changed: int, _size: int) -> _Outline:
    path = Path(file)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    outline = _Outline()
    for statement in _statements(ast.parse(path.read_bytes()).body):
        _note(outline, statement, package)
    return outline


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, including those inside conditions."""
    for statement in body:
        yield statement
        match statement:
            case ast.If(body=inner, orelse=otherwise):
                yield from _statements((*inner, *otherwise))
            case ast.Try(body=inner, orelse=otherwise, handlers=handlers, finalbody=last):
                handled = (one for handler in handlers for one in handler.body)
                yield from _statements((*inner, *handled, *otherwise, *last))
            case ast.With(body=inner):
                yield from _statements(inner)


def _note(outline: _Outline, statement: ast.stmt, package: str) -> None:
    match statement:
        case ast.ClassDef(name=name):
            outline.classes[name] = _class(statement)
        case ast.Import(names=names):
            for alias in names:
                outline.imports[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        case ast.ImportFrom(module=module, names=names, level=level):
            source = _absolute(module or "", level, package)
            for alias in names:
                if alias.name == "*":
                    outline.stars.append(source)
                else:
                    outline.imports[alias.asname or alias.name] = f"{source}.{alias.name}"
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if (written := _dotted(value)) is not None:
                outline.synonyms[name] = written


def _class(definition: ast.ClassDef) -> _Class:
    nested = {inner.name: _class(inner) for inner in definition.body if isinstance(inner, ast.ClassDef)}
    bases = tuple(name for base in definition.bases if (name := _dotted(base)) is not None)
    version = next(filter(None, map(_version, definition.body)), None)
    return _Class(bases, nested, version, _first_paragraph(ast.get_docstring(definition)))


def _first_paragraph(docstring: str | None) -> str:
    """Return it in one line, without the backquotes around code."""
    return " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "")


def _version(statement: ast.stmt) -> str | None:
    """Return the text of ``version = "1.2"``, with or without an annotation."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id="version")], value=ast.Constant(value=str(text)))
            | ast.AnnAssign(target=ast.Name(id="version"), value=ast.Constant(value=str(text)))
        ):
            return text
    return None


def _dotted(expression: ast.expr) -> str | None:
    """Return ``a.B`` for the expressions ``a.B`` and ``a.B[C]``."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            before = _dotted(owner)
            return None if before is None else f"{before}.{name}"
        case ast.Subscript(value=generic):
            return _dotted(generic)
    return None


def _absolute(module: str, level: int, package: str) -> str:
    if level == 0:
        return module
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])

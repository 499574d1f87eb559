"""What is public exists and is documented."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any

import pytest
from codebase import Module, modules

from connect.config import Config

Loaded = list[tuple[Module, ModuleType]]


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    """Every module that can be imported here."""
    return [(module, imported) for module in modules() if isinstance(imported := module.load(), ModuleType)]


def test_every_module_can_be_imported() -> None:
    """But for those of libraries that only some need, and that are not here."""
    lacking = [f"{module} needs {name}" for module in modules() if isinstance(name := module.load(), str)]
    if lacking:
        pytest.skip("What is in these is not looked at:\n" + "\n".join(lacking))


def test_public_names_exist(loaded: Loaded) -> None:
    missing = [
        f"{module}: {name}"
        for module, imported in loaded
        for name in getattr(imported, "__all__", ())
        if not hasattr(imported, name)
    ]
    assert not missing, "__all__ names what is not there:\n" + "\n".join(missing)


def test_public_names_are_documented() -> None:
    silent = [str(module) for module in modules() if module.text.strip() and not ast.get_docstring(module.tree)]
    silent += [
        f"{module}:{node.lineno} {node.name}"
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert not silent, "These need a docstring:\n" + "\n".join(silent)


def test_public_methods_are_documented(loaded: Loaded) -> None:
    """By a docstring of their own, or by that of the method they override."""
    silent = [
        f"{module}: {owner.__name__}.{name}"
        for module, imported in loaded
        for owner in _own_classes(imported)
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.isroutine(_function(member))
        if not inspect.getdoc(getattr(owner, name))
    ]
    assert not silent, "These need a docstring:\n" + "\n".join(silent)


def test_options_are_documented(loaded: Loaded) -> None:
    silent = [
        f"{module}: {owner.__name__}: {key.name}"
        for module, imported in loaded
        for owner in _own_classes(imported)
        if issubclass(owner, Config)
        for key in owner.definitions()
        if not key.documentation.strip()
    ]
    assert not silent, "These options need a doc:\n" + "\n".join(silent)


def _own_classes(loaded: Any) -> list[type[Any]]:
    return [
        value
        for name, value in vars(loaded).items()
        if isinstance(value, type) and value.__module__ == loaded.__name__ and not name.startswith("_")
    ]


def _function(member: object) -> object:
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member

"""What is public exists and is documented."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from codebase import Module, modules

from connect.config import Config


@pytest.mark.parametrize("module", modules(), ids=str)
def test_public_names_exist(module: Module) -> None:
    loaded = module.load()
    missing = [name for name in getattr(loaded, "__all__", ()) if not hasattr(loaded, name)]
    assert not missing, f"{module}: __all__ names {', '.join(missing)}, which is not there."


@pytest.mark.parametrize("module", modules(), ids=str)
def test_public_names_are_documented(module: Module) -> None:
    assert not module.text.strip() or ast.get_docstring(module.tree), f"{module} needs a docstring."
    silent = [
        f"{module}:{node.lineno} {node.name}"
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert not silent, "These need a docstring:\n" + "\n".join(silent)


@pytest.mark.parametrize("module", modules(), ids=str)
def test_public_methods_are_documented(module: Module) -> None:
    """By a docstring of their own, or by that of the method they override."""
    loaded = module.load()
    silent = [
        f"{module}: {owner.__name__}.{name}"
        for owner in _own_classes(loaded)
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.isroutine(_function(member))
        if not inspect.getdoc(getattr(owner, name))
    ]
    assert not silent, "These need a docstring:\n" + "\n".join(silent)


@pytest.mark.parametrize("module", modules(), ids=str)
def test_options_are_documented(module: Module) -> None:
    silent = [
        f"{owner.__name__}: {key.name}"
        for owner in _own_classes(module.load())
        if issubclass(owner, Config)
        for key in owner.definitions()
        if not key.documentation.strip()
    ]
    assert not silent, f"{module}: these options need a doc:\n" + "\n".join(silent)


def _own_classes(loaded: Any) -> list[type[Any]]:
    return [
        value
        for name, value in vars(loaded).items()
        if isinstance(value, type) and value.__module__ == loaded.__name__ and not name.startswith("_")
    ]


def _function(member: object) -> object:
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member

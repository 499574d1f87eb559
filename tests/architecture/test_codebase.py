"""What the tests of the architecture look at, they see."""

from __future__ import annotations

import ast

import pytest
from codebase import Module, imports_of, is_below, modules

SOURCE = """
import a, b.c
from d.e import f
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import unseen
else:
    import g
class Owner:
    def method(self):
        try:
            import h
        except ImportError:
            import i
        else:
            import j
        finally:
            import k
        with open("x") as y:
            import l
        match y:
            case 1:
                import m
        while y:
            async def inner():
                from n import o
"""


def test_imports_are_seen_wherever_they_stand() -> None:
    found = {name for _, name in imports_of(ast.parse(SOURCE).body)}
    assert found == {"a", "b.c", "d.e", "typing", *"ghijklmn"}


def test_every_package_is_looked_at() -> None:
    names = {module.name for module in modules()}
    assert {"connect", "connect.errors", "connectors.file", "converters.string", "worker.cli.main", "rest.app"} <= names


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("rest/app.py", True),
        ("rest", True),
        ("restful/app.py", False),
        ("worker/cli/main.py", True),
        ("worker/a.py", False),
    ],
)
def test_a_place_is_a_file_or_a_folder(path: str, below: bool) -> None:
    assert is_below(path, "rest", "worker/cli/main.py") is below


def test_a_module_knows_its_package() -> None:
    assert Module("connect/data/schema.py", "connect.data.schema").package == "connect"

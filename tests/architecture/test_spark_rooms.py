"""Spark's products are rooms of their own: what they share is below them, and imports point only downwards."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Final

import pytest
from codebase import ROOT, Module, modules

SPARK: Final = "connectors.spark"

PLACES: Final = {
    "values": ("arrow_types", "schema"),
    "java": ("errors", "gateway", "java_archive", "java_log"),
    "stores": ("stores", "options", "folder_fields"),
    "cluster": ("cluster",),
    "session": ("session", "format_session", "retries"),
    "decoding": ("decoding",),
    "files": ("formats", "file_metadata", "partitioner", "folders", "column_limits", "hive_table"),
    "tables": ("delta", "iceberg"),
    "jobs": ("jobs",),
    "publishing": ("publishing",),
    "datasource": ("datasource",),
    "engine": ("engine",),
    "sources": ("sources",),
    "sink": ("sink",),
}
"""The rooms from the bottom to the top, with the folders and modules of each."""

MAY_IMPORT: Final = {
    "values": (),
    "java": (),
    "stores": ("java",),
    "cluster": ("java",),
    "session": ("java", "stores", "cluster"),
    "decoding": ("values", "stores", "cluster"),
    "files": ("stores", "decoding"),
    "tables": ("values", "java", "stores"),
    "jobs": ("cluster", "decoding"),
    "publishing": ("decoding",),
    "datasource": ("values", "decoding"),
    "engine": ("java", "stores", "session", "decoding", "jobs", "publishing"),
    "sources": ("java", "stores", "session", "tables", "jobs", "publishing"),
    "sink": ("values", "java", "stores", "cluster", "session", "decoding", "files", "tables", "jobs"),
}
PRODUCTS: Final = ("datasource", "engine", "sources", "sink")

OF_SPARK: Final = {module.name: module for module in modules() if module.name.startswith(f"{SPARK}.")}
ROOM_OF: Final = {place: room for room, places in PLACES.items() for place in places}

IMPORT_ALL: Final = """
import importlib, pkgutil, sys
room = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(module.name)
print(*(name for name in sys.modules if name.startswith("connectors.spark.")))
"""


def test_rooms_import_only_downwards() -> None:
    wrong = [
        f"{module}:{line} imports {name}; {room} may import {', '.join(MAY_IMPORT[room])}"
        for module in OF_SPARK.values()
        for line, name in _imports(module)
        if (room := _room(module.name)) != (other := _room(name)) and other not in MAY_IMPORT[room]
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_table_names_every_place_and_points_downwards() -> None:
    order = list(PLACES)
    assert {_place(name) for name in OF_SPARK} == ROOM_OF.keys()
    assert all(order.index(lower) < order.index(room) for room, allowed in MAY_IMPORT.items() for lower in allowed)
    assert not any(other in MAY_IMPORT[room] for room in PRODUCTS for other in PRODUCTS)


def test_no_modules_of_spark_import_each_other() -> None:
    graph = {name: {other for _, other in _imports(module)} for name, module in OF_SPARK.items()}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("room", PRODUCTS)
def test_importing_one_product_brings_no_module_of_the_others(room: str) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, f"{SPARK}.{room}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    brought = {_room(name) for name in done.stdout.split()}
    assert room in brought
    assert brought - {room} <= set(MAY_IMPORT[room]) | _below(MAY_IMPORT[room])
    assert not brought & (set(PRODUCTS) - {room})


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    """The modules of Spark that a module imports anywhere, for type checkers too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in OF_SPARK)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                name = name if name in OF_SPARK else node.module
                if name in OF_SPARK:
                    yield node.lineno, name


def _place(name: str) -> str:
    """The folder or module directly below that of Spark."""
    return name.removeprefix(f"{SPARK}.").partition(".")[0]


def _room(name: str) -> str:
    return ROOM_OF[_place(name)]


def _below(rooms: tuple[str, ...]) -> set[str]:
    """What rooms may bring with them."""
    return {lower for room in rooms for lower in (*MAY_IMPORT[room], *_below(MAY_IMPORT[room]))}

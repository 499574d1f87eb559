"""Modules are short, and nothing in them is left for later."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

from codebase import PACKAGES, ROOT, modules

LONGEST: Final = 600
MOST_MODULES: Final = 25
DATA_TABLES: Final = {"connect/internals/kafka/settings/java_keys.py"}
_LEFT_FOR_LATER: Final = re.compile(r"\b(?:TODO|FIXME)\b")
_WRITTEN: Final = {".py", ".md", ".toml", ".html", ".js", ".css"}


def test_modules_are_short() -> None:
    lengths = {module.path: len(module.text.splitlines()) for module in modules() if module.path not in DATA_TABLES}
    long = [f"{path}: {length} lines" for path, length in lengths.items() if length > LONGEST]
    assert not long, f"No module is longer than {LONGEST} lines; divide:\n" + "\n".join(long)


def test_folders_are_small() -> None:
    counts = Counter(str(Path(module.path).parent) for module in modules() if not module.path.endswith("__init__.py"))
    large = [f"{folder}: {count} modules" for folder, count in counts.items() if count > MOST_MODULES]
    assert not large, f"No folder has more than {MOST_MODULES} modules; divide:\n" + "\n".join(large)


def test_nothing_is_left_for_later() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number} {line.strip()}"
        for place in (*PACKAGES, "docs", "examples")
        for file in (ROOT / place).rglob("*")
        if file.suffix in _WRITTEN
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if _LEFT_FOR_LATER.search(line)
    ]
    assert not found, "Do these now, or write them down elsewhere:\n" + "\n".join(found)


def test_test_modules_have_names_of_their_own() -> None:
    counts = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    shared = [name for name, count in counts.items() if count > 1]
    assert not shared, f"pytest imports modules by these names: give {', '.join(shared)} each one of its own."

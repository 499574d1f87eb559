"""What docstrings and comments refer to exists: modules, classes, functions, and records of decisions."""

from __future__ import annotations

import builtins
import re
import sys
from pathlib import Path
from typing import Final

from codebase import PACKAGES, ROOT, Module, modules

_ROLES: Final = re.compile(r":(?:class|func|mod|meth|data|attr|exc):`~?([\w.]+)(?:\(\))?`")
_FILES: Final = re.compile(r"`([\w/]+/\w+\.py)`")
_DECISIONS: Final = re.compile(r"adr/([\w-]+)\.md")


def test_roles_name_what_exists() -> None:
    found = [f"{module.path}: {name}" for module in modules() for name in _unknown(module)]
    assert not found, "These names do not exist; correct them:\n" + "\n".join(found)


def test_records_of_decisions_exist() -> None:
    found = [
        f"{module.path}: {name}"
        for module in modules()
        for name in _DECISIONS.findall(module.text)
        if not (ROOT / "docs" / "adr" / f"{name}.md").is_file()
    ]
    assert not found, "There are no such records of decisions in docs/adr:\n" + "\n".join(found)


def test_files_named_by_the_architecture_exist() -> None:
    files = [f"/{module.path}" for module in modules()] + [f"/{path.relative_to(ROOT)}" for path in _tests()]
    pages = [ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "adr").glob("*.md"))]
    found = [
        f"{page.name}: {name}"
        for page in pages
        for name in _FILES.findall(page.read_text(encoding="utf-8"))
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert not found, "There are no such files; correct the pages:\n" + "\n".join(found)


def _tests() -> list[Path]:
    return [file for folder in ("tests", "bench") for file in (ROOT / folder).rglob("*.py")]


def _unknown(module: Module) -> list[str]:
    """Return the names in the roles of a module that neither it nor the module that they name contains."""
    code = _ROLES.sub("", module.text)
    return sorted(name for name in set(_ROLES.findall(module.text)) if not _exists(name, code))


def _exists(name: str, code: str) -> bool:
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        is_library = parts[0] in sys.stdlib_module_names
        return is_library or hasattr(builtins, parts[0]) or all(_contains(code, part) for part in parts)
    for length in range(len(parts), 0, -1):
        if (text := _text_of(ROOT.joinpath(*parts[:length]))) is not None:
            return all(_contains(text, part) for part in parts[length:])
    return False


def _text_of(place: Path) -> str | None:
    files = [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return files[0].read_text(encoding="utf-8") if files else None


def _contains(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None

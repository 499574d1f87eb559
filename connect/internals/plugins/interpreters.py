"""Plugin folders with their own interpreter: a ``.venv`` in which Sluice and the plugins are installed.

The worker reads what is installed there without running any of it; the plugins run in child processes of that
interpreter. Two plugins may therefore need incompatible versions of a library.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from connect.errors import PluginError, os_reason
from connect.internals.plugins.entry import PluginEntry
from connect.internals.plugins.listing import entries_of_folder, read_entries
from connect.internals.plugins.versions import Version, VersionRange

__all__ = ["ENTRY_POINTS", "VENV", "entries_of_place", "running_folder", "spoken_versions", "venv_python"]

ENTRY_POINTS: Final = "sluice.plugins"
"""The group of entry points by which a distribution names its packages of plugins."""

VENV: Final = ".venv"
_SLUICE: Final = "sluice-connect"
_OLDEST_PYTHON: Final = (3, 11)
_SPOKEN: Final = "[0.2,0.3)"
_FILE: Final = "plugins.toml"
_VERSION: Final = re.compile(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", re.MULTILINE)


def spoken_versions() -> VersionRange:
    """Return the versions of Sluice whose child processes and this worker understand each other's messages."""
    spoken = VersionRange.parse(_SPOKEN)
    assert spoken is not None
    return spoken


def venv_python(folder: Path) -> Path | None:
    """Return the interpreter of a plugin folder, or ``None`` if it has none of its own."""
    return folder / VENV / "bin" / "python" if (folder / VENV).is_dir() else None


def running_folder(folders: Sequence[Path]) -> Path | None:
    """Return which of these folders, or their subfolders, has the interpreter that runs this process."""
    prefix = Path(sys.prefix).resolve()
    if prefix.name != VENV:
        return None
    home = prefix.parent
    return next((home for folder in folders if home in (folder.resolve(), *_children(folder))), None)


def _children(folder: Path) -> list[Path]:
    return [child.resolve() for child in folder.iterdir() if child.is_dir()] if folder.is_dir() else []


def entries_of_place(folder: Path) -> list[PluginEntry]:
    """Return the plugins of a folder: those in its ``plugins.toml``, and those installed in its interpreter.

    A process of that interpreter finds the latter like any other installed packages. Raises
    :class:`~connect.errors.PluginError` if the folder or its interpreter is unusable.
    """
    python = venv_python(folder)
    if python is None or Path(sys.prefix).resolve() == (folder / VENV).resolve():
        return entries_of_folder(folder)
    paths = _import_path(folder)
    _check(folder, paths)
    entries = [*entries_of_folder(folder), *_installed(paths)]
    return [replace(entry, interpreter=python) for entry in entries]


def _installed(paths: Sequence[Path]) -> Iterator[PluginEntry]:
    """Return the plugins of the packages installed in an interpreter with this import path."""
    points = [
        (point, found.version)
        for found in importlib.metadata.distributions(path=[str(path) for path in paths])
        for point in found.entry_points
        if point.group == ENTRY_POINTS
    ]
    for point, version in points:
        within = Path(*point.value.split("."), _FILE)
        path = next((path for path in paths if (path / within).is_file()), None)
        if path is None:
            raise PluginError(f"Its installed package {point.value} has no {_FILE}; install the package again.")
        yield from read_entries(path / within, folder=None, version=version, modules=path)


def _import_path(folder: Path) -> list[Path]:
    """Return the folders in which an interpreter finds modules: its own, and those that its ``.pth`` files name."""
    sites = sorted((folder / VENV / "lib").glob("python3.*/site-packages"))
    paths = list(sites)
    for site in sites:
        for file in sorted(site.glob("*.pth")):
            lines = (line.strip() for line in file.read_text(errors="replace").splitlines())
            named = (site / line for line in lines if line and not line.startswith(("#", "import ", "import\t")))
            paths += [path for path in named if path.is_dir()]
    return paths


def _check(folder: Path, paths: Sequence[Path]) -> None:
    """Refuse an interpreter that cannot run child processes of this worker."""
    mend = f"sluice plugins install --into {folder}"
    try:
        said = _VERSION.search((folder / VENV / "pyvenv.cfg").read_text())
    except OSError as error:
        raise PluginError(
            f"Its {VENV} is not a virtual environment: {os_reason(error)}. Remove it and run {mend}"
        ) from error
    if said is not None and (int(said[1]), int(said[2])) < _OLDEST_PYTHON:
        raise PluginError(
            f"Its interpreter is Python {said[1]}.{said[2]}, but Sluice needs 3.11. Remove its {VENV} and run "
            f"{mend} --python python3.11 with the packages"
        )
    found = importlib.metadata.distributions(name=_SLUICE, path=[str(path) for path in paths])
    version = next((distribution.version for distribution in found), None)
    if version is None:
        raise PluginError(f"Its interpreter cannot run plugins because {_SLUICE} is not installed in it. Run {mend}")
    if Version(version) not in spoken_versions():
        raise PluginError(
            f"Its interpreter has {_SLUICE} {version}, but this worker needs {spoken_versions()}. Run {mend}"
        )

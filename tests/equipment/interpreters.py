"""Plugin folders with their own interpreters, made quickly: a path file gives each one this tree's Sluice."""

from __future__ import annotations

import sysconfig
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import connect

__all__ = ["SLUICE_PATH", "add_package", "bare_folder", "folder_with_interpreter", "wheel"]

_TREE = Path(connect.__file__).parent.parent
SLUICE_PATH = f"{_TREE}\n{sysconfig.get_paths()['purelib']}\n"
"""The contents of a path file that gives an interpreter this Sluice and its dependencies."""


def bare_folder(folder: Path) -> Path:
    """Make a folder with an interpreter in which nothing is installed; return its site-packages."""
    venv.create(folder / ".venv", with_pip=False)
    (site,) = (folder / ".venv" / "lib").glob("python3.*/site-packages")
    return site


def folder_with_interpreter(folder: Path, sluice: str | None = None) -> Path:
    """The same with this Sluice in it, which reports the version ``sluice``."""
    site = bare_folder(folder)
    (site / "sluice.pth").write_text(SLUICE_PATH)
    add_package(site, "sluice-connect", sluice or metadata.version("sluice-connect"), {})
    return site


def add_package(site: Path, name: str, version: str, files: dict[str, str], plugins: str | None = None) -> None:
    """Install a distribution as pip does; ``plugins`` is the package that its entry point names."""
    for path, text in _distribution(name, version, files, plugins).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)


def wheel(folder: Path, name: str, version: str, files: dict[str, str], plugins: str | None = None) -> Path:
    """The same distribution as a wheel, for pip to install."""
    file = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in _distribution(name, version, files, plugins).items():
            archive.writestr(path, text)
    return file


def _distribution(name: str, version: str, files: dict[str, str], plugins: str | None) -> dict[str, str]:
    within = f"{name.replace('-', '_')}-{version}.dist-info"
    content = {
        **files,
        f"{within}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{within}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if plugins is not None:
        content[f"{within}/entry_points.txt"] = f"[sluice.plugins]\n{plugins} = {plugins}\n"
    record = f"{within}/RECORD"
    return {**content, record: "".join(f"{path},,\n" for path in (*content, record))}

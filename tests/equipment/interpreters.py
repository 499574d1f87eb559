"""Folders of plugins with interpreters of their own, each made in a moment: a path file gives it this tree's Sluice."""

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
"""What a path file has to hold for an interpreter to have this Sluice and all that it needs."""


def bare_folder(folder: Path) -> Path:
    """A folder with an interpreter in which nothing is installed; the place where packages go is returned."""
    venv.create(folder / ".venv", with_pip=False)
    (site,) = (folder / ".venv" / "lib").glob("python3.*/site-packages")
    return site


def folder_with_interpreter(folder: Path, sluice: str | None = None) -> Path:
    """The same with this Sluice in it, which says that it is of the version ``sluice``."""
    site = bare_folder(folder)
    (site / "sluice.pth").write_text(SLUICE_PATH)
    add_package(site, "sluice-connect", sluice or metadata.version("sluice-connect"), {})
    return site


def add_package(site: Path, name: str, version: str, files: dict[str, str], plugins: str | None = None) -> None:
    """Install a distribution as pip leaves it; ``plugins`` is the package that its entry point names."""
    for path, text in _distribution(name, version, files, plugins).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)


def wheel(folder: Path, name: str, version: str, files: dict[str, str], plugins: str | None = None) -> Path:
    """The same as a wheel, for pip to install."""
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

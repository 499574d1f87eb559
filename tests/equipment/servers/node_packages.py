"""Servers from npm packages, installed from their lock files when tests need them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock, sluice_home

__all__ = ["installed_package"]

_INSTALL_SECONDS: Final = 180


def installed_package(name: str, files: Path) -> Path:
    """Install the package of ``package.json`` and its lock file in ``files``; return its folder below Sluice's home.

    A ``ConnectError`` says why it cannot be installed.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise ConnectError("there is no npm and node; install them (apt-get install --no-install-recommends npm)")
    folder = sluice_home() / "packages" / name
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (files / "package-lock.json").read_bytes()
    done = folder / "installed.json"
    with file_lock(folder.with_name(f"{name}.lock")):
        if not (done.is_file() and done.read_bytes() == wanted):
            for file in ("package.json", "package-lock.json"):
                shutil.copy(files / file, folder)
            _install(name, npm, folder)
            done.write_bytes(wanted)
    return folder


def _install(name: str, npm: str, folder: Path) -> None:
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        raise ConnectError(f"npm cannot install {name}: {error.stderr.decode(errors='replace')}") from error
    except subprocess.TimeoutExpired as error:
        raise ConnectError(f"npm did not install {name} within {_INSTALL_SECONDS} s") from error

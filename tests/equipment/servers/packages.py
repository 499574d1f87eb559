"""Debian packages, unpacked below Sluice's home: that needs no privileges, and installs nothing into the system."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock, sluice_home

__all__ = ["unpacked"]

_SOURCES: Final = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
_APT: Final = (
    *("-o", "APT::Install-Recommends=false", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"),
    *("-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0"),
)
_DONE: Final = "unpacked"


def unpacked(name: str, *others: str, suite: str | None = None, without: tuple[str, ...] = ()) -> Path:
    """Unpack package ``name``, the ``others`` and their dependencies, unless that was done before; return the folder.

    From the system's own release, only missing packages are unpacked; from another ``suite`` all of them, including the
    C library. The patterns ``without`` are files to leave out. A ``ConnectError`` says why it failed.
    """
    folder = sluice_home() / "packages" / (f"{name}-{suite}" if suite else name)
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / _DONE).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(folder, (name, *others), suite, without)
            (folder / _DONE).touch()
    return folder / "root"


def _unpack(folder: Path, names: tuple[str, ...], suite: str | None, without: tuple[str, ...]) -> None:
    if not shutil.which("apt-get"):
        raise ConnectError(f"{names[0]} is not installed, and there is no apt-get to fetch it with; install it.")
    apt = folder / "apt"
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True)
    options = [*_APT, "-o", f"Dir::State={apt}", "-o", f"Dir::Cache={apt}"]
    options += _only(suite, apt) if suite else ["-o", "Dir::State::status=/var/lib/dpkg/status"]
    _run("apt-get", "-qq", *options, "update")
    _run("apt-get", "-qq", *options, "install", "-y", "--download-only", *names)
    root = folder / "root"
    for package in sorted((apt / "archives").glob("*.deb")):
        _run("dpkg-deb", "-x", str(package), str(root))
    for path in [path for pattern in without for path in root.glob(pattern)]:
        path.unlink()
    shutil.rmtree(apt)


def _only(suite: str, apt: Path) -> list[str]:
    """The options of apt-get that see ``suite`` alone and no package as installed."""
    given = next((path for path in map(Path, _SOURCES) if path.is_file()), None)
    if given is None:
        raise ConnectError(f"None of {', '.join(_SOURCES)} says where Debian's packages are.")
    sources = apt / given.with_stem("only").name
    sources.write_text(_for_suite(given.read_text(encoding="utf-8"), suite), encoding="utf-8")
    status = apt / "status"
    status.touch()
    return [
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::status={status}"),
    ]


def _for_suite(sources: str, suite: str) -> str:
    """The first source of a file in either of apt's forms, for another suite."""
    lines = [line for line in sources.splitlines() if not line.lstrip().startswith("#")]
    if old := next((line for line in lines if line.startswith("deb ")), None):
        options, bracket, rest = old.removeprefix("deb ").rpartition("] ")
        return f"deb {options}{bracket}{rest.split()[0]} {suite} main\n"
    stanza = "\n".join(lines).strip().split("\n\n")[0].splitlines()
    kept = [line for line in stanza if not line.startswith(("Suites:", "Components:"))]
    return "\n".join([*kept, f"Suites: {suite}", "Components: main", ""])


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    )
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise ConnectError(f"{command[0]} {command[-1]} failed: {last or done.returncode}")

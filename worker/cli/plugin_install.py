"""Installs plugins into a folder with its own interpreter, using venv and pip."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from connect.errors import PluginError
from connect.internals.plugins import VENV, PluginEntry, entries_of_place
from worker.cli.plugin_imports import import_errors

__all__ = ["install_plugins"]

_SLUICE: Final = "sluice-connect"


def install_plugins(packages: Sequence[str], folder: Path, python: str, sluice: str | None) -> None:
    """Install packages into a folder, which is created with an interpreter if needed, and list its plugins.

    An error ends the command.
    """
    folder = folder.absolute()
    interpreter = folder / VENV / "bin" / "python"
    if not interpreter.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run([python, "-m", "venv", "--clear", "--without-pip", str(folder / VENV)], "The interpreter cannot be made")
    if importlib.util.find_spec("pip") is None:
        raise click.ClickException(f"pip is not installed here. Run {sys.executable} -m ensurepip")
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--disable-pip-version-check"]
    _run([*pip, *([sluice] if sluice else _this_sluice()), *packages], "pip has not installed all of it")
    _show(folder)


def _run(command: Sequence[str], failure: str) -> None:
    """Run a program that prints its own progress and errors."""
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise click.ClickException(f"{failure}: {command[0]} cannot be run: {error.strerror}.") from error
    if done.returncode != 0:
        raise click.ClickException(f"{failure}; see its output above.")


def _this_sluice() -> list[str]:
    """Return the pip argument that installs this very Sluice, wherever it was installed from."""
    distribution = importlib.metadata.distribution(_SLUICE)
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    match origin:
        case {"url": url, "dir_info": {"editable": True}}:
            return ["--editable", url]
        case {"url": url, "vcs_info": {"vcs": system, "commit_id": commit}}:
            return [f"{system}+{url}@{commit}"]
        case {"url": url}:
            return [url]
    return [f"{_SLUICE}=={distribution.version}"]


def _show(folder: Path) -> None:
    """List the folder's plugins, as a worker would find them."""
    try:
        entries = entries_of_place(folder)
    except PluginError as error:
        raise click.ClickException(f"{folder} cannot be used: {error}") from error
    if not entries:
        raise click.ClickException(
            f"{folder} has no plugins: its packages name none (by an entry point in sluice.plugins), and it has no "
            "plugins.toml. Install a package that does."
        )
    errors = import_errors(entries)
    for entry in sorted(entries, key=_by_class):
        version = "" if entry.version is None else f" {entry.version}"
        click.echo(f"{entry.type or entry.kind.value:<17} {entry.class_name}{version}")
        if entry in errors:
            click.echo(f"{'':<17} broken: {errors[entry]}")
    if errors:
        raise SystemExit(1)
    click.echo(f"\nWorkers with {folder} in their plugin.path, or the folder that it is in, have these once restarted.")


def _by_class(entry: PluginEntry) -> str:
    return entry.class_name

"""The commands ``sluice context``: names for the addresses of clusters, of which one is in use.

They are kept in a file of the user's, ``$XDG_CONFIG_HOME/sluice/contexts.json``, which holds no secrets.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import click

from worker.cli.groups import CommandGroup
from worker.cli.output import columns

__all__ = ["Contexts", "context", "url_in_use"]

_DEFAULT_URL: Final = "http://localhost:8083"
_CHOSEN: Final = "SLUICE_CONTEXT"


@dataclass(frozen=True, slots=True)
class Contexts:
    """The clusters by their names, and the one in use."""

    clusters: Mapping[str, str] = field(default_factory=dict)
    used: str | None = None

    @classmethod
    def read(cls) -> Contexts:
        """Read the file; none if it does not exist."""
        try:
            given = json.loads(_file().read_text())
            clusters = {str(name): str(url) for name, url in given["clusters"].items()}
            return cls(clusters, given.get("used") if given.get("used") in clusters else None)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise click.ClickException(f"{_file()} cannot be read: {error}. Correct or remove it.") from error

    def write(self) -> None:
        """Write the file, whole or not at all."""
        file = _file()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, beside = tempfile.mkstemp(dir=file.parent, prefix=".contexts.")
            with os.fdopen(descriptor, "w") as stream:
                json.dump({**asdict(self), "clusters": dict(self.clusters)}, stream, indent=2)
            Path(beside).replace(file)
        except OSError as error:
            raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error

    def url(self, name: str) -> str:
        """Return the address of a cluster."""
        if name not in self.clusters:
            known = ", ".join(sorted(self.clusters)) or "none"
            raise click.ClickException(
                f"There is no context {name}; there are: {known}. Add it: sluice context add {name} URL"
            )
        return self.clusters[name]


def url_in_use() -> str:
    """Return the address of the cluster in use: that of ``SLUICE_CONTEXT``, of the context in use, or this machine."""
    contexts = Contexts.read()
    name = os.environ.get(_CHOSEN) or contexts.used
    return contexts.url(name) if name else _DEFAULT_URL


@click.group(cls=CommandGroup)
def context() -> None:
    """Name clusters, and choose the one that commands are for.

    \b
    Examples:
      sluice context add prod https://connect.example.com:8083
      sluice context use prod
      SLUICE_CONTEXT=staging sluice status
    """


@context.command("list")
def list_contexts() -> None:
    """List the clusters and their addresses; a star marks the one in use."""
    contexts = Contexts.read()
    chosen = os.environ.get(_CHOSEN) or contexts.used
    if not contexts.clusters:
        click.echo(f"There are no contexts; commands are for {_DEFAULT_URL}. Add one: sluice context add NAME URL")
        return
    rows = [("*" if name == chosen else "", name, url) for name, url in sorted(contexts.clusters.items())]
    click.echo(columns(("", "NAME", "URL"), rows))


@context.command()
@click.argument("name")
@click.argument("url")
def add(name: str, url: str) -> None:
    """Add the cluster NAME with the address of a worker's REST API, or change its address. The first one is used."""
    contexts = Contexts.read()
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise click.ClickException("The address must not contain a user: set SLUICE_USER and SLUICE_PASSWORD.")
    with_scheme = url if "://" in url else f"http://{url}"
    Contexts({**contexts.clusters, name: with_scheme}, contexts.used or name).write()
    click.echo(f"{name} is {with_scheme}.")


@context.command()
@click.argument("name")
def use(name: str) -> None:
    """Have commands be for the cluster NAME, unless --url, SLUICE_URL or SLUICE_CONTEXT say otherwise."""
    contexts = Contexts.read()
    url = contexts.url(name)
    Contexts(contexts.clusters, name).write()
    click.echo(f"Commands are for {name}, {url}.")


@context.command()
@click.argument("name")
def remove(name: str) -> None:
    """Forget the cluster NAME."""
    contexts = Contexts.read()
    contexts.url(name)
    left = {other: url for other, url in contexts.clusters.items() if other != name}
    Contexts(left, None if contexts.used == name else contexts.used).write()
    click.echo(f"Removed {name}.")


def _file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "sluice" / "contexts.json"

"""The command ``sluice ui``: the connectors of several clusters in one page, served on this machine."""

from __future__ import annotations

import signal
import threading
from importlib import metadata
from typing import Final

import click

from worker.cli.contexts import Contexts
from worker.cli.options import client_of

__all__ = ["ui"]

_HOST: Final = "127.0.0.1"
_NAMES: Final = frozenset({_HOST, "localhost"})
_PORT: Final = 8090


@click.command()
@click.option("--cluster", "clusters", multiple=True, metavar="NAME=URL", help="A cluster; may be given several times.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="Port of the page.")
def ui(clusters: tuple[str, ...], port: int) -> None:
    """Show the connectors of several clusters in one page, until interrupted.

    Without --cluster, they are those of `sluice context`. The page is served on this machine alone, and asks each
    cluster in your name: with SLUICE_TOKEN, or SLUICE_USER and SLUICE_PASSWORD, or ~/.netrc. It only reads; every
    row leads to the page of its own cluster.

    \b
    Examples:
      sluice ui --cluster prod=https://connect.example.com --cluster test=http://localhost:8083
      sluice context add prod https://connect.example.com && sluice ui
    """
    from rest.app import create_clusters_app  # noqa: PLC0415 - only this command needs it
    from rest.server.server import RestServer  # noqa: PLC0415
    from rest.ui.clusters import ClusterPages, Clusters  # noqa: PLC0415

    asked = Clusters({name: client_of(url) for name, url in _chosen(clusters).items()})
    server = RestServer([f"http://{_HOST}:{port}"], key="--port")
    server.answer_with(create_clusters_app(ClusterPages(asked, metadata.version("sluice-connect"), _NAMES)))
    click.echo(f"The page is at http://{_HOST}:{server.port}/ui")
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.close()
    asked.close()


def _chosen(given: tuple[str, ...]) -> dict[str, str]:
    """Return the addresses of the clusters by name."""
    chosen = {}
    for item in given:
        name, sign, url = item.partition("=")
        if not (name and sign and url):
            raise click.BadParameter(
                f"{item!r} should be NAME=URL, such as prod=http://connect:8083.", param_hint="--cluster"
            )
        chosen[name] = url
    known = chosen or dict(Contexts.read().clusters)
    if not known:
        raise click.UsageError("Name a cluster: --cluster NAME=URL, or sluice context add NAME URL")
    return known

"""``sluice init``: writes the files of a first pipeline, with comments."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from connect.errors import os_reason
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

__all__ = ["init"]

_SAMPLES: Final = Path(__file__).with_name("samples")
_FILES: Final = {
    "worker.properties": "a worker for this machine alone",
    "distributed.properties": "a worker of a cluster",
    "lines-in.properties": "a source: reads the lines of in.txt",
    "lines-out.properties": "a sink: writes them to out.txt",
}
_BOOTSTRAP: Final = "localhost:9092"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option(
    "--bootstrap-servers",
    help=f"Where Kafka is. [default: the broker of `sluice broker start`, or {_BOOTSTRAP}]",
)
def init(folder: Path, bootstrap_servers: str | None) -> None:
    """Write the files of a first pipeline to FOLDER: two workers and two connectors, with comments.

    Existing files are not overwritten.
    """
    if taken := [name for name in _FILES if (folder / name).exists()]:
        raise click.ClickException(f"{folder / taken[0]} already exists and is not overwritten. Use another folder.")
    values = {"@BOOTSTRAP@": bootstrap_servers or _running_broker() or _BOOTSTRAP, "@FOLDER@": str(folder.absolute())}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).write_text(_filled(name, values), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {os_reason(error)}") from error
    click.echo(_next_steps(folder, values["@BOOTSTRAP@"]))


def _filled(name: str, values: dict[str, str]) -> str:
    text = (_SAMPLES / name).read_text(encoding="utf-8")
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def _running_broker() -> str | None:
    info = EmbeddedBroker(BrokerConfig()).status()
    return None if info is None else info.bootstrap_servers


def _next_steps(folder: Path, bootstrap: str) -> str:
    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    worker, source, sink = (at(name) for name in ("worker.properties", "lines-in.properties", "lines-out.properties"))
    return "\n".join(
        (
            *(f"{folder / name}: {what}" for name, what in _FILES.items()),
            "",
            f"Next, with a broker at {bootstrap} (sluice broker start runs one):",
            f"  sluice standalone {worker} {source} {sink}",
            "and in another terminal:",
            f"  echo hello >> {at('in.txt')}",
            f"  cat {at('out.txt')}",
        )
    )

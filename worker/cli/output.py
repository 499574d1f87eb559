"""Prints command output: tables for people, JSON and YAML for programs, and colours on terminals only."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import click

__all__ = ["Output", "columns", "output_option", "print_document", "print_progress", "state"]

F = TypeVar("F", bound=Callable[..., object])

_COLOURS: Final = {
    "RUNNING": "green",
    "FAILED": "red",
    "PAUSED": "yellow",
    "STOPPED": "yellow",
    "UNASSIGNED": "yellow",
    "RESTARTING": "yellow",
}


class Output(StrEnum):
    """The output format of a command."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def output_option(command: F) -> F:
    """Add the option ``-o``, passed to the command as ``output: Output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([output.value for output in Output]),
        callback=lambda _context, _parameter, value: Output(value),
        default=Output.TABLE.value,
        show_default=True,
        help="A table, or JSON or YAML for other programs.",
    )(command)


def print_document(document: Any, output: Output, table: Callable[[], str]) -> None:
    """Print ``document`` as JSON or YAML, or the result of ``table``."""
    if output is Output.JSON:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif output is Output.YAML:
        import yaml  # noqa: PLC0415 - only this output needs it

        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=False)
        click.echo(text.removesuffix("...\n"), nl=False)
    else:
        click.echo(table())


def print_progress() -> None:
    """Print the start-up log of embedded servers to standard error as it arrives."""
    handler = logging.StreamHandler()
    for name in ("connect.internals.jvm", "worker.embedded"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers[:] = [handler]


def columns(header: Sequence[str], rows: Sequence[Sequence[object]], *, cut: bool = False) -> str:
    """Format rows as a table, with a dash for ``None``; ``cut`` truncates the last column at the terminal's width."""
    texts = [list(header), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[index]) for row in texts) for index in range(len(header))]
    room = (_line_width() if cut else sys.maxsize) - sum(widths[:-1]) - 2 * (len(header) - 1)
    lines = []
    for row in texts:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        lines.append("  ".join((*cells, _cut(row[-1], room))).rstrip())
    return "\n".join(lines)


def state(name: str) -> str:
    """Return the state of a connector or task in its colour, which ``click.echo`` shows only on a terminal."""
    return name if os.environ.get("NO_COLOR") else click.style(name, fg=_COLOURS.get(name))


def _cell(value: object) -> str:
    return "-" if value is None else " ".join(str(value).splitlines())


def _width(text: str) -> int:
    return len(click.unstyle(text))


def _cut(text: str, room: int) -> str:
    if room <= 0 or _width(text) <= room or text != click.unstyle(text):
        return text
    return f"{text[: max(room, len('…')) - 1]}…"


def _line_width() -> int:
    """Return the terminal's line width; unlimited if there is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize

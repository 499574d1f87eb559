"""Prints command output: tables for people, JSON and YAML for programs, and colours on terminals only."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import click

from connect.internals.status_line import stderr_handler, time_left

__all__ = ["Long", "Output", "columns", "counted", "output_option", "print_document", "print_progress", "state"]

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

_LEAST_ROOM: Final = 30
_FEW: Final = 10
_LINE_SECONDS: Final = 60.0
_INDENT: Final = 4
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
    handler = stderr_handler()
    for name in ("connect.internals.jvm", "worker.embedded"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers[:] = [handler]


def counted(items: Collection[T], what: str, every_seconds: float = _LINE_SECONDS) -> Iterator[T]:
    """Yield items, and tell how far they are on standard error, unless they are few: by a bar with rate and remaining
    time on a terminal, by a line every so many seconds elsewhere.
    """
    begun = told = time.monotonic()
    if len(items) >= _FEW and sys.stderr.isatty():
        with click.progressbar(items, label=what, show_pos=True, file=sys.stderr) as bar:
            bar.item_show_func = lambda _: f"{bar.pos / max(time.monotonic() - begun, 0.001):.1f}/s"
            yield from bar
        return
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and len(items) >= _FEW and now >= told + every_seconds:
            told, rate_so_far = now, done / max(now - begun, 0.001)
            left = (len(items) - done) / rate_so_far
            click.echo(f"{what}: {done} of {len(items)}, {rate_so_far:.1f}/s, {time_left(left)}", err=True)
        yield item


class Long(StrEnum):
    """What becomes of the last column's texts that are longer than a terminal's line."""

    WHOLE = "whole"
    CUT = "cut"
    WRAPPED = "wrapped"


def columns(header: Sequence[str], rows: Sequence[Sequence[object]], *, long: Long = Long.WHOLE) -> str:
    """Format rows as a table, with a dash for ``None``; ``long`` says how the last column fits a terminal's line."""
    texts = [list(header), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[index]) for row in texts) for index in range(len(header))]
    before = sum(widths[:-1]) + 2 * (len(header) - 1)
    room = _line_width() - before
    lines = []
    for row in texts:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        first, *rest = _fitted(row[-1], room, long)
        lines.append("  ".join((*cells, first)).rstrip())
        lines += [f"{' ' * (before if room >= _LEAST_ROOM else _INDENT)}{text}" for text in rest]
    return "\n".join(lines)


def state(name: str) -> str:
    """Return the state of a connector or task in its colour, which ``click.echo`` shows only on a terminal."""
    return name if os.environ.get("NO_COLOR") else click.style(name, fg=_COLOURS.get(name))


def _cell(value: object) -> str:
    return "-" if value is None else " ".join(str(value).splitlines())


def _width(text: str) -> int:
    return len(click.unstyle(text))


def _fitted(text: str, room: int, long: Long) -> Sequence[str]:
    """Return the lines of a text; one that is wrapped and has too little room goes below its row."""
    if long is Long.WHOLE or _width(text) <= room or text != click.unstyle(text):
        return (text,)
    if long is Long.CUT:
        return (f"{text[: max(room, 1) - 1]}…" if room > 0 else text,)
    if room < _LEAST_ROOM:
        return ("", *_wrapped(text, _line_width() - _INDENT))
    return _wrapped(text, room)


def _wrapped(text: str, room: int) -> Sequence[str]:
    return textwrap.wrap(text, max(room, 1), break_on_hyphens=False) or ("",)


def _line_width() -> int:
    """Return the terminal's line width; unlimited if there is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize

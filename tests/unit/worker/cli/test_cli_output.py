"""What the commands print."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from worker.cli.output import Output, columns, counted, output_option, print_document, state

DOCUMENT = {"name": "lines", "tasks": [{"id": 0, "state": "RUNNING"}], "worker": None, "text": "Grüße: ja"}


@click.command()
@output_option
def show(output: Output) -> None:
    """Print the document."""
    print_document(DOCUMENT, output, lambda: "a table")


@click.command()
def coloured() -> None:
    """Print a state in its colour."""
    click.echo(columns(("STATE", "WHERE"), [(state("FAILED"), "here"), (state("RUNNING"), None)]))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(show, arguments)


def test_a_document_is_a_table_or_json_or_yaml() -> None:
    assert run().output == "a table\n"
    assert yaml.safe_load(run("-o", "json").output) == DOCUMENT
    assert yaml.safe_load(run("--output", "yaml").output) == DOCUMENT
    assert run("-o", "yaml").output.startswith("name: lines\ntasks:\n")
    assert "'table', 'json', 'yaml'" in run("-o", "xml").output


def test_a_bare_list_is_yaml_without_the_end_of_a_document() -> None:
    @click.command()
    @output_option
    def names(output: Output) -> None:
        print_document("one", output, str)

    assert CliRunner().invoke(names, ["-o", "yaml"]).output == "one\n"


def test_a_table_has_its_columns_one_below_the_other() -> None:
    table = columns(("NAME", "TASKS", "CAUSE"), [("lines", 1, None), ("orders-in", 12, "no such\nfile")])
    assert table.splitlines() == [
        "NAME       TASKS  CAUSE",
        "lines      1      -",
        "orders-in  12     no such file",
    ]


def test_colours_are_for_a_terminal_and_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = CliRunner().invoke(coloured).output
    assert plain.splitlines() == ["STATE    WHERE", "FAILED   here", "RUNNING  -"]
    bright = CliRunner().invoke(coloured, color=True).output
    assert "\x1b[31mFAILED\x1b[0m   here" in bright
    assert click.unstyle(bright) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert CliRunner().invoke(coloured, color=True).output == plain


def test_what_is_long_is_cut_or_wrapped_at_the_end_of_a_terminals_line(tmp_path: Path) -> None:
    script = tmp_path / "shows.py"
    script.write_text(
        "from worker.cli.output import Long, columns\n"
        "rows = [('orders', 'no space is left on the device, so that nothing can be written')]\n"
        "for long in Long: print(columns(('NAME', 'CAUSE'), rows, long=long))\n"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, script], stdout=theirs, env={**os.environ, "COLUMNS": "40"}):
        os.close(theirs)
    lines = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    head, whole = "NAME    CAUSE", "orders  no space is left on the device, so that nothing can be written"
    wrapped = ["orders  no space is left on the device,", "        so that nothing can be written"]
    assert lines == [head, whole, head, "orders  no space is left on the device,…", head, *wrapped]


def test_what_takes_long_is_counted_by_a_bar_on_a_terminal(tmp_path: Path) -> None:
    script = tmp_path / "counted.py"
    script.write_text(
        "from worker.cli.output import counted\n"
        "assert list(counted(range(12), 'Changing')) == list(range(12))\n"
        "assert list(counted(range(3), 'Hardly')) == [0, 1, 2]\n"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, script], stderr=theirs, env={**os.environ, "COLUMNS": "100"}) as process:
        os.close(theirs)
        assert process.wait() == 0
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "Changing" in shown
    assert "12/12" in shown
    assert "/s" in shown
    assert "Hardly" not in shown


def test_elsewhere_it_is_counted_by_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(counted(range(10), "Changing", every_seconds=0)) == list(range(10))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9
    assert lines[4].startswith("Changing: 5 of 10, ")
    assert lines[4].endswith(" s to go")
    assert list(counted(range(10), "Changing")) == list(range(10))
    assert capsys.readouterr().err == ""

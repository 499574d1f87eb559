"""What the commands print."""

from __future__ import annotations

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from worker.cli.output import Output, columns, output_option, print_document, state

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

"""``sluice compact``, as far as it can be asked without Spark and without a cluster."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from worker.cli.main import main


def test_a_sink_without_tables_has_nothing_to_compact(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("name=a\nconnector.class=FileStreamSink\ntopics=t\nfile=/f\n")
    done = CliRunner().invoke(main, ["compact", str(file)])
    told = "FileStreamSinkConnector does not write tables of files: there is nothing to compact."
    assert (done.exit_code, done.output) == (1, f"Error: {told}\n")


def test_a_source_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("name=a\nconnector.class=FileStreamSource\ntopic=t\nfile=/f\n")
    done = CliRunner().invoke(main, ["compact", str(file)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "this connector is a source" in done.output

"""What a class says of itself, read without running its module."""

from __future__ import annotations

from pathlib import Path

from connect.internals.plugins import summary

MODULE = '''
raise SystemExit("never imported")


class Told:
    """Reads ``things``
    of all kinds.

    And more.
    """


class Untold(Told):
    pass
'''


def test_a_summary_is_the_first_paragraph_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "summed_up.py").write_text(MODULE)
    assert summary("summed_up.Told", tmp_path) == "Reads things of all kinds."
    assert summary("summed_up.Untold", tmp_path) == "", "what its base class is, it may not be"
    assert summary("summed_up.Nothing", tmp_path) == ""
    assert summary("connectors.jdbc.JdbcSinkConnector") == "Writes topics to tables of SQL databases."


def test_a_source_that_cannot_be_read_has_no_summary(tmp_path: Path) -> None:
    (tmp_path / "broken_source.py").write_text("class :")
    assert summary("broken_source.Told", tmp_path) == ""

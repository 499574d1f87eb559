"""What commands make of changes, of statuses, and of the clusters of the user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from worker.cli.connectors.configuration import edited_changes, parsed_changes
from worker.cli.connectors.outcome import Outcome, outcome_of
from worker.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SLUICE_CONTEXT", raising=False)
    monkeypatch.delenv("SLUICE_URL", raising=False)
    yield tmp_path


def sluice(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), prog_name="sluice")


def test_changes_are_keys_with_values_and_keys_to_remove() -> None:
    given = ["tasks.max=4", "query=a = b", "topic="]
    assert parsed_changes(given, ["transforms"]) == {
        "transforms": None,
        "tasks.max": "4",
        "query": "a = b",
        "topic": "",
    }
    with pytest.raises(click.UsageError, match=r"tasks\.max is not KEY=VALUE\. To remove a key"):
        parsed_changes(["tasks.max"], [])
    with pytest.raises(click.UsageError, match="Give KEY=VALUE"):
        parsed_changes([], [])


def test_an_edit_sends_only_what_it_changed() -> None:
    before = {"topic": "a", "password": "[hidden]", "old": "1"}
    assert edited_changes(before, {"topic": "b", "password": "[hidden]", "new": "2"}) == {
        "topic": "b",
        "new": "2",
        "old": None,
    }
    assert edited_changes(before, before) == {}


def status(connector: str, *tasks: str, started: str = "1") -> dict[str, Any]:
    return {
        "name": "c",
        "connector": {"state": connector, "started_at": started},
        "tasks": [{"id": number, "state": state, "started_at": started} for number, state in enumerate(tasks)],
    }


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        (None, Outcome.PENDING),
        (status("RUNNING", "RUNNING"), Outcome.RUNS),
        (status("RUNNING"), Outcome.HAS_NO_TASKS),
        (status("RUNNING", "RUNNING", "UNASSIGNED"), Outcome.PENDING),
        (status("RUNNING", "RUNNING", "FAILED"), Outcome.FAILED),
        (status("STOPPED"), Outcome.HALTED),
        (status("RESTARTING", "RUNNING"), Outcome.PENDING),
    ],
)
def test_a_status_says_what_became_of_a_connector(shown: dict[str, Any] | None, outcome: Outcome) -> None:
    assert outcome_of(shown, {}, ()) is outcome


def test_a_restart_is_seen_by_new_starts_of_all_that_was_restarted() -> None:
    before = {"": "1", "0": "1"}
    assert outcome_of(status("RUNNING", "RUNNING", started="1"), before, before) is Outcome.PENDING
    assert outcome_of(status("RUNNING", "FAILED", started="1"), before, before) is Outcome.PENDING
    assert outcome_of(status("RUNNING", "RUNNING", started="2"), before, before) is Outcome.RUNS


def test_contexts_name_clusters_and_one_is_in_use(home: Path) -> None:
    assert "There are no contexts; commands are for http://localhost:8083." in sluice("context", "list").output
    assert sluice("context", "add", "prod", "https://a:1").output == "prod is https://a:1.\n"
    assert sluice("context", "add", "test", "b:2").output == "test is http://b:2.\n"
    assert sluice("context", "list").output == "   NAME  URL\n*  prod  https://a:1\n   test  http://b:2\n"
    assert sluice("context", "use", "test").exit_code == 0
    assert json.loads((home / "sluice" / "contexts.json").read_text()) == {
        "clusters": {"prod": "https://a:1", "test": "http://b:2"},
        "used": "test",
    }
    missing = sluice("context", "use", "stage")
    assert missing.exit_code == 1
    assert "There is no context stage; there are: prod, test." in missing.output
    assert sluice("context", "remove", "test").exit_code == 0
    assert sluice("context", "list").output == "  NAME  URL\n  prod  https://a:1\n"


def test_commands_are_for_the_cluster_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    sluice("context", "add", "prod", "http://127.0.0.1:1")
    sluice("context", "add", "test", "http://127.0.0.1:2")
    assert "No worker answers at http://127.0.0.1:1:" in sluice("status").output
    monkeypatch.setenv("SLUICE_CONTEXT", "test")
    assert "No worker answers at http://127.0.0.1:2:" in sluice("status").output
    monkeypatch.setenv("SLUICE_URL", "http://127.0.0.1:3")
    assert "No worker answers at http://127.0.0.1:3:" in sluice("status").output
    assert "No worker answers at http://127.0.0.1:4:" in sluice("status", "--url", "127.0.0.1:4").output


def test_an_address_with_a_password_is_no_context() -> None:
    refused = sluice("context", "add", "prod", "https://ann:secret@a:1")
    assert refused.exit_code == 1
    assert "secret" not in refused.output


def groups(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield path
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from groups(below, (*path, name))


def test_no_line_of_help_is_cut() -> None:
    paths = list(groups(main))
    assert ("connectors",) in paths
    for path in paths:
        shown = sluice(*path, "--help")
        assert shown.exit_code == 0, path
        assert not [line for line in shown.output.splitlines()[1:] if line.rstrip().endswith("...")], path


def test_a_mistyped_command_is_answered_with_what_was_meant() -> None:
    assert "Did you mean `sluice status` or" in sluice("statsu").output
    assert "Did you mean `sluice connectors restart`" in sluice("connectors", "restrat").output
    assert "There is no command 'xyzzy'. There are " in sluice("offsets", "xyzzy").output

"""What has to change so that a cluster has the connectors that files describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.cli.apply.plan import Action, Change, Desired, Existing, plan, plan_text

FILE = Path("a.properties")


def desired(name: str = "a", state: str | None = None, initial: str | None = None, **config: str) -> Desired:
    return Desired(name, {"name": name, **config}, FILE, state, initial or state)


def existing(name: str = "a", state: str = "RUNNING", **config: str) -> dict[str, Existing]:
    return {name: Existing(name, {"name": name, **config}, state)}


def test_a_connector_that_is_not_there_is_created_with_its_state() -> None:
    (planned,) = plan([desired(topic="t", state="STOPPED")], {}, prune=False)
    assert planned.action is Action.CREATE
    assert planned.state_after == "STOPPED"
    assert planned.changes == (Change("name", None, "a"), Change("topic", None, "t"))


def test_a_connector_that_is_as_described_is_left_alone() -> None:
    (planned,) = plan([desired(topic="t")], existing(topic="t", state="PAUSED"), prune=True)
    assert planned.action is Action.NONE
    assert not planned.changes_something
    assert plan_text([planned], {}) == "unchanged  a"


def test_keys_that_are_added_changed_and_removed_are_told() -> None:
    (planned,) = plan([desired(new="1", same="s", other="2")], existing(old="0", same="s", other="1"), prune=False)
    assert planned.action is Action.UPDATE
    assert plan_text([planned], {}) == "update     a\n  + new = 1\n  - old = 0\n  ~ other = 1 -> 2"


def test_only_pruning_deletes_what_no_file_describes() -> None:
    there = existing("a") | existing("z") | existing("b")
    assert [item.name for item in plan([desired("a")], there, prune=False)] == ["a"]
    assert [(item.name, item.action) for item in plan([desired("a")], there, prune=True)] == [
        ("a", Action.NONE),
        ("b", Action.DELETE),
        ("z", Action.DELETE),
    ]


@pytest.mark.parametrize(
    ("wanted", "found", "after"),
    [
        (None, "PAUSED", None),
        ("PAUSED", "PAUSED", None),
        ("PAUSED", "RUNNING", "PAUSED"),
        ("STOPPED", "PAUSED", "STOPPED"),
        ("RUNNING", "STOPPED", "RUNNING"),
        ("RUNNING", "RUNNING", None),
        # It is meant to run: that it has failed is not for this command to mend.
        ("RUNNING", "FAILED", None),
        ("RUNNING", "UNASSIGNED", None),
    ],
)
def test_the_state_is_changed_where_one_is_stated(wanted: str | None, found: str, after: str | None) -> None:
    (planned,) = plan([desired(state=wanted)], existing(state=found), prune=False)
    assert planned.state_after == after
    assert planned.changes_something == (after is not None)


def test_an_initial_state_counts_only_for_a_connector_that_is_new() -> None:
    item = desired(initial="PAUSED")
    assert plan([item], {}, prune=False)[0].state_after == "PAUSED"
    assert plan([item], existing(), prune=False)[0].state_after is None


@pytest.mark.parametrize(
    "key",
    [
        "connection.password",
        "http.auth.token",
        "producer.override.sasl.jaas.config",
        "aws.secret.access.key",
        "api.key",
    ],
)
def test_secrets_are_hidden_by_the_names_of_their_keys(key: str) -> None:
    planned = plan([desired(**{key: "s3cret"})], existing(**{key: "older"}), prune=False)
    text = plan_text(planned, {})
    assert f"~ {key} = [hidden] -> [hidden]" in text
    assert "s3cret" not in f"{text}{planned}{planned[0].document(())}"


def test_secrets_are_hidden_that_the_plugin_says_are() -> None:
    planned = plan([desired(pin="1234")], {}, prune=False)
    assert "+ pin = [hidden]" in plan_text(planned, {"a": {"pin"}})
    assert planned[0].document({"pin"})["changes"][1] == {"key": "pin", "before": None, "after": "[hidden]"}


def test_a_reference_to_a_secret_is_shown_unless_something_stands_beside_it() -> None:
    (planned,) = plan([desired(password="${file:/s:p}")], existing(password="x${file:/s:p}"), prune=False)
    assert "~ password = [hidden] -> ${file:/s:p}" in plan_text([planned], {})

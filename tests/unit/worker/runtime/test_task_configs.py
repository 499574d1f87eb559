"""What connectors give as their task configs, right and wrong, as their process takes it."""

from __future__ import annotations

import threading
from multiprocessing.connection import Pipe

import pytest

from worker.messages import messages
from worker.messages.messages import Report, decode, encode
from worker.runtime.child import run
from worker.runtime.link import Line

ODD = "equipment.scripts.odd_connector.OddConnector"
WORKER = {
    "bootstrap.servers": "a:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "plugin.import.allowlist": ODD,
}


def said(gives: str, tasks_max: int = 5) -> Report:
    """The last of what the process of such a connector says before it is stopped."""
    worker, child = Pipe()
    config = {"name": "odd", "connector.class": ODD, "gives": gives, "tasks.max": str(tasks_max)}
    worker.send_bytes(encode(messages.RunConnector("odd", config, WORKER)))
    process = threading.Thread(target=lambda: run(Line(child, lambda: None), log_to_worker=False), daemon=True)
    process.start()
    reports: list[Report] = []
    while not any(isinstance(report, messages.Failed | messages.TaskConfigs) for report in reports):
        reports.append(decode(worker.recv_bytes()))
    if gives.startswith("at last"):
        reports.append(decode(worker.recv_bytes()))
    worker.send_bytes(encode(messages.Stop()))
    process.join(30)
    assert not process.is_alive()
    return reports[-1]


@pytest.mark.parametrize(
    ("gives", "taken"),
    [
        ("[]", []),
        ("()", []),
        ("[{'n': '1'}, {}]", [{"n": "1"}, {}]),
        ("[{'n': None, 'm': '…'}]", [{"m": "…"}]),
    ],
)
def test_task_configs_are_taken_without_what_is_none(gives: str, taken: list[dict[str, str]]) -> None:
    report = said(gives)
    assert isinstance(report, messages.TaskConfigs)
    assert [{k: v for k, v in config.items() if k != "task.class"} for config in report.configs] == taken


HALF = "has half of a character (a lone surrogate)"
WHOLE = "task_configs of connector odd has to return a list with a mapping of text to text for each task, but "


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        ("5", "returned a value of type int"),
        ("None", "returned None"),
        ("True", "returned a value of type bool"),
        ("{'n': '1'}", "returned a value of type dict"),
        ("'s3cret'", "returned a value of type str"),
        ("b's3cret'", "returned a value of type bytes"),
        ("{'s3cret'}", "returned a value of type set"),
        ("generator", "returned a value of type generator"),
        ("[5]", "number 0 of what it returned is a value of type int"),
        ("[{}, None]", "number 1 of what it returned is None"),
        ("[{}, 's3cret']", "number 1 of what it returned is a value of type str"),
        ("[[('n', 's3cret')]]", "number 0 of what it returned is a value of type list"),
        ("[{'n': 's3cret'}, {'m': 5}]", "the value of m in number 1 of what it returned is a value of type int"),
        ("[{'n': ['s3cret']}]", "the value of n in number 0 of what it returned is a value of type list"),
        ("[{'n': b's3cret'}]", "the value of n in number 0 of what it returned is a value of type bytes"),
        ("[{5: 's3cret'}]", "a key in number 0 of what it returned is a value of type int"),
        ("[{None: 's3cret'}]", "a key in number 0 of what it returned is None"),
        ("[{'n': '\\ud800'}]", f"the value of n in number 0 of what it returned {HALF}"),
        ("[{'\\ud800': 's3cret'}]", f"a key in number 0 of what it returned {HALF}"),
        ("at last a number", "the value of n in number 0 of what it returned is a value of type int"),
    ],
)
def test_what_is_none_fails_the_connector_and_is_named(gives: str, reason: str) -> None:
    report = said(gives)
    assert isinstance(report, messages.Failed)
    lines = report.trace.strip().splitlines()
    assert lines[0] == f"{WHOLE}{reason}."
    assert lines[2] == "Traceback (most recent call last):"
    assert lines[-1] == f"connect.errors.ConnectError: {WHOLE}{reason}."
    assert "s3cret" not in report.trace


def test_what_is_raised_fails_the_connector_whatever_it_is() -> None:
    report = said("SystemExit")
    assert isinstance(report, messages.Failed)
    assert report.trace.startswith("SystemExit: 3\n\nTraceback")
    assert report.trace.strip().endswith("SystemExit: 3")


def test_more_than_tasks_max_fails_the_connector() -> None:
    report = said("[{}, {}]", tasks_max=1)
    assert isinstance(report, messages.Failed)
    assert "The connector odd has generated 2 tasks, which is greater than 1" in report.trace


def test_a_connector_that_watches_nothing_says_so_and_ends_when_it_is_to_rest() -> None:
    worker, child = Pipe()
    config = {"name": "f", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}
    worker.send_bytes(encode(messages.RunConnector("f", config, WORKER)))
    process = threading.Thread(target=lambda: run(Line(child, lambda: None), log_to_worker=False), daemon=True)
    process.start()
    reports: list[Report] = []
    while not any(isinstance(report, messages.Failed | messages.Idle) for report in reports):
        reports.append(decode(worker.recv_bytes()))
    kinds = [type(report) for report in reports if not isinstance(report, messages.Watched)]
    assert kinds == [messages.Started, messages.TaskConfigs, messages.Idle]
    worker.send_bytes(encode(messages.Rest()))
    process.join(30)
    assert not process.is_alive()

"""The worker's log, as text and as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from worker.log import configure_logging, hide_in_log, log_as_json
from worker.recent_log import RecentLog
from worker.security.redaction import Redaction

SECRET = 'pass"word\nwith\\all'


@pytest.fixture
def recent() -> Iterator[RecentLog]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    redaction = Redaction()
    recent = configure_logging()
    hide_in_log(redaction)
    redaction.add([SECRET])
    log_as_json(redaction)
    yield recent
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def logged(recent: RecentLog, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    logging.getLogger().handlers[0].setStream(_Now())  # type: ignore[attr-defined]
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


class _Now:
    """Standard error as it is when something is written."""

    def write(self, text: str) -> None:
        import sys  # noqa: PLC0415 - it is replaced by the test

        sys.stderr.write(text)

    def flush(self) -> None:
        """Nothing is kept."""


def test_each_record_is_one_object(logged: Callable[[], list[dict[str, Any]]]) -> None:
    logging.getLogger("worker.x").warning("two\nlines", extra={"context": "a|b|task-12"})
    logging.getLogger("worker.y").info("connector", extra={"context": "c|worker"})
    logging.getLogger("worker.z").info("worker")
    task, connector, worker = logged()
    assert task.pop("time").endswith("Z")
    assert task == {"level": "WARN", "logger": "worker.x", "connector": "a|b", "task": 12, "message": "two\nlines"}
    assert (connector["connector"], "task" in connector) == ("c", False)
    assert worker.keys() == {"time", "level", "logger", "message"}


def test_an_exception_has_a_member_of_its_own(logged: Callable[[], list[dict[str, Any]]]) -> None:
    try:
        raise ValueError("no good")
    except ValueError:
        logging.getLogger("worker.x").exception("it failed")
    (line,) = logged()
    assert (line["level"], line["message"]) == ("ERROR", "it failed")
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no good")


def test_secrets_are_hidden_whatever_json_makes_of_their_characters(
    logged: Callable[[], list[dict[str, Any]]], recent: RecentLog
) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("worker.x").exception("it is %s", SECRET, extra={"context": "c|worker"})
    (line,) = logged()
    text = json.dumps(line)
    assert "word" not in text
    assert "[hidden]" in line["message"]
    kept = recent.since("c", 0, 10).lines
    assert "word" not in kept[0]
    assert kept[0].startswith("["), "what is kept in memory is text"


def test_control_characters_are_shown_and_not_obeyed(recent: RecentLog, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    logging.getLogger().handlers[0].setStream(_Now())  # type: ignore[attr-defined]
    logging.getLogger("output").warning("a\tb\nc\r\x00\x1b[2Jd\x9be")
    told = capsys.readouterr().err
    assert "a\tb\nc\\x0d\\x00\\x1b[2Jd\\x9be (output)\n" in told

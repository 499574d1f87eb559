"""The log of a connector, as its workers answer for it."""

from __future__ import annotations

from typing import Any

import pytest

from rest.client import RestClient
from worker.cli.connectors.logs import ConnectorLogs


class OneWorker(RestClient):
    """The only worker of a connector, which has logged some lines."""

    def __init__(self, *lines: str) -> None:
        super().__init__("http://localhost:8083")
        self._lines = lines

    def get(self, path: str, **parameters: str | int) -> Any:
        if path.endswith("/status"):
            return {"connector": {"worker_id": "localhost:8083"}, "tasks": []}
        after, most = int(parameters["after"]), int(parameters["lines"])
        new = self._lines[after:]
        return {"worker_id": "localhost:8083", "next": len(self._lines), "lines": new[-most:] if most else []}


def test_lines_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ConnectorLogs(OneWorker("[1] a", "[2] b", "[3] c"), "lines-in").print(2, follow=False)
    assert capsys.readouterr() == ("[2] b\n[3] c\n", "")


def test_a_connector_that_has_logged_nothing_is_said_to_have(capsys: pytest.CaptureFixture[str]) -> None:
    ConnectorLogs(OneWorker(), "lines-in").print(100, follow=False)
    assert capsys.readouterr() == ("", "lines-in has logged nothing on localhost:8083.\n")


def test_no_line_is_missed_if_none_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    ConnectorLogs(OneWorker("[1] a"), "lines-in").print(0, follow=False)
    assert capsys.readouterr() == ("", "")

"""When whoever asked a child is answered: at once, or once the child that did not answer is gone."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from worker.messages import messages
from worker.supervisor.inquiries import Inquiries
from worker.supervisor.process import Child, Launcher

VALIDATED = messages.Validated({"error_count": 0}, "source")


class Asked:
    """A child that gives these reports, and its launcher; the order of what happens is in ``seen``."""

    def __init__(self, *reports: messages.Report) -> None:
        self.seen: list[str] = []
        self.pipe = SimpleNamespace(closed=False)
        self._reports = list(reports)
        self.inquiries = Inquiries(
            cast("Launcher", self), lambda notice: self.seen.append(type(notice).__name__), timeout=60.0, grace=1.0
        )
        self.inquiries.ask(1, messages.ValidateConfig({}, {}))

    def home(self, _inquiry: messages.Command) -> str:
        return ""

    def launch(self, _label: str, _first: messages.Command) -> Child:
        return cast("Child", self)

    def send(self, _inquiry: Any) -> None:
        """Take it."""

    def receive(self) -> Sequence[messages.Report]:
        reports, self._reports = self._reports, []
        return reports

    def gone(self) -> bool:
        return False

    def kill(self) -> None:
        self.seen.append("killed")

    def join(self) -> str:
        self.seen.append("gone")
        return "was killed"


def test_whoever_asked_does_not_wait_until_the_process_that_answered_is_gone() -> None:
    asked = Asked(VALIDATED)
    asked.inquiries.hear(1)
    assert asked.seen == ["Answered", "killed", "gone"]
    assert asked.inquiries.children() == {}


def test_an_inquiry_is_cancelled_only_when_its_process_is_gone() -> None:
    asked = Asked()
    asked.inquiries.give_up(1)
    assert asked.seen == ["killed", "gone", "Answered"]
    assert asked.inquiries.children() == {}


def test_a_call_of_a_plugin_that_does_not_return_is_logged_and_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked(messages.Hanging("validate", 60.0, 0.0, "Orders.java:7", "the stack"), VALIDATED)
    asked.inquiries.hear(1)
    assert "ValidateConfig: validate has not returned for 60 s: Orders.java:7\nthe stack" in caplog.text
    assert asked.seen == ["Answered", "killed", "gone"]

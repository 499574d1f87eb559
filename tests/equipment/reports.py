"""What the processes of a test run report of each test."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

__all__ = ["BriefReports"]


class BriefReports:
    """A pytest plugin for the processes of a run, which send what they report to the one that began it.

    That takes both of them longer than most tests do. Of a test that has passed they send a report, rather than that it
    begins, three reports, and that it ends.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and report of its setup and teardown only what went wrong."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True

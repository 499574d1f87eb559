"""What the processes of a test run tell each other."""

from __future__ import annotations

import execnet
import pytest


def test_a_failure_with_a_lone_surrogate_can_be_sent(pytestconfig: pytest.Config) -> None:
    report = pytest.TestReport(
        "t", ("t.py", None, "t"), {}, "failed", "the example is \ud800", "call", [("log", "\udfff")]
    )
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    assert execnet.loads(execnet.dumps(data)) == data
    assert data["longrepr"] == "the example is \\ud800"

"""What the processes of a test run tell each other."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import execnet
import pytest


class FormattingLogger(logging.Logger):
    """A logger as PySpark's are: it gives each of its handlers a formatter."""

    def addHandler(self, handler: logging.Handler) -> None:  # noqa: N802 - logging's name
        handler.setFormatter(_AsJson())
        super().addHandler(handler)


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(record.getMessage())


LOGGERS: Final[dict[str, Any]] = logging.Logger.manager.loggerDict


@pytest.fixture(scope="module")
def formatting_logger() -> Iterator[str]:
    """The name of such a logger, which does not propagate: pytest gives its handlers to it, too."""
    logger = FormattingLogger("a logger that formats")
    logger.propagate = False
    LOGGERS[logger.name] = logger
    yield logger.name
    del LOGGERS[logger.name]


def test_a_failure_with_a_lone_surrogate_can_be_sent(pytestconfig: pytest.Config) -> None:
    report = pytest.TestReport(
        "t", ("t.py", None, "t"), {}, "failed", "the example is \ud800", "call", [("log", "\udfff")]
    )
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    assert execnet.loads(execnet.dumps(data)) == data
    assert data["longrepr"] == "the example is \\ud800"


@pytest.mark.usefixtures("formatting_logger")
def test_what_a_test_logs_is_captured_as_it_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger(__name__).warning("one line\nand another")
    assert "one line\nand another" in caplog.text

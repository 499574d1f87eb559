"""What Spark's Java writes, in the log of its task."""

from __future__ import annotations

import logging
import os

import pytest

from connectors.spark.java_log import JavaLog, java_output
from equipment.waiting import wait_until


def test_lines_have_the_levels_that_spark_gives_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "spark")
    log = JavaLog()
    log.line("|WARN| TaskSetManager: Lost task 0.0")
    log.line("|ERROR| Executor: Exception in task\\r\\njava.lang.RuntimeException: boom\\n\tat a.b.C(D.java:1)\\n")
    log.line("a line of its own")
    log.line("  ")
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "TaskSetManager: Lost task 0.0"),
        ("ERROR", "Executor: Exception in task\njava.lang.RuntimeException: boom\n\tat a.b.C(D.java:1)"),
        ("INFO", "a line of its own"),
    ]


def test_a_job_that_the_sink_has_ended_itself_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "spark")
    log = JavaLog()
    cause = 'org.apache.spark.SparkException: ...\\nconnectors.spark.decoding.report.LoadStop: {"rejection": null}\\n'
    log.line(f"|ERROR| Executor: Exception in task 0.0 in stage 7.0 (TID 9)\\n|cause|{cause}")
    log.line(f"|WARN| TaskSetManager: Lost task 0.0 in stage 7.0 (TID 9): {cause}|cause|")
    log.line("|ERROR| TaskSetManager: Task 0 in stage 7.0 failed 1 times; aborting job\\n|cause|")
    log.line(f"|ERROR| FileFormatWriter: Aborting job 1-2.\\n|cause|{cause}")
    log.line("|ERROR| Utils: Aborting task\\norg.apache.spark.TaskKilledException\\n|cause|")
    log.line("|ERROR| TaskSetManager: Task 0 in stage 8.0 failed 1 times; aborting job\\n|cause|")
    log.line(
        "|ERROR| Executor: Exception in task 0.0 in stage 9.0\\njava.lang.Error: x\\n|cause|java.lang.Error: x\\n\tat"
    )
    assert [record.message for record in caplog.records] == [
        "TaskSetManager: Task 0 in stage 8.0 failed 1 times; aborting job",
        "Executor: Exception in task 0.0 in stage 9.0\njava.lang.Error: x",
    ]


def test_the_log_is_bounded_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "spark")
    with java_output() as descriptor:
        text = "".join(f"|WARN| A: {number % 500}\n" for number in range(1000)) + "|WARN| A: no end"
        os.write(descriptor, text.encode())
    last = "801 more lines from Spark were left out: repeated, or beyond the limit per minute."
    wait_until("the end is read", lambda: caplog.records and caplog.records[-1].message == last)
    assert len(caplog.records) == 201

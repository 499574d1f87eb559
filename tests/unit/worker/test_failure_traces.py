"""What is wrong: in the line of a trace that a table shows, and in the whole messages of a page."""

from __future__ import annotations

import pytest

from worker.traces import cause_of, messages_of

CHAIN = """\
Traceback (most recent call last):
  File "sink.py", line 41, in start
    self._file = os.open(self.config.file)
FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "child.py", line 71, in run
    raise ConnectError(
connect.errors.ConnectError: /nowhere cannot be opened.
Make its folder.
"""


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (CHAIN, "/nowhere cannot be opened."),
        ("cannot read /tmp/in.txt: permission denied\n\n" + CHAIN, "cannot read /tmp/in.txt: permission denied"),
        ("Traceback (most recent call last):\n  File x\nValueError: no\n", "ValueError: no"),
        ("Tolerance exceeded in error handler: no JSON (value.converter)\n\n" + CHAIN, "no JSON (value.converter)"),
        ("", "unknown; see the worker's log"),
    ],
)
def test_the_cause_is_one_line_of_the_trace(trace: str, cause: str) -> None:
    assert cause_of(trace) == cause


JAVA = """\
org.apache.kafka.connect.errors.ConnectException: the table is gone
\tat com.example.Task.put(Task.java:5)
\t... 3 more
Caused by: java.sql.SQLException: no table <t>
Check the name.
\tat com.example.Db.run(Db.java:9)
"""
NEVER_RAISED = """\
The record at offset 0 of t-0 was not delivered: POST http://x/ was answered with HTTP status 401

connect.errors.DataError: POST http://x/ was answered with HTTP status 401

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "sink.py", line 41, in put
    raise ConnectError(text) from error
connect.errors.ConnectError: The record at offset 0 of t-0 was not delivered
"""
NAMED = "worker.X: it broke\n\nTraceback (most recent call last):\n  File x\nKeyError: 'a'\n"


@pytest.mark.parametrize(
    ("trace", "messages"),
    [
        (
            NEVER_RAISED,
            ["The record at offset 0 of t-0 was not delivered: POST http://x/ was answered with HTTP status 401"],
        ),
        (
            CHAIN,
            [
                "/nowhere cannot be opened.\nMake its folder.",
                "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'",
            ],
        ),
        (
            JAVA,
            [
                "org.apache.kafka.connect.errors.ConnectException: the table is gone",
                "java.sql.SQLException: no table <t>\nCheck the name.",
            ],
        ),
        (NAMED, ["worker.X: it broke", "KeyError: 'a'"]),
        (f"it broke: 'a'\n\n{NAMED.partition(chr(10))[2]}", ["it broke: 'a'"]),
        ("", ["unknown; see the worker's log"]),
    ],
)
def test_the_messages_of_a_trace_are_whole_and_told_once(trace: str, messages: list[str]) -> None:
    assert messages_of(trace) == messages

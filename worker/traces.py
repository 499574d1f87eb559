"""Reduces a stack trace to what is wrong: in one line for tables, in whole messages for a page."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cause_of", "messages_of"]

_TRACEBACK: Final = "Traceback (most recent call last)"
_PREAMBLE: Final = re.compile(r"^(?:connect\.(?:config\.)?errors\.\w+: )?(?:Tolerance exceeded in error handler: )?")
"""A prefix that every such error has, and that says nothing beyond the state FAILED."""
_CLASS: Final = re.compile(r"^[\w.$]+: ")
_BETWEEN: Final = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_JAVA_FRAMES: Final = re.compile(r"^\s+(?:at [\w.$<>/@-]+\(|\.\.\. \d+ (?:more|common frames))")
_JAVA_CAUSE: Final = "Caused by: "
_MOST_MESSAGES: Final = 20
_UNKNOWN: Final = "unknown; see the worker's log"


def cause_of(trace: str) -> str:
    """Return the line that says what is wrong: the first line, or the last error of a bare Python traceback."""
    lines = [line for line in trace.splitlines() if line.strip()]
    if lines and lines[0].startswith(_TRACEBACK):
        last = max(number for number, line in enumerate(lines) if line.startswith(_TRACEBACK))
        lines = [line for line in lines[last + 1 :] if not line[0].isspace()]
    return _PREAMBLE.sub("", lines[0].strip()) if lines else _UNKNOWN


def messages_of(trace: str) -> list[str]:
    """Return the whole messages of a trace, the error that ended the work first, then what caused it.

    A cause whose text the messages before it have already is left out.
    """
    found: list[str] = []
    for message in map(_tidied, _told(trace)[:_MOST_MESSAGES]):
        if message and not any(_CLASS.sub("", message) in earlier for earlier in found):
            found.append(message)
    return found or [_UNKNOWN]


def _told(trace: str) -> list[str]:
    """Return the messages in the order in which they explain each other.

    Python prints the oldest error first, and Java the newest; what stands before a traceback is the newest of all.
    """
    above: list[list[str]] = [[]]
    errors: list[list[str]] = []
    in_frames = False
    for line in trace.splitlines():
        if line.startswith(_TRACEBACK):
            errors.append([])
            in_frames = True
        elif errors:
            in_frames = in_frames and line[:1].isspace()
            if not in_frames and line not in _BETWEEN:
                errors[-1].append(line)
        elif line in _BETWEEN:
            # An error that was never raised has no traceback: it stands below the blank line after what is told.
            end = above[-1].index("") if "" in above[-1] else len(above[-1])
            errors.append(above[-1][end:])
            del above[-1][end:]
        elif line.startswith(_JAVA_CAUSE):
            above.append([line.removeprefix(_JAVA_CAUSE)])
        elif not _JAVA_FRAMES.match(line):
            above[-1].append(line)
    return ["\n".join(lines) for lines in (*above, *reversed(errors))]


def _tidied(message: str) -> str:
    return _PREAMBLE.sub("", message.strip())

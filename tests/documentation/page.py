"""A page of the documentation as a transcript: files to write, commands to run, and what these print.

- A fenced block after a line that ends with a name in backticks and a colon is that file: "`worker.properties`:".
- A ``bash`` block is commands. A block without a language right after it is what the last of them prints, in which
  ``...`` stands for any text.
- ``<!-- run: skip -->`` before a block leaves it out, ``<!-- run: slow -->`` leaves it to ``make docs-test``.
- Any other block is there to be read.

A port is written after a colon, in commands too (``sed s/:8083/:8084/``), since tests have ports of their own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Commands", "File", "Step", "commands_of", "parse", "prints"]

_FENCE: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
_FILE: Final = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:$")
_MARK: Final = re.compile(r"<!-- run: (?P<what>\w+)[^>]*-->$")
_MARKS: Final = {"skip", "slow"}


@dataclass(frozen=True, slots=True)
class File:
    """A file to be written, at the line of its page."""

    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands of one block, and what the last of them prints, if the page says it."""

    line: int
    commands: tuple[str, ...]
    printed: str | None = None
    slow: bool = False


Step = File | Commands


def parse(path: Path) -> list[Step]:
    """The steps of a page, in its order."""
    return list(_steps(path.read_text(encoding="utf-8")))


def prints(expected: str, output: str) -> bool:
    """Whether a command's output is what the page says; runs of blanks are as good as one."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in _spaced(expected).split("..."))
    return re.fullmatch(pattern.replace(r"\ ", r"\s*"), " ".join(output.split()), re.DOTALL) is not None


def commands_of(block: str) -> Iterator[str]:
    """The commands of a block: a line each, or as many as bash needs to make one."""
    command = ""
    for line in block.splitlines(keepends=True):
        command += line
        if command.strip() and _is_whole(command):
            if not command.lstrip().startswith("#"):
                yield command.strip()
            command = ""
    assert not command.strip(), f"this command has no end: {command}"


def _steps(page: str) -> Iterator[Step]:
    blocks = list(_FENCE.finditer(page))
    for number, block in enumerate(blocks):
        before = page[: block.start()].rstrip().rpartition("\n")[2].strip()
        line = page.count("\n", 0, block.start()) + 1
        mark = _MARK.search(before)
        assert mark is None or mark["what"] in _MARKS, f"line {line}: {mark and mark[0]} is none of {_MARKS}"
        if mark is not None and mark["what"] == "skip":
            continue
        text = re.sub(rf"^{block['indent']}", "", block["text"], flags=re.MULTILINE)
        if (file := _FILE.search(before)) is not None:
            yield File(line, file["name"], text)
        elif block["language"] == "bash":
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            printed = (
                following is not None
                and not following["language"]
                and not page[block.end() : following.start()].strip()
            )
            yield Commands(
                line,
                tuple(commands_of(text)),
                following["text"] if printed and following is not None else None,
                slow=mark is not None,
            )


def _spaced(expected: str) -> str:
    return re.sub(r"\s*\.\.\.\s*", " ... ", expected)


def _is_whole(command: str) -> bool:
    if command.rstrip("\n").endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return checked.returncode == 0 and not checked.stderr

"""The runner of the pages finds what is not true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from page import Commands, File, commands_of, parse, prints
from session import Session

from equipment.waiting import wait_until
from equipment.workers.processes import runs

PAGE = """\
The file, `a/b.txt`:

```text
hello
```

```bash
cat a/b.txt  # a comment
echo \\
  two
```
```
two
```

<!-- run: skip, it is dangerous -->
```bash
rm -rf /
```

- A block in a list, `c.json`:

  ```json
  {"a": 1}
  ```

<!-- run: slow -->
```bash
echo 'a
b'
```

Text before what looks like output.

```
not output
```
"""


def page(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "page.md"
    file.write_text(text)
    return file


def follow(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    session = Session(folder, {"PATH": os.environ["PATH"]}, {"@here@": "there"}, "install")
    session.follow(parse(page(tmp_path, text)), slow=False)


def test_a_page_is_files_and_commands(tmp_path: Path) -> None:
    assert parse(page(tmp_path, PAGE)) == [
        File(3, "a/b.txt", "hello\n"),
        Commands(7, ("cat a/b.txt  # a comment", "echo \\\n  two"), "two\n"),
        File(23, "c.json", '{"a": 1}\n'),
        Commands(28, ("echo 'a\nb'",), None, slow=True),
    ]


def test_commands_may_take_several_lines() -> None:
    block = "# a comment\ncat <<EOF\na\nEOF\n\ncurl -d '{\n}'\n"
    assert list(commands_of(block)) == ["cat <<EOF\na\nEOF", "curl -d '{\n}'"]


def test_output_may_leave_something_open() -> None:
    assert prints("A  ...\nb ... c\n", "A 12:30\nb c\n")
    assert prints("a\n...\n", "a\nb\nc\n")
    assert not prints("a\n", "a\nb\n")
    assert not prints("a ... b", "a c")


def test_a_page_that_is_true_is_followed(tmp_path: Path) -> None:
    follow(tmp_path, PAGE)


def test_folders_and_exports_stay(tmp_path: Path) -> None:
    first = "```bash\ninstall it\nmkdir d\ncd d\nexport X=1\n```\n"
    follow(tmp_path, first + "```bash\necho @here@ $X ${PWD##*/}\n```\n```\n@here@ 1 d\n```\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```bash\nfalse\n```\n", "line 1: false\nended with 1"),
        ("\n```bash\nno-such-command\n```\n", "line 2: no-such-command\nended with 127"),
    ],
)
def test_a_page_that_is_not_true_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(AssertionError) as caught:
        follow(tmp_path, text)
    assert told in str(caught.value)


def test_a_mark_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="line 2"):
        parse(page(tmp_path, "<!-- run: never -->\n```bash\nls\n```\n"))


def test_a_command_that_does_not_end_is_ended_and_shows_what_it_has_printed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    session = Session(folder, {"PATH": os.environ["PATH"]}, {}, None, patience=2.0)
    steps = parse(page(tmp_path, "```bash\necho installing; sleep 600 & echo $! > pid; wait\n```\n"))
    with pytest.raises(AssertionError, match=r"has not ended after 2 s:\ninstalling\n"):
        session.follow(steps, slow=False)
    wait_until("it is gone", lambda: not runs(int((folder / "pid").read_text())))

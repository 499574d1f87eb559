"""The files in what Hadoop tells of a folder."""

from __future__ import annotations

import pytest

from connect.errors import ConnectError
from connectors.spark.sources.files.bookmark import FoundFile
from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.listing import FileFilter, parse_statuses
from connectors.spark.sources.files.reader import BadFile, FilePart, file_groups, readable_parts

REST = "access_time=0; owner=; group=; permission=rw-; isSymlink=false}"


def status(path: str, size: int, modified: int) -> str:
    return (
        f"LocatedFileStatus{{path={path}; isDirectory=false; length={size}; replication=1; blocksize=1; "
        f"modification_time={modified}; {REST}"
    )


def test_statuses_become_files_whatever_their_names_look_like() -> None:
    odd = "file:/lake/a/x; isDirectory=false; length=9; replication=1; blocksize=1; modification_time=9; \n.csv"
    text = "\n\0".join([status(odd, 1, 2), status("file:/lake/b", 3, 4)])
    files = list(parse_statuses(text, "file:/lake", FileFilter("*", recursive=True)))
    assert [(file.path, file.size, file.modified) for file in files] == [(odd, 1, 2), ("file:/lake/b", 3, 4)]
    assert [file.name for file in files] == [odd.removeprefix("file:/lake/"), "b"]


def test_an_unknown_form_is_an_error() -> None:
    with pytest.raises(ConnectError, match="unknown form"):
        list(parse_statuses("Nonsense{}", "file:/lake", FileFilter("*", recursive=True)))


@pytest.mark.parametrize(
    ("pattern", "recursive", "name", "taken"),
    [
        ("*", True, "a/b.csv", True),
        ("*", False, "a/b.csv", False),
        ("*.csv", True, "a/b.csv", True),
        ("*.csv", True, "a/b.txt", False),
        ("a/*.csv", True, "a/b.csv", True),
        ("a/*.csv", True, "b/b.csv", False),
    ],
)
def test_a_pattern_is_of_names_or_with_a_slash_of_paths(pattern: str, recursive: bool, name: str, taken: bool) -> None:
    assert FileFilter(pattern, recursive=recursive).takes(name) is taken


def files(*names: str) -> list[FoundFile]:
    return [FoundFile(f"file:/lake/{name}", name, 1, 1) for name in names]


def test_files_are_grouped_by_topic_and_by_the_columns_of_their_folders() -> None:
    config = SparkFileSourceConfig.parse({"store.url": "/data/lake", "topic": "in.${folder}", "name": "x"})
    groups = list(file_groups(files("top", "a/b/one", "a/day=1/two", "a/day=2/three", "a/four"), config))
    assert [(group.topic, group.columns, sorted(file.name for file in group.files)) for group in groups] == [
        ("in.a", (), ["a/four"]),
        ("in.a", ("day",), ["a/day=1/two", "a/day=2/three"]),
        ("in.a.b", (), ["a/b/one"]),
        ("in.lake", (), ["top"]),
    ]


def test_files_that_cannot_be_read_are_found_among_the_others() -> None:
    reads: list[int] = []

    def read(chosen: object) -> object:
        assert isinstance(chosen, list)
        reads.append(len(chosen))
        if any(file.name == "bad" for file in chosen):
            raise ValueError("it is broken")
        return FilePart(chosen, None)  # type: ignore[arg-type]

    parts = list(readable_parts(files("a", "b", "bad", "c", "d"), read))  # type: ignore[arg-type]
    bad = [part for part in parts if isinstance(part, BadFile)]
    assert [(part.file.name, part.reason) for part in bad] == [("bad", "it is broken")]
    good = [file.name for part in parts if isinstance(part, FilePart) for file in part.files]
    assert sorted(good) == ["a", "b", "c", "d"]
    assert reads == [5, 2, 3, 1, 2]

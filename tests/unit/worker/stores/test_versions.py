"""The versions of configurations: which changes are new, who notes them, and where they are kept."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from connect.errors import ConnectError, DataError
from equipment.stores.versions import MemoryVersionStore
from worker.stores.java_json import dump
from worker.stores.versions.file import FileVersionStore
from worker.stores.versions.service import VersionService
from worker.stores.versions.version import (
    MOST_VERSIONS,
    Seen,
    Version,
    document,
    forgotten,
    news,
    parse,
    rebased,
    vanished,
)


def seen(name: str, revision: int, config: dict[str, str] | None, author: str | None = None) -> Seen:
    return Seen(name, revision, 1000 + revision, author, config)


FIRST, SECOND, END = seen("c", 5, {"a": "1"}, "ann"), seen("c", 7, {"a": "2"}), seen("c", 8, None, "bob")


def test_each_change_is_a_version() -> None:
    assert news({}, [FIRST, SECOND, END]) == [Version(1, FIRST), Version(2, SECOND), Version(3, END)]
    assert news({"c": Version(2, SECOND)}, [FIRST, SECOND, END]) == [Version(3, END)], "the others are kept already"


def test_what_changes_nothing_is_no_version() -> None:
    assert news({"c": Version(1, FIRST)}, [seen("c", 6, {"a": "1"})]) == []
    assert news({}, [END]) == [], "nobody knows what was deleted"


def test_a_connector_that_is_made_again_goes_on_with_its_numbers() -> None:
    again = seen("c", 9, {"a": "3"})
    assert news({"c": Version(3, END)}, [again]) == [Version(4, again)]


def test_revisions_that_begin_anew_are_noticed() -> None:
    present = seen("c", 2, {"a": "other"})
    latest = rebased({"c": Version(7, SECOND)}, [present])
    assert news(latest, [present]) == [Version(8, present)]
    unchanged = seen("c", 2, {"a": "2"})
    assert news(rebased({"c": Version(7, SECOND)}, [unchanged]), [unchanged]) == []


def test_a_connector_that_is_there_no_more_has_vanished() -> None:
    latest = {"c": Version(2, SECOND), "d": Version(1, seen("d", 6, {})), "gone": Version(3, seen("gone", 4, None))}
    assert vanished(latest, [seen("d", 6, {})], 4711) == [Seen("c", 8, 4711, None, None)]


def test_those_deleted_first_are_forgotten() -> None:
    ends = {name: Version(2, seen(name, number, None)) for number, name in enumerate("edcb")}
    assert forgotten({**ends, "live": Version(1, FIRST)}, 2) == [ends["e"], ends["d"]]


def test_a_version_is_read_as_it_was_written() -> None:
    for version in (Version(1, FIRST), Version(3, END)):
        assert parse(dump(document(version))) == version
    with pytest.raises(DataError, match="'config' should be an object"):
        parse(dump({**document(Version(1, FIRST)), "config": {"a": 1}}))


@pytest.fixture
def store() -> MemoryVersionStore:
    return MemoryVersionStore()


@pytest.fixture
def service(store: MemoryVersionStore) -> Iterator[VersionService]:
    service = VersionService(store)
    service.start()
    yield service
    service.close()


def read(service: VersionService, name: str) -> list[Version]:
    answer: Future[list[Version]] = service.versions(name)
    return answer.result(30)


def test_only_a_leader_notes_and_it_notes_what_the_one_before_it_did_not(service: VersionService) -> None:
    service.saw(FIRST)
    service.saw(SECOND)
    assert read(service, "c") == []
    service.lead([SECOND], complete=True)
    assert read(service, "c") == [Version(1, FIRST), Version(2, SECOND)]
    service.follow()
    service.saw(END)
    assert [version.number for version in read(service, "c")] == [1, 2]


def test_a_leader_notes_what_was_deleted_while_nobody_looked(
    service: VersionService, store: MemoryVersionStore
) -> None:
    store.append([Version(1, FIRST)], [])
    service.lead([], complete=True)
    assert [version.seen.config for version in read(service, "c")] == [{"a": "1"}, None]


def test_configurations_of_one_run_do_not_vanish(service: VersionService, store: MemoryVersionStore) -> None:
    store.append([Version(1, FIRST)], [])
    service.lead([], complete=False)
    assert read(service, "c") == [Version(1, FIRST)]


def test_what_could_not_be_written_is_written_later(
    service: VersionService, store: MemoryVersionStore, caplog: pytest.LogCaptureFixture
) -> None:
    service.lead([FIRST], complete=True)
    assert len(read(service, "c")) == 1
    store.fails = True
    service.saw(SECOND)
    with pytest.raises(ConnectError, match="the store is away"):
        read(service, "c")
    assert "could not be added to their history; the worker will try again: the store is away" in caplog.text
    store.fails = False
    service.saw(END)
    assert [version.seen for version in read(service, "c")] == [FIRST, SECOND, END]


def test_a_file_keeps_the_last_versions_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history"
    store = FileVersionStore(file)
    assert store.latest() == {}
    versions = [Version(number, seen("c", number, {"a": str(number)})) for number in range(1, 60)]
    store.append(versions, [])
    store.append([Version(1, seen("d", 1, {}))], [])
    kept = FileVersionStore(file)
    assert [version.number for version in kept.versions("c")] == list(range(60 - MOST_VERSIONS, 60))
    assert {name: version.number for name, version in kept.latest().items()} == {"c": 59, "d": 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept.append([], [versions[-1]])
    assert list(kept.latest()) == ["d"]


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("something else\n")
    with pytest.raises(ConnectError, match=r"config\.history\.file=.* cannot be read .*move it away"):
        FileVersionStore(file).append([Version(1, FIRST)], [])
    assert file.read_text() == "something else\n"

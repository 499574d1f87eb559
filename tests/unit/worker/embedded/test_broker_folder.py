from __future__ import annotations

from pathlib import Path

import pytest

from connect.internals.jvm.java import Java
from worker.embedded.broker.archive import class_archive, keep_archive
from worker.embedded.broker.folder import BrokerState, broker_folder, format_storage
from worker.embedded.broker.settings import Ports


def test_the_state_reads_back_as_written(tmp_path: Path) -> None:
    folder = broker_folder(tmp_path)
    assert folder.read_state() is None
    state = BrokerState(7, Ports(1, 2), "4.3.1", explicit=True, properties={"a": "b"}, archive="x")
    folder.write_state(state)
    assert folder.read_state() == state


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": 1, "ports": {"x": 1}}', '{"pid": 1, "ports": 3}'])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker.json").write_text(text, encoding="utf-8")
    assert broker_folder(tmp_path).read_state() is None


def test_the_log_of_the_start_before_is_kept(tmp_path: Path) -> None:
    folder = broker_folder(tmp_path)
    folder.rotate_log()
    folder.log.write_text("one", encoding="utf-8")
    folder.rotate_log()
    assert not folder.log.exists()
    assert (tmp_path / "broker.log.1").read_text(encoding="utf-8") == "one"


def test_formatting_makes_a_cluster_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    format_storage(data)
    first = (data / "meta.properties").read_text(encoding="ascii")
    keys = dict(line.split("=") for line in first.splitlines())
    assert (keys["version"], keys["node.id"]) == ("1", "1")
    assert len(keys["cluster.id"]) == len(keys["directory.id"]) == 22
    assert keys["cluster.id"] != keys["directory.id"]
    assert (data / "bootstrap.checkpoint").stat().st_size == 411
    format_storage(data)
    assert (data / "meta.properties").read_text(encoding="ascii") == first


def test_an_archive_is_made_once_and_then_used(tmp_path: Path) -> None:
    java = Java(tmp_path / "java", 17, tmp_path, bundled=False)
    making = class_archive(tmp_path, java, ["-cp", "a.jar"])
    assert making.partial is not None
    assert making.flags == (f"-XX:ArchiveClassesAtExit={making.partial}",)
    making.partial.write_bytes(b"classes")
    keep_archive(making.partial, making.path)
    using = class_archive(tmp_path, java, ["-cp", "a.jar"])
    assert using.partial is None
    assert using.flags == (f"-XX:SharedArchiveFile={making.path}",)


def test_other_jars_and_javas_have_other_archives_and_the_newest_stays(tmp_path: Path) -> None:
    old, new = Java(tmp_path / "java", 17, tmp_path, False), Java(tmp_path / "java", 25, tmp_path, True)
    archives = [class_archive(tmp_path / "archives", java, [jar]) for java in (old, new) for jar in ("a.jar", "b.jar")]
    assert len({archive.path for archive in archives}) == 4
    assert archives[-1].flags == (f"-XX:AOTCacheOutput={archives[-1].partial}",)
    for archive in archives:
        assert archive.partial is not None
        archive.partial.touch()
        keep_archive(archive.partial, archive.path)
    assert list((tmp_path / "archives").iterdir()) == [archives[-1].path]


def test_a_broker_that_left_no_archive_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "broker-1.jsa").touch()
    keep_archive(tmp_path / "partial", tmp_path / "broker-2.jsa")
    assert [path.name for path in tmp_path.iterdir()] == ["broker-1.jsa"]

"""The archive of classes from which Spark's Java starts: which one it is, and how Java is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.internals.jvm.java import Java
from connectors.spark.java_archive import spark_archive, with_archive

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The jars of a Spark."""
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    (folder / "spark-core.jar").write_bytes(b"jar")
    monkeypatch.setenv("SPARK_HOME", str(folder.parent))
    return folder


def test_each_spark_and_each_kind_of_java_has_its_own(jars: Path, tmp_path: Path) -> None:
    def path(**settings: str) -> Path:
        java = Java(tmp_path / "java", 17, tmp_path, bundled=False)
        return spark_archive(java, tmp_path, {OPTIONS: settings.get("options", "")}).path

    first = path()
    assert path(options="-Dlog=file -Dother='a b'") == first
    assert path(options="-XX:+UseZGC") != first
    (jars / "spark-core.jar").write_bytes(b"newer jar")
    assert path() != first


def test_java_is_told_of_an_archive_that_is_there(jars: Path, tmp_path: Path) -> None:
    assert jars.is_dir()
    home = tmp_path / "my home"
    archive = spark_archive(Java(tmp_path / "java", 17, tmp_path, bundled=False), home, {OPTIONS: "-Dlog=file"})
    without = with_archive({OPTIONS: "-Dlog=file", "spark.master": "local[2]"}, archive)
    assert without == {
        OPTIONS: "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED -Dlog=file",
        "spark.master": "local[2]",
    }
    archive.path.parent.mkdir(parents=True)
    archive.path.touch()
    assert with_archive({}, archive)[OPTIONS].startswith(f"'-XX:SharedArchiveFile={archive.path}' ")

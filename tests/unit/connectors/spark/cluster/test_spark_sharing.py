"""Clusters and shared applications, as far as no Spark is needed: code to send, executors to wait for, terms, hosts."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.internals.jvm.shared_process import Membership, has_members
from connectors.spark.cluster.application import (
    Application,
    ApplicationFolder,
    Terms,
    agree,
    session_name,
    split_settings,
)
from connectors.spark.cluster.code import is_local, plugin_folders, shipped_folders, shipping_settings
from connectors.spark.cluster.executors import Answer, ExecutorWatch, unfit_executors
from connectors.spark.errors import failed_executor

CLUSTER = {"spark.master": "spark://host:7077"}


# -- code --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("master", "local"), [("local", True), ("local[4]", True), ("local-cluster[2,1,512]", False), ("yarn", False)]
)
def test_a_local_master_has_its_executors_in_the_driver(master: str, local: bool) -> None:
    assert is_local(master) is local
    if local:
        assert shipping_settings({"spark.master": master}, Path("/nowhere")) == {}


def test_code_and_plugins_are_sent_as_one_zip_that_is_made_once(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    (plugins / "__pycache__").mkdir(parents=True)
    (plugins / "__pycache__" / "mine.pyc").touch()
    (plugins / "mine.py").write_text("X = 1")
    props = {**CLUSTER, "plugin.path": str(plugins), "spark.archives": "env.tar.gz#env"}
    settings = shipping_settings(props, tmp_path)
    users, ours = settings["spark.archives"].split(",")
    assert users == "env.tar.gz#env"
    archive, _, name = ours.partition("#")
    assert settings["spark.executorEnv.PYTHONPATH"] == settings["spark.executorEnv.SLUICE_SHIPPED"] == name
    shipped = {
        Path(folder).relative_to(name).as_posix()
        for folder in shipped_folders([str(plugins)], {"SLUICE_SHIPPED": name})
    }
    with zipfile.ZipFile(archive) as content:
        names = content.namelist()
        assert content.read(f"{shipped.pop()}/mine.py").decode() == "X = 1"
    assert {
        "connect/plugins.toml",
        "connect/internals/plugins/registry.py",
        "connectors/spark/sink/__init__.py",
        "converters/json/__init__.py",
    } <= {*names}
    assert len(names) == len({*names})
    assert not any("__pycache__" in each or each.startswith("worker/") for each in names)
    assert shipping_settings(props, tmp_path) == settings
    (plugins / "mine.py").write_text("X = 2")
    assert shipping_settings(props, tmp_path) != settings


def test_the_zip_is_imported_where_it_is_unpacked(tmp_path: Path) -> None:
    settings = shipping_settings(CLUSTER, tmp_path)
    place = tmp_path / "unpacked"
    with zipfile.ZipFile(settings["spark.archives"].partition("#")[0]) as content:
        content.extractall(place)
    code = (
        "from connect.internals.plugins import PluginKind, PluginRegistry; import connect; "
        "print(connect.__file__, PluginRegistry.discover().find(PluginKind.CONNECTOR, 'SparkSink').class_name)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env={"PYTHONPATH": str(place)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(place / "connect/__init__.py"), "connectors.spark.SparkSinkConnector"]


def test_where_nothing_was_sent_the_folders_are_the_workers() -> None:
    folders = plugin_folders({"plugin.path": "/a, /b"})
    assert shipped_folders(folders, {}) == folders == ["/a", "/b"]


# -- executors ---------------------------------------------------------------------------------------------------


def test_what_executors_lack_is_told_with_the_remedy() -> None:
    assert unfit_executors([Answer("h", "/python", ())]) is None
    lacking = Answer("h", "/python", ("pyarrow (ModuleNotFoundError: No module named 'pyarrow')",))
    reason = unfit_executors([lacking, Answer("g", "/python", ()), lacking])
    assert reason is not None
    assert reason.count("/python on h lacks pyarrow") == 1
    assert "spark.archives" in reason


def test_waiting_for_executors_is_told_after_five_seconds_and_a_loss_after_two_minutes() -> None:
    seen = [False]
    watch = ExecutorWatch(lambda: seen[0])
    for now, there, missing, lost in [
        (0, False, False, False),
        (6, False, True, False),
        (500, False, True, False),  # a cluster that is full: there never were any
        (501, True, False, False),
        (502, False, False, False),
        (600, False, True, False),
        (623, False, True, True),
        (624, True, False, False),
    ]:
        seen[0] = there
        watch.look(now)
        assert (watch.missing, watch.lost) == (missing, lost), now


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PythonException: Traceback\nMemoryError", "spark.executor.pyspark.memory"),
        ("SparkException: Python worker exited unexpectedly (crashed)", "was killed"),
        ("Job aborted: ExecutorLostFailure (executor 1 exited", "spark.executor.memoryOverhead"),
        ("java.io.IOException: no disk", None),
    ],
)
def test_the_failure_of_an_executor_has_a_remedy(text: str, told: str | None) -> None:
    reason = failed_executor(text)
    assert (reason is None) is (told is None)
    assert told is None or told in str(reason)


# -- shared applications -----------------------------------------------------------------------------------------


def test_settings_are_of_the_application_or_of_a_session_in_it() -> None:
    whole = {"spark.master": "yarn", "spark.sql.extensions": "x", "spark.hadoop.fs.s3a.secret.key": "s"}
    own = {"spark.sql.shuffle.partitions": "7", "spark.sql.catalog.lake.token": "t"}
    assert split_settings({**whole, **own}) == (whole, own)


def test_connectors_that_disagree_are_told_on_what_and_no_values() -> None:
    terms = Terms.of("one", "salt", {"spark.master": "yarn", "fs.s3a.secret.key": "sesame"})
    agree(terms, "lake", "two", {"spark.master": "yarn", "fs.s3a.secret.key": "sesame"})
    with pytest.raises(ConfigError) as raised:
        agree(terms, "lake", "two", {"spark.master": "yarn", "fs.s3a.secret.key": "open", "spark.jars": "a.jar"})
    text = str(raised.value)
    assert "one and two cannot share" in text
    assert "fs.s3a.secret.key, spark.jars" in text
    assert "spark.master" not in text
    assert "sesame" not in f"{text}{terms}"


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 101])
def test_the_name_of_a_session_is_plain(name: str) -> None:
    with pytest.raises(ConfigError, match=r"spark\.session"):
        session_name({"spark.session": name})
    assert session_name({}) is None


def test_an_application_has_one_host_and_lives_as_long_as_its_members(tmp_path: Path) -> None:
    folder = ApplicationFolder(tmp_path)
    assert not folder.has_host()
    claimed = folder.host()
    assert claimed is not None
    assert folder.host() is None
    assert folder.has_host()
    assert not has_members(tmp_path)
    one, two = Membership(tmp_path), Membership(tmp_path)
    one.give_up()
    assert has_members(tmp_path)
    two.give_up()
    two.give_up()
    assert not has_members(tmp_path)
    os.close(claimed)
    assert not folder.has_host()


def test_how_to_reach_an_application_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = ApplicationFolder(tmp_path)
    assert folder.read() is None
    application = Application(1, "secret", 2, Terms("one", "salt", {"spark.master": "x"}))
    folder.write(application)
    assert folder.read() == application
    assert (tmp_path / "application.json").stat().st_mode & 0o077 == 0
    folder.clear()
    assert folder.read() is None

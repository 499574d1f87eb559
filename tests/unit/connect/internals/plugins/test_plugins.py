"""Plugins in folders of their own: what is wrong with a folder is said."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.errors import PluginError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry, UnlistedPluginError, read_entries
from worker.app.worker import plugins_of
from worker.cli.main import main
from worker.config.worker import StandaloneConfig

PREDICATE = """
from connect.config import Config
from connect.transformation import Predicate


class Mine(Predicate[Config]):
    def test(self, record):
        return True
"""


pytestmark = pytest.mark.usefixtures("import_path")


def folder(path: Path, module: str, listed: str = "") -> Path:
    path.mkdir(parents=True)
    (path / f"{module}.py").write_text(PREDICATE)
    (path / "plugins.toml").write_text(listed or f'[[predicate]]\nclass = "{module}.Mine"\n')
    return path


def test_a_plugin_is_loaded_from_its_folder(tmp_path: Path) -> None:
    folder(tmp_path / "one", "module_of_one")
    assert PluginRegistry.discover([tmp_path]).load(PluginKind.PREDICATE, "Mine").__module__ == "module_of_one"


def test_a_module_that_another_folder_has_too_is_not_taken_for_it(tmp_path: Path) -> None:
    one, two = folder(tmp_path / "one", "same_name"), folder(tmp_path / "two", "same_name")
    PluginRegistry(read_entries(one / "plugins.toml", folder=one)).load(PluginKind.PREDICATE, "Mine")
    with pytest.raises(PluginError, match=r"is hidden by .*rename the module same_name"):
        PluginRegistry(read_entries(two / "plugins.toml", folder=two)).load(PluginKind.PREDICATE, "Mine")


@pytest.mark.parametrize(
    ("listed", "wrong"),
    [
        ('[predicate]\nclass = "m.Mine"\n', r"write \[\[predicate\]\] before each plugin"),
        ('[[predicate]]\nclass = "m.Mine"\naliases = "Mine"\n', r"write aliases = \[...\]"),
        ('predicate = ["m.Mine"]\n', r"write \[\[predicate\]\]"),
        (
            '[[predicate]]\nclass = "m.Mine"\ntask_aliases = []\n',
            "unknown key task_aliases; it takes class, type, aliases and",
        ),
        (
            '[[connector]]\nclass = "m.C"\ntype = "sink"\naliases = ["a.A", "b.B"]\ntask_aliases = ["a.T"]\n',
            "m.C has 2 aliases but 1 task_aliases; give one for each",
        ),
    ],
)
def test_a_folder_whose_file_has_the_wrong_form_is_skipped_and_told_of(tmp_path: Path, listed: str, wrong: str) -> None:
    folder(tmp_path / "one", "m", listed)
    folder(tmp_path / "two", "module_of_two")
    registry = PluginRegistry.discover([tmp_path])
    (broken,) = registry.broken
    assert broken.name == f"Folder {tmp_path / 'one'}"
    assert re.search(wrong, broken.error)
    assert registry.find(PluginKind.PREDICATE, "Mine").class_name == "module_of_two.Mine"


@pytest.mark.parametrize(
    ("connector", "task"),
    [
        ("io.confluent.connect.jdbc.JdbcSourceConnector", "io.confluent.connect.jdbc.source.JdbcSourceTask"),
        ("JdbcSource", "io.confluent.connect.jdbc.source.JdbcSourceTask"),
        ("io.confluent.connect.jdbc.JdbcSinkConnector", "io.confluent.connect.jdbc.sink.JdbcSinkTask"),
        ("io.aiven.connect.jdbc.JdbcSinkConnector", "io.aiven.connect.jdbc.sink.JdbcSinkTask"),
        ("connectors.file.FileStreamSinkConnector", "org.apache.kafka.connect.file.FileStreamSinkTask"),
        ("io.aiven.kafka.connect.http.HttpSinkConnector", "io.aiven.kafka.connect.http.HttpSinkTask"),
        ("DirectorySource", None),
    ],
)
def test_tasks_have_the_class_that_kafka_connect_would_run(connector: str, task: str | None) -> None:
    assert PluginRegistry.discover().find(PluginKind.CONNECTOR, connector).java_task(connector) == task


def distribution(site: Path, package: str, files: dict[str, str]) -> None:
    """Install a distribution with an entry point for ``package``, as a wheel leaves it."""
    metadata = site / f"{package}-1.2.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(f"[sluice.plugins]\nmine = {package}\n")
    for name, text in files.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text, errors="surrogateescape")
    sys.path.insert(0, str(site))


LISTED = '[[predicate]]\nclass = "{}.mine.Mine"\n'


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"half/__init__.py": ""}, "There is no .*half/plugins.toml. Write one and include it in the package"),
        ({"half/__init__.py": "", "half/plugins.toml": "[["}, "plugins.toml cannot be read as TOML"),
        ({"half/__init__.py": "", "half/plugins.toml": "# \udcff"}, "plugins.toml cannot be read as TOML"),
        ({"half.py": ""}, "half is a module, which cannot contain plugins.toml"),
        ({}, "The package half does not exist. Install it again"),
    ],
)
def test_a_package_that_is_broken_is_skipped_and_told_of(tmp_path: Path, files: dict[str, str], wrong: str) -> None:
    distribution(tmp_path / "half", "half", files)
    distribution(tmp_path / "whole", "whole", {"whole/plugins.toml": LISTED.format("whole")})
    registry = PluginRegistry.discover(())
    (broken,) = registry.broken
    assert broken.name == "Package half (entry point mine of sluice.plugins in half 1.2)"
    assert re.search(wrong, broken.error)
    assert registry.find(PluginKind.PREDICATE, "Mine").class_name == "whole.mine.Mine"
    with pytest.raises(PluginError, match=f"available connectors are: .* Package half .* is skipped: .*{wrong}"):
        registry.find(PluginKind.CONNECTOR, "HalfSource")


def test_a_package_is_found_as_soon_as_it_is_installed_and_until_it_is_removed(tmp_path: Path) -> None:
    distribution(tmp_path, "early", {"early/plugins.toml": LISTED.format("early")})
    assert named(PluginRegistry.discover()) == {"early.mine.Mine"}
    os.utime(tmp_path, (0, 0))
    distribution(tmp_path, "late", {"late/plugins.toml": LISTED.format("late")})
    assert named(PluginRegistry.discover()) == {"early.mine.Mine", "late.mine.Mine"}
    os.utime(tmp_path, (0, 0))
    shutil.rmtree(tmp_path / "early-1.2.dist-info")
    assert named(PluginRegistry.discover()) == {"late.mine.Mine"}


def test_a_package_is_found_though_it_was_looked_at_while_it_was_installed(tmp_path: Path) -> None:
    """An installer makes the folder of a package first: writing its files does not change the folder that it is in."""
    distribution(tmp_path, "late", {"late/plugins.toml": LISTED.format("late")})
    points = tmp_path / "late-1.2.dist-info" / "entry_points.txt"
    text = points.read_text()
    points.unlink()
    assert named(PluginRegistry.discover()) == set()
    points.write_text(text)
    assert named(PluginRegistry.discover()) == {"late.mine.Mine"}


def named(registry: PluginRegistry) -> set[str]:
    """The predicates called ``Mine``."""
    return {entry.class_name for entry in registry.entries(PluginKind.PREDICATE) if entry.simple_name == "Mine"}


def test_a_broken_package_does_not_stop_a_worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    distribution(tmp_path, "half", {"half/__init__.py": ""})
    with caplog.at_level(logging.WARNING):
        registry = plugins_of(StandaloneConfig.parse(WORKER | {"offset.storage.file.filename": str(tmp_path / "o")}))
    assert registry.find(PluginKind.CONNECTOR, "FileStreamSource")
    (warning,) = caplog.messages
    assert warning.startswith("Package half (entry point mine of sluice.plugins in half 1.2) is skipped: There is no ")


WORKER = {
    "bootstrap.servers": "unused:1",
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
}


def test_the_list_shows_connectors_first_and_what_is_broken(tmp_path: Path) -> None:
    folder(tmp_path / "good", "module_of_good")
    folder(tmp_path / "needy", "needy", '[[connector]]\nclass = "needy.Needy"\ntype = "sink"\n')
    (tmp_path / "needy" / "needy.py").write_text("print('x')\nimport module_that_is_not_there\n")
    folder(tmp_path / "deadly", "deadly")
    (tmp_path / "deadly" / "deadly.py").write_text("import os\nos._exit(7)\n")
    folder(tmp_path / "formless", "formless", "[[")
    shown = CliRunner().invoke(main, ["plugins", "list", "--plugin-path", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    kinds = list(dict.fromkeys(line.split()[0] for line in lines if not line.startswith(" ")))
    assert kinds == [
        "source",
        "sink",
        "converter",
        "header_converter",
        "transformation",
        "predicate",
        "config_provider",
        "engine",
        "broken",
    ]
    after = {line.split()[-1]: following for line, following in itertools.pairwise(lines)}
    assert after["needy.Needy"].strip() == (
        "broken: Class needy.Needy needs the module module_that_is_not_there, which is not installed."
    )
    assert after["deadly.Mine"].strip() == "broken: The process ended with status 7 while it was imported."
    assert "broken" not in after["module_of_good.Mine"]
    assert f"Folder {tmp_path / 'formless'} is skipped: " in lines[-1]


def test_the_list_takes_a_kind() -> None:
    shown = CliRunner().invoke(main, ["plugins", "list", "--kind", "sink"])
    assert {line.split()[0] for line in shown.output.splitlines()} == {"sink"}


@pytest.mark.parametrize("name", ["io.debezium.connector.oracle.OracleConnector", "com.example.Connector"])
def test_a_java_class_that_nothing_stands_for_is_not_found(name: str) -> None:
    told = f"which name matches {name}, available connectors are: .*is a Java plugin, put the folder with its jars into"
    with pytest.raises(PluginError, match=told):
        PluginRegistry.discover(()).load(PluginKind.CONNECTOR, name)


@pytest.mark.parametrize("name", ["RedisSink", "RedisSinkConnector"])
def test_a_plugins_own_name_counts_before_those_of_classes_that_others_stand_for(name: str) -> None:
    found = PluginRegistry.discover(()).find(PluginKind.CONNECTOR, name)
    assert found.class_name == "connectors.redis.RedisSinkConnector"


def test_blanks_around_a_name_are_shown() -> None:
    with pytest.raises(
        PluginError, match=r"name matches 'FileStreamSource ', with the blanks around it \(did you mean"
    ):
        PluginRegistry.discover(()).find(PluginKind.CONNECTOR, "FileStreamSource ")


TELLING = """
import sys
from connect import sink
from connect.config import Config as Options
from connect.providers import ConfigProvider
from connect.transforms import ValueTransformation
from .bases import *
from .bases import Taken

sys.modules["told"] = sys


class Sink(sink.SinkConnector[Options]):
    class Inner(ConfigProvider):
        pass


class Mine(Sink):
    pass


class Trim(ValueTransformation[Options]):
    pass


class Source(Reading):
    pass


class Taken(Taken):
    pass


class Nothing:
    pass


Again = Mine
Made = type("Made", (Mine,), {})
"""
BASES = """
try:
    from connect.source import SourceConnector
except ImportError:
    pass

import sys

sys.modules["told"] = sys


class Reading(SourceConnector):
    pass


class Taken(Reading):
    pass
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package on the import path that no file lists, each of whose modules tells when it is run."""
    inner = tmp_path / "acme" / "inner"
    inner.mkdir(parents=True)
    for init in (tmp_path / "acme" / "__init__.py", inner / "__init__.py"):
        init.write_text('import sys\n\nsys.modules["told"] = sys\n')
    (tmp_path / "acme" / "__init__.py").write_text(
        "from acme.inner.plugins import Mine\nimport sys\nsys.modules['told'] = sys"
    )
    (inner / "plugins.py").write_text(TELLING)
    (inner / "bases.py").write_text(BASES)
    sys.path.insert(0, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("allowed", [(), ("acme.other.*",), ("acme",), ("cme.*", "*.plugin")])
def test_a_class_that_is_neither_listed_nor_allowed_is_not_imported(package: Path, allowed: tuple[str, ...]) -> None:
    registry = PluginRegistry.discover((), allowed)
    with pytest.raises(UnlistedPluginError) as refused:
        registry.load(PluginKind.CONNECTOR, "acme.inner.plugins.Mine")
    assert str(refused.value) == (
        "Class acme.inner.plugins.Mine is not listed in any plugins.toml of this worker, and plugin.import.allowlist "
        "does "
        "not allow it. List it in the plugins.toml of a folder on plugin.path or of a package with an entry point in "
        "sluice.plugins, or add it to plugin.import.allowlist in the worker's file."
    )
    assert "told" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "name", "type_name"),
    [
        (PluginKind.CONNECTOR, "acme.inner.plugins.Mine", "sink"),
        (PluginKind.CONNECTOR, "acme.Mine", "sink"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Again", "sink"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Source", "source"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Reading", "source"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Taken", "source"),
        (PluginKind.TRANSFORMATION, "acme.inner.plugins.Trim$Value", None),
        (PluginKind.CONFIG_PROVIDER, "acme.inner.plugins.Sink$Inner", None),
    ],
)
def test_the_source_of_an_allowed_class_tells_what_it_is(
    package: Path, kind: PluginKind, name: str, type_name: str | None
) -> None:
    registry = PluginRegistry.discover((), ["acme.*"])
    assert registry.find(kind, name).type == type_name
    assert "told" not in sys.modules
    assert isinstance(registry.load(kind, name), type)
    assert "told" in sys.modules


def test_packages_may_lack_an_init_file(package: Path) -> None:
    for folder in ("bare", "bare/inner", "bare/inner/most"):
        (package / folder).mkdir()
        (package / folder / "plugins.py").write_text(
            "from acme.inner.plugins import Mine as Base\nclass Mine(Base): pass\n"
        )
    registry = PluginRegistry.discover((), ["bare.*"])
    for name in ("bare.plugins.Mine", "bare.inner.plugins.Mine", "bare.inner.most.plugins.Mine"):
        assert registry.find(PluginKind.CONNECTOR, name).type == "sink"
    assert "told" not in sys.modules
    assert isinstance(registry.load(PluginKind.CONNECTOR, "bare.inner.most.plugins.Mine"), type)


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        (PluginKind.CONNECTOR, "acme.inner.plugins.Nothing", "According to its source, class .* is not a Connector"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Trim.Value", "According to its source, class .* is not a Connector"),
        (
            PluginKind.TRANSFORMATION,
            "acme.inner.plugins.Mine",
            "According to its source, class .* is not a Transformation",
        ),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Made", "no importable module defines it"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.nothing", "no importable module defines it"),
        (PluginKind.CONNECTOR, "acme.nowhere.Mine", "no importable module defines it"),
        (PluginKind.CONNECTOR, "acme.inner.plugins", "no importable module defines it"),
    ],
)
def test_an_allowed_path_that_is_no_such_plugin_is_not_imported(
    package: Path, kind: PluginKind, name: str, wrong: str
) -> None:
    with pytest.raises(UnlistedPluginError, match=wrong):
        PluginRegistry.discover((), ["*"]).load(kind, name)
    assert "told" not in sys.modules


@pytest.mark.parametrize("text", ["class Mine(", "x = '\0'", "(" * 5000 + ")" * 5000, "# coding: nonsense\n"])
def test_a_source_that_cannot_be_read_is_described_by_its_error(package: Path, text: str) -> None:
    (package / "broken.py").write_text(text)
    with pytest.raises(UnlistedPluginError, match=r"The source of broken, .*broken.py, cannot be read: "):
        PluginRegistry.discover((), ["*"]).find(PluginKind.CONNECTOR, "broken.Mine")


def test_names_that_lead_in_a_circle_lead_nowhere(package: Path) -> None:
    (package / "one.py").write_text("from two import Mine\nfrom two import *\nThat = This\nThis = That\n")
    (package / "two.py").write_text("from one import Mine\nfrom one import *\n")
    (package / "three.py").write_text("from four import Four\nclass Three(Four): pass\n")
    (package / "four.py").write_text("from three import Three\nclass Four(Three): pass\n")
    for name in ("one.Mine", "one.That", "one.Other", "three.Three"):
        with pytest.raises(UnlistedPluginError, match=r"no importable module defines it|is not a Connector"):
            PluginRegistry.discover((), ["*"]).find(PluginKind.CONNECTOR, name)


@pytest.mark.parametrize(
    "entry", PluginRegistry.discover(()).entries(), ids=lambda entry: f"{entry.kind.value} {entry.class_name}"
)
def test_the_sources_of_the_built_in_plugins_tell_what_they_are(entry: PluginEntry) -> None:
    found = PluginRegistry([], ["*"]).find(entry.kind, entry.class_name)
    assert (found.kind, found.type) == (entry.kind, entry.type)


def test_a_class_that_is_not_listed_is_described_as_what_it_is(package: Path) -> None:
    shown = CliRunner().invoke(main, ["plugins", "describe", "acme.inner.plugins.Trim$Value"])
    assert shown.exit_code == 0
    assert shown.output.startswith("acme.inner.plugins.Trim.Value (transformation)")


def test_a_plugin_that_cannot_be_imported_is_described_by_its_error(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("def (")
    (tmp_path / "plugins.toml").write_text('[[connector]]\nclass = "half.Half"\ntype = "sink"\n')
    shown = CliRunner().invoke(main, ["plugins", "describe", "half.Half", "--plugin-path", str(tmp_path)])
    assert shown.exit_code == 1
    assert shown.output.startswith("Error: Class half.Half cannot be imported: invalid syntax (half.py, line 1)")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("org.apache.kafka.connect.transforms.HoistFeld$Value", "org.apache.kafka.connect.transforms.HoistField$Value"),
        ("io.debezium.transforms.outbox.EventRoter", "io.debezium.transforms.outbox.EventRouter"),
        ("io.aiven.kafka.connect.transforms.Hsh$Key", "io.aiven.kafka.connect.transforms.Hash$Key"),
        ("MaskFeild$Key", "MaskField$Key"),
    ],
)
def test_a_misspelled_transformation_is_asked_about(written: str, meant: str) -> None:
    said = PluginRegistry.discover().suggestion(PluginKind.TRANSFORMATION, written)
    assert said == f" Did you mean {meant}?"


@pytest.mark.parametrize(
    "written",
    [
        "io.aiven.kafka.connect.transforms.HashField$Value",
        "io.aiven.kafka.connect.transforms.FilterByFieldValue$Value",
        "com.github.jcustenborder.kafka.connect.transform.common.HeaderToField$Value",
        "com.github.jcustenborder.kafka.connect.transform.common.TimestampNow$Value",
        "com.github.jcustenborder.kafka.connect.transform.common.ChangeTopicCase",
        "com.github.cjmatta.kafka.connect.smt.InsertUuid$Value",
    ],
)
def test_a_transformation_of_a_vendor_is_not_taken_for_another(written: str) -> None:
    assert PluginRegistry.discover().suggestion(PluginKind.TRANSFORMATION, written) == ""

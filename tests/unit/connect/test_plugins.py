"""Plugins in folders of their own: what is wrong with a folder is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.errors import PluginError
from connect.plugins import PluginEntry, PluginKind, PluginRegistry, UnlistedPluginError, read_entries
from worker.cli.main import main

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
    with pytest.raises(PluginError, match=r"is hidden by .*rename its module same_name"):
        PluginRegistry(read_entries(two / "plugins.toml", folder=two)).load(PluginKind.PREDICATE, "Mine")


@pytest.mark.parametrize(
    ("listed", "wrong"),
    [
        ('[predicate]\nclass = "m.Mine"\n', r"write \[\[predicate\]\] before each plugin"),
        ('[[predicate]]\nclass = "m.Mine"\naliases = "Mine"\n', r"write aliases = \[...\]"),
        ('predicate = ["m.Mine"]\n', r"write \[\[predicate\]\]"),
    ],
)
def test_a_file_of_the_wrong_form_is_refused(tmp_path: Path, listed: str, wrong: str) -> None:
    folder(tmp_path / "one", "m", listed)
    with pytest.raises(PluginError, match=wrong):
        PluginRegistry.discover([tmp_path])


@pytest.mark.parametrize("name", ["io.confluent.connect.jdbc.JdbcSinkConnector", "com.example.Connector"])
def test_a_java_class_that_nothing_stands_for_is_not_found(name: str) -> None:
    with pytest.raises(PluginError, match=f"which name matches {name}, available connectors are: connectors.datagen"):
        PluginRegistry.discover(()).load(PluginKind.CONNECTOR, name)


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
        "Class acme.inner.plugins.Mine is listed by no plugins.toml of this worker, and plugin.import.allowlist does "
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


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        (PluginKind.CONNECTOR, "acme.inner.plugins.Nothing", "is not a Connector as far as its source says"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Trim.Value", "is not a Connector as far as its source says"),
        (PluginKind.TRANSFORMATION, "acme.inner.plugins.Mine", "is not a Transformation as far as its source says"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.Made", "no module that can be imported defines it"),
        (PluginKind.CONNECTOR, "acme.inner.plugins.nothing", "no module that can be imported defines it"),
        (PluginKind.CONNECTOR, "acme.nowhere.Mine", "no module that can be imported defines it"),
        (PluginKind.CONNECTOR, "acme.inner.plugins", "no module that can be imported defines it"),
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
        with pytest.raises(UnlistedPluginError, match=r"no module that can be imported defines it|is not a Connector"):
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

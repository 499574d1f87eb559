"""Plugins in folders of their own: what is wrong with a folder is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.errors import PluginError
from connect.plugins import PluginKind, PluginRegistry, read_entries
from worker.cli import main

PREDICATE = """
from connect.config import Config
from connect.transformation import Predicate


class Mine(Predicate[Config]):
    def test(self, record):
        return True
"""


@pytest.fixture(autouse=True)
def import_path() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


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
    with pytest.raises(PluginError, match=f"which name matches {name}, available connectors are: connectors.directory"):
        PluginRegistry.discover(()).load(PluginKind.CONNECTOR, name)


def test_a_plugin_that_cannot_be_imported_is_described_by_its_error(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("def (")
    (tmp_path / "plugins.toml").write_text('[[connector]]\nclass = "half.Half"\ntype = "sink"\n')
    shown = CliRunner().invoke(main, ["plugins", "describe", "half.Half", "--plugin-path", str(tmp_path)])
    assert shown.exit_code == 1
    assert shown.output.startswith("Error: Class half.Half cannot be imported: invalid syntax (half.py, line 1)")

"""Folders of plugins with an interpreter of their own: what is read of them, and what is wrong with one."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from connect.errors import PluginError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry, spoken_versions
from connect.internals.plugins.versions import Version
from equipment.interpreters import add_package, bare_folder, folder_with_interpreter
from worker.messages import messages
from worker.supervisor.plugin_homes import PluginHomes, code_state

LISTED = '[[connector]]\nclass = "{}.LinesConnector"\ntype = "source"\n\n[[transformation]]\nclass = "{}.Its"\n'


def plugins(package: str) -> dict[str, str]:
    """A package whose code nobody may run here."""
    return {
        f"{package}/__init__.py": "raise SystemExit(1)\n",
        f"{package}/plugins.toml": LISTED.format(package, package),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with interpreters, one without, and one with an older version of the same."""
    path = tmp_path_factory.mktemp("plugins")
    for name, version in (("acme", "2.0"), ("other", "1.0")):
        add_package(folder_with_interpreter(path / name), name, version, plugins(name), name)
    (path / "plain").mkdir()
    (path / "plain" / "acme.py").write_text("class LinesConnector:\n    version = '1.0'\n")
    (path / "plain" / "plugins.toml").write_text(LISTED.format("acme", "acme") + '\nversion = "1.0"\n'.strip())
    return path


def test_what_is_installed_in_an_interpreter_is_listed_with_its_version(folder: Path) -> None:
    registry = PluginRegistry.discover([folder])
    entry = registry.find(PluginKind.CONNECTOR, "other.LinesConnector")
    assert (entry.version, entry.folder) == ("1.0", None)
    assert entry.interpreter == folder / "other" / ".venv" / "bin" / "python"
    assert registry.broken == ()


def test_what_the_folder_itself_lists_runs_in_its_interpreter_too(tmp_path: Path) -> None:
    folder_with_interpreter(tmp_path / "own")
    (tmp_path / "own" / "plugins.toml").write_text(LISTED.format("mine", "mine"))
    entry = PluginRegistry.discover([tmp_path / "own"]).find(PluginKind.CONNECTOR, "mine.LinesConnector")
    assert entry.folder == tmp_path / "own"
    assert entry.interpreter == tmp_path / "own" / ".venv" / "bin" / "python"


def test_no_other_process_loads_them(folder: Path) -> None:
    registry = PluginRegistry.discover([folder])
    with pytest.raises(PluginError, match=r"is in .*other, which has its own interpreter"):
        registry.load(PluginKind.TRANSFORMATION, "other.Its")


def run(**config: str) -> messages.RunConnector:
    return messages.RunConnector("c", {key.replace("__", "."): value for key, value in config.items()}, {})


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (run(connector__class="other.LinesConnector"), "other"),
        (run(connector__class=" acme.LinesConnector "), "acme"),
        (run(connector__class="acme.LinesConnector", connector__plugin__version="[1.0]"), None),
        (run(connector__class="acme.LinesConnector", connector__plugin__version="[3.0]"), None),
        (run(connector__class="FileStreamSource"), None),
        (run(connector__class="no.such.Class"), None),
        (run(), None),
        (messages.RunTask("c", 0, {}, {"connector.class": "other.LinesConnector"}, {}, paused=False), "other"),
        (messages.ValidateConfig({"connector.class": "other.LinesConnector", "file": None}, {}), "other"),
        (messages.DescribePlugin("transformation", "acme.Its", "latest", {}), "acme"),
        (messages.DescribePlugin("transformation", "acme.Its", "(,1.5]", {}), None),
        (messages.LookUpValues({}, "file", "", None), None),
        (messages.Stop(), None),
    ],
)
def test_a_process_has_the_interpreter_of_its_connector(
    folder: Path, command: messages.Command, place: str | None
) -> None:
    found = PluginHomes(PluginRegistry.discover([folder])).interpreter(command)
    assert found == (None if place is None else folder / place / ".venv" / "bin" / "python")


def test_units_share_a_process_only_with_the_same_interpreter_and_folders(folder: Path) -> None:
    homes = PluginHomes(PluginRegistry.discover([folder]))
    plain = homes.home(run(connector__class="acme.LinesConnector", connector__plugin__version="1.0"))
    assert plain.startswith(f"{folder / 'plain'}@")
    assert homes.home(run(connector__class="FileStreamSource")) == ""
    assert homes.home(run(connector__class="other.LinesConnector")).startswith(f"{folder}/other/.venv/bin/python@")
    chain = {"transforms": "a", "transforms__a__type": "acme.Its", "transforms__a__plugin__version": "1.0"}
    assert homes.home(run(connector__class="FileStreamSource", **chain)) == plain


def test_units_share_a_process_only_while_the_code_of_their_plugins_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "lines.py").write_text("class LinesConnector: ...\n")
    (tmp_path / "plugins.toml").write_text(LISTED.format("mine.lines", "mine.lines"))
    homes, command = PluginHomes(PluginRegistry.discover([tmp_path])), run(connector__class="mine.lines.LinesConnector")
    states = [homes.home(command)]
    (tmp_path / "mine" / "__pycache__").mkdir()
    assert homes.home(command) == states[0], "an import changes nothing"
    (tmp_path / "mine" / "more.py").write_text("")
    states.append(homes.home(command))
    os.utime(tmp_path / "mine" / "lines.py", (0, 0))
    states.append(homes.home(command))
    (tmp_path / "beside.py").write_text("")
    states.append(homes.home(command))
    assert len(set(states)) == len(states)
    (tmp_path / "beside.py").unlink()
    assert homes.home(command) == states[-2]


def test_an_interpreter_changes_with_what_is_installed_in_it(tmp_path: Path) -> None:
    site = folder_with_interpreter(tmp_path / "other")
    add_package(site, "other", "1.0", plugins("other"), "other")
    homes, command = PluginHomes(PluginRegistry.discover([tmp_path])), run(connector__class="other.LinesConnector")
    before = homes.home(command)
    add_package(site, "more", "1.0", {}, "more")
    assert homes.home(command) != before


def test_an_installed_package_of_plugins_has_the_state_of_its_modules() -> None:
    entry = PluginEntry(PluginKind.CONNECTOR, "pytest.LinesConnector")
    missing = PluginEntry(PluginKind.CONNECTOR, "no_such_package.It")
    assert code_state(entry) == code_state(entry) != code_state(missing)
    assert code_state(PluginEntry(PluginKind.CONNECTOR, "connectors.file.FileStreamSourceConnector")) == ""


def test_the_converters_of_the_worker_count_for_a_connector_that_names_none(tmp_path: Path) -> None:
    (tmp_path / "plugins.toml").write_text('[[converter]]\nclass = "mine.MineConverter"\n')
    homes = PluginHomes(PluginRegistry.discover([tmp_path]))
    worker = {"key.converter": "StringConverter", "value.converter": "Mine"}
    config = {"connector.class": "FileStreamSource"}
    assert homes.home(messages.RunConnector("c", config, worker)).startswith(f"{tmp_path}@")
    own = config | {"value.converter": "StringConverter"}
    assert homes.home(messages.RunTask("c", 0, {}, own, worker, paused=False)) == ""


def remove_sluice(site: Path) -> None:
    (site / "sluice.pth").unlink()
    for metadata in site.glob("sluice_connect-*"):
        shutil.rmtree(metadata)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            remove_sluice,
            r"Its interpreter cannot run plugins because sluice-connect is not installed in it. .* --into {folder}$",
        ),
        (
            lambda site: (site.parents[2] / "pyvenv.cfg").write_text("version = 3.9.2\n"),
            r"Its interpreter is Python 3.9, but Sluice needs 3.11. Remove its .venv and run .* --into {folder}",
        ),
        (
            lambda site: (site.parents[2] / "pyvenv.cfg").unlink(),
            r"Its .venv is not a virtual environment: No such file or directory. Remove it and run .* --into {folder}",
        ),
        (
            lambda site: add_package(site, "acme", "1.0", {}, "acme"),
            r"Its installed package acme has no plugins.toml; install the package again",
        ),
    ],
)
def test_what_is_wrong_with_an_interpreter_is_told_with_the_remedy(tmp_path: Path, wrong: object, told: str) -> None:
    site = folder_with_interpreter(tmp_path / "one")
    assert callable(wrong)
    wrong(site)
    (broken,) = PluginRegistry.discover([tmp_path]).broken
    assert broken.name == f"Folder {tmp_path / 'one'}"
    assert re.search(told.format(folder=re.escape(str(tmp_path / "one"))), broken.error), broken.error


def test_a_sluice_with_other_messages_is_refused(tmp_path: Path) -> None:
    folder_with_interpreter(tmp_path / "one", sluice="99.0")
    (broken,) = PluginRegistry.discover([tmp_path]).broken
    assert broken.error == (
        f"Its interpreter has sluice-connect 99.0, but this worker needs {spoken_versions()}. "
        f"Run sluice plugins install --into {tmp_path / 'one'}"
    )


def test_this_worker_speaks_with_its_own_version() -> None:
    own = PluginRegistry.discover().find(PluginKind.CONNECTOR, "FileStreamSource").version
    assert own is not None
    assert Version(own) in spoken_versions()


def test_a_folder_without_packages_is_told_of(tmp_path: Path) -> None:
    bare_folder(tmp_path / "one")
    (broken,) = PluginRegistry.discover([tmp_path]).broken
    assert "sluice-connect is not installed" in broken.error

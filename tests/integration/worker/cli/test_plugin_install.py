"""``sluice plugins install``: what it makes, what it mends, and what it says where pip or a package is wrong."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connect.internals.plugins import PluginKind, PluginRegistry
from equipment.interpreters import SLUICE_PATH, add_package, wheel
from worker.cli.main import main

MODULE = """
import clash
from connect.config import Config, HIGH, option
from connect.transformation import Transformation


class ItsConfig(Config):
    its: str = option(default=clash.VERSION, importance=HIGH, doc="Its option.")


class Its(Transformation[ItsConfig]):
    "Does nothing."
"""
FILES = {"acme/__init__.py": MODULE, "acme/plugins.toml": '[[transformation]]\nclass = "acme.Its"\n'}


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Wheels of Sluice, of a plugin and of its library, which pip takes from there and from nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "sluice-connect", metadata.version("sluice-connect"), {"sluice.pth": SLUICE_PATH})
    wheel(folder, "acme", "1.2", FILES, "acme")
    wheel(folder, "clash", "7", {"clash.py": "VERSION = 'clash 7'\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["plugins", *map(str, arguments)])


@pytest.mark.usefixtures("wheels")
def test_a_folder_is_made_listed_described_and_mended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder, sluice = tmp_path / "plugins" / "acme", f"sluice-connect=={metadata.version('sluice-connect')}"
    made = run("install", "acme==1.2", "clash", "--into", folder, "--sluice", sluice)
    assert made.exit_code == 0, made.output
    assert "transformation    acme.Its 1.2" in made.output.splitlines()

    registry = PluginRegistry.discover([tmp_path / "plugins"])
    assert registry.broken == ()
    assert registry.find(PluginKind.TRANSFORMATION, "Its").interpreter == folder / ".venv" / "bin" / "python"
    assert "transformation    acme.Its 1.2\n" in run("list", "--plugin-path", tmp_path / "plugins").output
    capfd.readouterr()
    assert run("describe", "Its", "--plugin-path", tmp_path / "plugins").exit_code == 0
    # The interpreter of the folder writes this itself.
    assert "- Default: `clash 7`" in capfd.readouterr().out

    (site,) = (folder / ".venv" / "lib").glob("python3.*/site-packages")
    for found in site.glob("sluice_connect-*"):
        shutil.rmtree(found)
    (site / "sluice.pth").unlink()
    add_package(site, "sluice-connect", "99.0", {})
    (broken,) = PluginRegistry.discover([tmp_path / "plugins"]).broken
    assert broken.error.endswith(f"Run sluice plugins install --into {folder}")
    mended = run("install", "--into", folder, "--sluice", sluice)
    assert mended.exit_code == 0, mended.output
    assert PluginRegistry.discover([tmp_path / "plugins"]).broken == ()


def test_what_pip_says_is_shown_as_it_is(wheels: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sluice = next(str(file) for file in wheels.glob("sluice_connect-*"))
    refused = run("install", "no-such-plugin", "--into", tmp_path / "one", "--sluice", sluice)
    assert refused.exit_code == 1
    assert "Error: pip has not installed all of it; see its output above." in refused.output
    assert "No matching distribution found for no-such-plugin" in capfd.readouterr().err
    without = run("install", "clash", "--into", tmp_path / "one", "--sluice", sluice)
    assert without.exit_code == 1
    assert f"Error: {tmp_path / 'one'} has no plugins: its packages name none" in without.output
    lacking = run("install", "acme", "--into", tmp_path / "two", "--sluice", sluice)
    assert lacking.exit_code == 1
    assert "broken: Class acme.Its needs the module clash, which is not installed." in lacking.output


def test_an_interpreter_that_is_not_there_is_told(tmp_path: Path) -> None:
    refused = run("install", "acme", "--into", tmp_path / "one", "--python", "/no/such/python")
    assert refused.exit_code == 1
    assert "Error: The interpreter cannot be made: /no/such/python cannot be run: No such file" in refused.output

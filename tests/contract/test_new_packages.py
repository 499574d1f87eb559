"""The packages that ``sluice plugins new`` writes: their tests pass as they are, and a worker finds their plugins."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.errors import ConnectError
from equipment.proofs import thorough
from worker.cli.main import main
from worker.cli.plugin_package import PluginPackage

KINDS = ["source", *thorough("sink", "transformation", "converter")]
SLUICE = Path(sys.executable).with_name("sluice")


def new(folder: Path, name: str, kind: str) -> Path:
    place = folder / name
    done = CliRunner().invoke(main, ["plugins", "new", name, "--kind", kind, "--folder", str(place)])
    assert done.exit_code == 0, done.output
    return place


def run(place: Path, *command: str) -> str:
    """A command in the package's folder, with the package on the import path."""
    environ = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(place: Path, package: str) -> None:
    """Leave beside the package what its installation leaves: the wheel's metadata, with the entry points."""
    project = tomllib.loads((place / "pyproject.toml").read_text())["project"]
    metadata = place / f"{package}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]["sluice.plugins"]
    lines = [f"{name} = {value}\n" for name, value in points.items()]
    (metadata / "entry_points.txt").write_text(f"[sluice.plugins]\n{''.join(lines)}")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["sink", "transformation", "converter"])
def test_a_new_package_passes_its_tests(tmp_path: Path, kind: str) -> None:
    """Those of a source are run as the tutorial says."""
    place = new(tmp_path, f"acme-{kind}", kind)
    told = run(place, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert " passed" in told


@pytest.mark.parametrize("kind", ["source", "sink", "transformation", "converter"])
def test_a_new_package_is_written_in_good_style(tmp_path: Path, kind: str) -> None:
    place = new(tmp_path, f"acme-{kind}", kind)
    run(place, sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,W,I,UP,B", "--line-length", "120")


@pytest.mark.parametrize("kind", ["source", "transformation", "converter"])
@pytest.mark.thorough
def test_the_readme_begins_a_preview_with_something_to_read(tmp_path: Path, kind: str) -> None:
    place = new(tmp_path, f"acme-{kind}", kind)
    install(place, f"acme_{kind}")
    config = place / "connector.properties"
    config.write_text(config.read_text().replace("/tmp/", f"{tmp_path}/"))
    block = (place / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    lines = [line for line in block.splitlines() if line.startswith(("printf", "sluice run --preview"))]
    write, preview = (line.replace("/tmp/", f"{tmp_path}/") for line in lines)
    run(place, "sh", "-c", write)
    told = run(place, "sh", "-c", preview.replace("sluice", str(SLUICE), 1))
    assert "5 records" in told


@pytest.mark.parametrize("kind", KINDS)
def test_an_installed_package_is_found_described_and_valid(tmp_path: Path, kind: str) -> None:
    place = new(tmp_path, f"acme-orders-{kind}", kind)
    install(place, f"acme_orders_{kind}")
    listed = run(place, str(SLUICE), "plugins", "list", "--kind", kind)
    lines = [line.split() for line in listed.splitlines() if "acme_orders" in line]
    ((kind_of, found, version),) = {
        (kind_of, path.removesuffix(".Key").removesuffix(".Value"), version) for kind_of, path, version in lines
    }
    named = f"acme_orders_{kind}.{kind}.{PluginPackage.of(place.name, kind).class_name}"
    assert (kind_of, found, version) == (kind, named, "0.1.0")
    assert "broken" not in listed
    assert "no mistakes" in run(place, str(SLUICE), "validate", "connector.properties")


def test_a_name_becomes_a_package_and_a_class() -> None:
    package = PluginPackage.of("acme_big-orders", "sink")
    assert (package.name, package.package, package.class_name) == (
        "acme-big-orders",
        "acme_big_orders",
        "AcmeBigOrdersSinkConnector",
    )
    assert PluginPackage.of("orders-sink", "sink").class_name == "OrdersSinkConnector"
    assert PluginPackage.of("sink", "sink").class_name == "SinkSinkConnector"


@pytest.mark.parametrize("name", ["Acme", "acme orders", "../acme", "acme-", "1acme", "json", "connect", "class", ""])
def test_a_name_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(ConnectError, match=r"cannot be the name of a package|is taken by a module"):
        PluginPackage.of(name, "source")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    place = tmp_path / "acme"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    done = CliRunner().invoke(main, ["plugins", "new", "acme", "--kind", "sink", "--folder", str(place)])
    assert done.exit_code == 1
    assert "already exists and is not empty" in done.output
    assert [file.name for file in place.iterdir()] == ["mine.txt"]

"""The tutorial for plugin authors as it is written: its files, its tests, and what its commands show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from worker.cli.main import main

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial-plugin.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TUTORIAL, re.DOTALL)
BIN = Path(sys.executable).parent


def files() -> dict[str, str]:
    """The files of the tutorial by their names, which their first lines tell."""
    named = [(re.match(r"# (\S+)\n", text), text) for kind, text in BLOCKS if kind in ("python", "properties")]
    return {match[1]: text for match, text in named if match is not None}


def shown_after(command: str) -> str:
    """What the tutorial shows below the block that ends with a command."""
    index = next(number for number, (kind, text) in enumerate(BLOCKS) if kind == "sh" and text.endswith(f"{command}\n"))
    return str(BLOCKS[index + 1][1])


def counts() -> list[str]:
    """What pytest counts each time that the tutorial runs it."""
    return [
        text.strip() for (kind, before), (_, text) in pairwise(BLOCKS) if kind == "sh" and before.endswith("pytest\n")
    ]


def generated(place: Path) -> Path:
    """The package that the tutorial generates, before it is changed."""
    done = CliRunner().invoke(main, ["plugins", "new", "access-log", "--kind", "source", "--folder", str(place)])
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the tutorial after its fourth part."""
    place = generated(tmp_path_factory.mktemp("tutorial") / "access-log")
    for name, text in files().items():
        (place / name).write_text(text)
    return place


def run(place: Path, command: str, status: int = 0) -> str:
    """A command of a shell, with the package importable as when it is installed."""
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(place)}
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=place, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def install(place: Path) -> None:
    metadata = place / "access_log-0.1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: access-log\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[sluice.plugins]\naccess_log = access_log\n")


def counted(place: Path) -> str:
    """What pytest counts in a package, such as "3 passed, 1 skipped"."""
    *_, last = run(place, "pytest -q -p no:cacheprovider -p no:xdist").splitlines()
    return last.partition(" in ")[0]


def test_the_tests_of_the_generated_package_pass_as_the_tutorial_says(tmp_path: Path) -> None:
    assert counted(generated(tmp_path / "access-log")) == counts()[0]


def test_the_tests_of_the_tutorial_pass_as_it_says(package: Path) -> None:
    assert counted(package) == counts()[1]


def test_the_commands_show_what_the_tutorial_shows(package: Path) -> None:
    install(package)
    listed = run(package, "sluice plugins list --kind source")
    assert shown_after("sluice plugins list --kind source").removesuffix("...\n") in listed
    write, preview = (
        next(text for kind, text in BLOCKS if kind == "sh" and word in text) for word in ("printf", "sed")
    )
    log = package.parent / "access.log"

    def own(text: str) -> str:
        return text.replace("/tmp/access.log", str(log))

    run(package, own(write))
    connector = package / "connector.properties"
    connector.write_text(own(connector.read_text()))
    assert run(package, "sluice validate connector.properties", 1) == shown_after("validate connector.properties")
    told = run(package, preview)
    assert told == own(shown_after("sluice run --preview 1 connector.properties"))

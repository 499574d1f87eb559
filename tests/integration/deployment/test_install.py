"""What is published can be installed in an empty environment, by each Python there is, and runs a first connector."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from equipment.proofs import thorough

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
BIN = Path(sys.executable).parent


def run(*command: str | Path, folder: Path = ROOT) -> str:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


def the(dist: Path, pattern: str) -> Path:
    (found,) = dist.glob(pattern)
    return found


def test_the_source_distribution_has_what_the_wheel_has(dist: Path) -> None:
    packed = {name for name in zipfile.ZipFile(the(dist, "*.whl")).namelist() if ".dist-info/" not in name}
    with tarfile.open(the(dist, "*.tar.gz")) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    # The list of plugins lies at the top of the tree.
    assert packed - source == {"connect/plugins.toml"}
    assert {"LICENSE", "README.md", "plugins.toml"} <= source


def test_its_description_is_what_the_index_accepts(dist: Path) -> None:
    run(BIN / "twine", "check", "--strict", *dist.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize("python", PYTHONS)
def test_the_extras_go_together(python: str, tmp_path: Path) -> None:
    extras = [
        argument for extra in PROJECT["optional-dependencies"] if extra != "dev" for argument in ("--extra", extra)
    ]
    command = [
        BIN / "uv",
        "pip",
        "compile",
        "pyproject.toml",
        *extras,
        "--python-version",
        python,
        *("--only-binary", ":all:", "--no-binary", "pyspark"),
    ]
    resolved = run(*command, "--output-file", tmp_path / "all.txt", "--quiet")
    assert not resolved
    assert "confluent-kafka==" in (tmp_path / "all.txt").read_text()


def interpreter_of(python: str) -> Path | None:
    """The Python of this version on the machine, on the path or pyenv's."""
    found = shutil.which(f"python{python}")
    for one in ([Path(found)] if found else []) + sorted(
        Path("~/.pyenv/versions").expanduser().glob(f"{python}.*/bin/python3")
    ):
        if subprocess.run([one, "-c", "import venv, ensurepip"], check=False, capture_output=True).returncode == 0:
            return one
    return None


@pytest.fixture(scope="module")
def newest_debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root folder of Debian's newest state, with its Python."""
    if os.getuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("this Python is not installed, and its Debian needs root and debootstrap")
    root = tmp_path_factory.mktemp("debian") / "sid"
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", "sid", root)
    for file in {"/etc/hosts", "/etc/resolv.conf", ssl.get_default_verify_paths().cafile or certifi.where()}:
        (root / file.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / file.lstrip("/"))
    yield root
    shutil.rmtree(root, ignore_errors=True)


def story(dist: Path, bootstrap: str, topic: str, place: Path, interpreter: Path, *around: str | Path) -> str:
    """Install the wheel and run a first connector, each command by what is ``around`` it; return the version shown."""
    wheel = shutil.copy(the(dist, "*.whl"), place)
    run(*around, interpreter, "-m", "venv", place / "venv", folder=place)
    run(*around, place / "venv" / "bin" / "pip", "install", "-q", wheel, folder=place)
    # A user's own module of such a name, in the folder in which the worker is started.
    (place / "connect.py").write_text("raise SystemExit('the wrong module')\n")
    (place / "in.txt").write_text("hello\n")
    (place / "worker.properties").write_text(
        f"bootstrap.servers={bootstrap}\nkey.converter=StringConverter\nvalue.converter=StringConverter\n"
        f"offset.storage.file.filename={place}/offsets\nlisteners=http://127.0.0.1:0\n"
    )
    for name, props in {
        "in": f"connector.class=FileStreamSource\nfile={place}/in.txt\ntopic={topic}\n",
        "out": f"connector.class=FileStreamSink\nfile={place}/out.txt\ntopics={topic}\n",
    }.items():
        (place / f"{name}.properties").write_text(f"name={topic}-{name}\nrun.until=drained\n{props}")
    sluice = place / "venv" / "bin" / "sluice"
    version = run(*around, sluice, "--version", folder=place)
    run(
        *around, sluice, "standalone", *(place / f"{name}.properties" for name in ("worker", "in", "out")), folder=place
    )
    assert (place / "out.txt").read_text() == "hello\n"
    return version


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("python", thorough(*PYTHONS))
def test_a_wheel_runs_a_first_connector(
    dist: Path, python: str, bootstrap: str, topic: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if interpreter := interpreter_of(python):
        shown = story(dist, bootstrap, topic, tmp_path, interpreter)
    else:
        root: Path = request.getfixturevalue("newest_debian")
        if not run("chroot", root, "python3", "--version").startswith(f"Python {python}."):
            pytest.skip(f"python{python} is not installed, and not what Debian's newest state has")
        # The folder has the same name on both sides.
        (root / str(tmp_path).lstrip("/")).mkdir(parents=True)
        mount = ["unshare", "--mount", "--", "sh", "-ec"]
        script = (
            f'mount --bind "{tmp_path}" "{root}{tmp_path}"; mount -t proc proc "{root}/proc"; exec chroot "{root}" "$@"'
        )
        shown = story(dist, bootstrap, topic, tmp_path, Path("/usr/bin/python3"), *mount, script, "sh")
    assert f"Python {python}." in shown


@pytest.mark.thorough
def test_it_runs_without_being_installed(dist: Path, tmp_path: Path) -> None:
    """As ``uvx`` does it, in an environment that it makes for the command."""
    shown = run(BIN / "uv", "tool", "run", "--from", the(dist, "*.whl"), "sluice", "--version", folder=tmp_path)
    assert shown.startswith(f"sluice, version {the(dist, '*.whl').name.split('-')[1]}\n")


def test_a_module_that_stands_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "connect.py").touch()
    command = [BIN / "sluice", "--version"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert f"connect is {tmp_path / 'connect.py'}\n" in done.stderr
    assert "Take their folder out of PYTHONPATH, or rename them." in done.stderr

"""The pages are true: each command of them is typed, in a fresh environment.

In the suite the packages are those that are there, and every page has a broker and ports of its own. ``make docs-test``
leaves nothing out: it installs what it needs in a new virtual environment, with an empty home, and uses the ports that
the pages say.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from page import Commands, parse
from session import Session

from connect.internals.jvm.home import sluice_home
from equipment.proofs import thorough
from equipment.servers.killable import KillableServer, killable_server
from equipment.servers.products import MARIADB
from worker.embedded.ports import is_free

pytestmark = pytest.mark.integration

ROOT: Final = Path(__file__).parents[2]
FRESH: Final = os.environ.get("SLUICE_DOCS_TEST") == "fresh"
INSTALLING: Final = r"(python3 -m venv|pip |\. |git |make )"
PAGES: Final = (
    "README.md",
    "docs/quickstart.md",
    "docs/distributed.md",
    "docs/offsets.md",
    "docs/mirroring.md",
    "docs/plugin-authoring.md",
    "docs/spark/quickstart.md",
)
INSTALL_SECONDS: Final = 2400.0
"""`make demo` makes an environment, downloads 600 MB into it and runs Spark."""
PORTS: Final = (9092, 9094, 8083, 8084)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with what a user installs: a wheel, not a clone."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", f"{ROOT}[broker,spark,testing]"], check=True)
    return folder / "bin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def here(tmp_path: Path, home: Path, broker_jars: tuple[Path, ...]) -> Iterator[Session]:
    """A folder in which the commands find the packages and jars that are here, and a broker and ports of their own."""
    kept = home / ".local" / "share" / "sluice"
    kept.mkdir(parents=True)
    for name in ("jars", "archives"):
        (sluice_home() / name).mkdir(parents=True, exist_ok=True)
        (kept / name).symlink_to(sluice_home() / name)
    kafka, other, first, second = _ports(len(PORTS))
    environ = _environ(home, Path(sys.executable).parent) | {"SLUICE_URL": f"http://localhost:{first}"}
    said = {
        "sluice broker start": f"sluice broker start --port {kafka}",
        "localhost:9092": f"localhost:{kafka}",
        "localhost:9094": f"localhost:{other}",
        "--port 9094": f"--port {other}",
        ":8083": f":{first}",
        ":8084": f":{second}",
        "/tmp/": f"{tmp_path}/",
    }
    folder = tmp_path / "page"
    folder.mkdir()
    session = Session(folder, environ, said, INSTALLING, listener=f"http://localhost:{first}")
    assert broker_jars
    yield session
    session.kill()
    _stop_brokers("sluice", folder, environ)


@pytest.fixture
def fresh(tmp_path: Path, home: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A clone in which nothing is there yet, or for other pages than the first a folder after an installation."""
    taken = [port for port in PORTS if not is_free(port)]
    assert not taken, f"ports {taken} of the pages are in use"
    folder = tmp_path / "page"
    if request.node.callspec.params["page"] == "README.md":
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        environ = _environ(home, None)
    else:
        folder.mkdir()
        environ = _environ(home, request.getfixturevalue("installed"))
    # What another run has left in /tmp is not there on a fresh machine.
    skipped = None if "README" in request.node.name else INSTALLING
    session = Session(folder, environ, {"/tmp/": f"{tmp_path}/"}, skipped, patience=INSTALL_SECONDS)
    yield session
    session.kill()
    for sluice in (folder / ".venv" / "bin" / "sluice", shutil.which("sluice", path=environ["PATH"])):
        if sluice is not None and Path(sluice).exists():
            _stop_brokers(str(sluice), folder, environ)


@pytest.mark.timeout(5400 if FRESH else 900)
@pytest.mark.parametrize("page", [*PAGES[:2], *thorough(*PAGES[2:])])
def test_what_a_page_says_comes_about(page: str, request: pytest.FixtureRequest) -> None:
    """With `make docs-test` it installs everything, over the network."""
    session: Session = request.getfixturevalue("fresh" if FRESH else "here")
    session.follow(parse(ROOT / page), slow=FRESH)
    session.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[KillableServer]:
    """The database of the page that follows one, with its user, and the folder ``bin`` with the client."""
    with killable_server(MARIADB) as server:
        rights = "GRANT REPLICATION SLAVE, BINLOG MONITOR, RELOAD ON *.* TO shop@'%'"
        user = ("CREATE USER shop@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON shop.* TO shop@'%'", rights)
        with closing(server.server.connect()) as connection, connection.cursor() as cursor:
            for statement in ("CREATE DATABASE shop", *user):
                cursor.execute(statement)
        usr = MARIADB.binary().parent.parent
        libraries = ":".join(map(str, sorted(usr.glob("lib/*-linux-gnu"))))
        client = tmp_path / "bin" / "mariadb"
        client.parent.mkdir()
        client.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {usr}/bin/mariadb --no-defaults "$@"\n')
        client.chmod(0o755)
        yield server


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_tables_follow_a_database_as_their_page_says(here: Session, shop: KillableServer, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "mysql-to-lake", tmp_path / "page" / "examples" / "mysql-to-lake")
    here.say("SHOP_PORT=3306", f"SHOP_PORT={shop.server.port}")
    here.find_programs(tmp_path / "bin")
    here.follow(parse(ROOT / "docs/spark/following-a-database.md"), slow=True)
    here.close()


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/distributed.md", "docs/offsets.md"])
def test_a_page_has_commands_that_are_typed(page: str) -> None:
    steps = [step for step in parse(ROOT / page) if isinstance(step, Commands) and not step.slow]
    assert any("sluice" in command for step in steps for command in step.commands)


def _stop_brokers(sluice: str, folder: Path, environ: dict[str, str]) -> None:
    """Stop the broker of a page, and the other one that the page of mirrors has."""
    for named in ((), *(("--folder", str(other)) for other in folder.glob("broker-*"))):
        subprocess.run([sluice, "broker", "stop", *named], env=environ, check=True)


def _ports(count: int) -> list[int]:
    """Free ports below those that systems hand out by themselves, so that nobody takes them before they are used."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    candidates = list(range(20_000 + 1_000 * (process % 10), 21_000 + 1_000 * (process % 10)))
    random.shuffle(candidates)
    free = [port for port in candidates[: 20 * count] if is_free(port)]
    assert len(free) >= count
    return free[:count]


def _environ(home: Path, programs: Path | None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLUICE_", "VIRTUAL_ENV", "PYTHON"))}
    path = os.environ.get("PATH", os.defpath)
    if programs is None:
        path = os.pathsep.join(part for part in path.split(os.pathsep) if part != str(Path(sys.executable).parent))
    else:
        path = f"{programs}{os.pathsep}{path}"
    return {**kept, "HOME": str(home), "PATH": path}

"""Database servers on loopback, one of each kind for all processes of a test run, and databases in them."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pymysql

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock, sluice_home
from equipment.ports import own_port
from equipment.servers import keeper
from equipment.servers.products import PASSWORD, RECIPE, USER, Product
from worker.embedded.ports import HOST
from worker.embedded.process import is_process, launch_daemon, tail
from worker.embedded.server import ServerLease

__all__ = ["Database", "Server", "leased_server", "new_database"]

_READY_SECONDS: Final = 60.0
_PORT_TRIES: Final = 3
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    product: str
    scheme: str
    port: int
    pid: int
    """The process id of its keeper."""
    data: str

    @property
    def is_postgresql(self) -> bool:
        return self.scheme == "postgresql"

    def connect(self, database: str | None = None) -> Any:
        """A connection with autocommit, by the product's driver."""
        if self.is_postgresql:
            return psycopg.connect(
                host=HOST, port=self.port, user=USER, password=PASSWORD, dbname=database or "postgres", autocommit=True
            )
        return pymysql.connect(
            host=HOST, port=self.port, user=USER, password=PASSWORD, database=database, autocommit=True
        )


@dataclass(frozen=True, slots=True)
class Database:
    """An empty database for a single test."""

    server: Server
    name: str
    user: str = USER
    password: str = PASSWORD

    @property
    def product(self) -> str:
        """``postgresql``, ``mariadb`` or ``mysql``."""
        return self.server.product

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def jdbc_url(self) -> str:
        """The value of ``connection.url``, without user and password."""
        return f"jdbc:{self.server.scheme}://{HOST}:{self.server.port}/{self.name}"

    @property
    def sqlalchemy_url(self) -> str:
        """The same for SQLAlchemy, with user and password."""
        driver = "postgresql+psycopg" if self.server.is_postgresql else f"{self.server.scheme}+pymysql"
        return f"{driver}://{self.user}:{quote(self.password, safe='')}@{HOST}:{self.server.port}/{self.name}"

    @property
    def props(self) -> dict[str, str]:
        """The connector keys to connect to it."""
        return {"connection.url": self.jdbc_url, "connection.user": self.user, "connection.password": self.password}

    def connect(self) -> Any:
        """A connection with autocommit, by the product's driver."""
        return self.server.connect(self.name)

    def execute(self, *statements: str) -> None:
        """Run statements, each in its own transaction."""
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


@contextmanager
def leased_server(product: Product, run: Path) -> Iterator[Server]:
    """Use the server of a test run: the first lease starts it, and it ends after the last one."""
    folder = run / product.name
    with file_lock(folder / keeper.LOCK):
        lease = ServerLease(folder / keeper.LEASES)
        server = _running(folder) or _launch(product, folder)
    try:
        yield server
    finally:
        lease.release()


@contextmanager
def new_database(server: Server) -> Iterator[Database]:
    """Create a database that is dropped at the end."""
    name = f"test_{uuid4().hex[:12]}"
    with closing(server.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield Database(server, name)
    force = " WITH (FORCE)" if server.is_postgresql else ""
    with closing(server.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"DROP DATABASE {name}{force}")


def _running(folder: Path) -> Server | None:
    try:
        server = Server(**json.loads((folder / keeper.STATE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    return server if is_process(server.pid, server.data) else None


def _launch(product: Product, folder: Path) -> Server:
    for _ in range(_PORT_TRIES):
        data = Path(tempfile.mkdtemp(prefix=f"sluice-{product.name}-", dir="/tmp"))
        try:
            _fill(product, data)
            server = _start(product, folder, data)
            ready = _becomes_ready(server)
        except ConnectError:
            shutil.rmtree(data, ignore_errors=True)
            raise
        if ready:
            (folder / keeper.STATE).write_text(json.dumps(asdict(server)), encoding="utf-8")
            return server
        shutil.rmtree(data, ignore_errors=True)
    raise ConnectError(f"{product.name} does not start. The end of its log:\n{tail(folder / 'server.log')}")


def _fill(product: Product, data: Path) -> None:
    """Make an empty database in ``data``: a copy of one made earlier, unless another user has to own it."""
    account = pwd.getpwnam(product.user())
    if account.pw_uid == os.geteuid():
        shutil.copytree(_template(product), data, dirs_exist_ok=True)
    else:
        os.chown(data, account.pw_uid, account.pw_gid)
        product.initialise(data)


def _template(product: Product) -> Path:
    binary = product.binary()
    version = f"{binary} {binary.stat().st_size} {binary.stat().st_mtime_ns} {RECIPE}"
    template = sluice_home() / "databases" / f"{product.name}-{hashlib.sha256(version.encode()).hexdigest()[:16]}"
    with file_lock(template.with_name(f"{template.name}.lock")):
        if not template.is_dir():
            partial = template.with_name(f"{template.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(mode=0o700)
            product.initialise(partial)
            partial.rename(template)
    return template


def _start(product: Product, folder: Path, data: Path) -> Server:
    port = own_port()
    command = product.command(data, port)
    keep = [sys.executable, "-m", "equipment.servers.keeper", str(folder), str(data), product.user(), *command]
    path = os.pathsep.join(filter(None, sys.path))
    pid = launch_daemon(keep, log=folder / "server.log", environ={**os.environ, "PYTHONPATH": path})
    return Server(product.name, product.scheme, port, pid, str(data))


def _becomes_ready(server: Server) -> bool:
    deadline = time.monotonic() + _READY_SECONDS
    while is_process(server.pid, server.data):
        try:
            server.connect().close()
        except (psycopg.OperationalError, pymysql.OperationalError) as error:
            if time.monotonic() > deadline:
                raise ConnectError(f"{server.product} did not become ready in {_READY_SECONDS:g} s.") from error
            time.sleep(_POLL_SECONDS)
        else:
            return True
    return False

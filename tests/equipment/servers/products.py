"""The database servers that tests run on: how each is found or fetched, initialised and started."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from connect.errors import ConnectError
from equipment.servers.keeper import identity
from equipment.servers.packages import unpacked
from worker.embedded.ports import HOST

__all__ = ["MARIADB", "MYSQL", "PASSWORD", "POSTGRESQL", "RECIPE", "USER", "Product"]

USER: Final = "sluice"
PASSWORD: Final = "t0p/s&cret"

RECIPE: Final = 1
"""Counts the ways in which databases were initialised; databases made in another way are not reused."""

_SYSTEM: Final = Path("/")
_GRANTS: Final = (
    f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
    f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
)


class Product(Protocol):
    """A database server."""

    name: str
    scheme: str
    """The part of a JDBC URL that names the product."""

    def binary(self) -> Path:
        """The server's program, downloaded if necessary; a ``ConnectError`` says why that failed."""

    def user(self) -> str:
        """The system user that it runs as."""

    def initialise(self, data: Path) -> None:
        """Create an empty database in ``data``, which exists and belongs to the user."""

    def command(self, data: Path, port: int) -> Sequence[str]:
        """The command that serves ``data`` on a port of the loopback address."""


@dataclass(frozen=True)
class _PostgreSQL:
    name: str = "postgresql"
    scheme: str = "postgresql"

    def binary(self) -> Path:
        return _found(_SYSTEM, "usr/lib/postgresql/*/bin/postgres") or _required(
            unpacked("postgresql"), "usr/lib/postgresql/*/bin/postgres"
        )

    def user(self) -> str:
        # It refuses to run as root.
        return getpass.getuser() if os.geteuid() else _first_user("postgres", "nobody")

    def initialise(self, data: Path) -> None:
        binaries = self._reachable_binary(data).parent
        password = data / "password"
        password.write_text(PASSWORD, encoding="ascii")
        _run(
            *(str(binaries / "initdb"), "-D", str(data / "data"), "-U", USER, "--pwfile", str(password)),
            *("-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            user=self.user(),
            environ=_libraries(binaries),
        )
        password.unlink()

    def command(self, data: Path, port: int) -> Sequence[str]:
        binary = self._reachable_binary(data)
        settings = {
            "listen_addresses": HOST,
            "unix_socket_directories": "",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "wal_level": "logical",
            "max_connections": "200",
            "max_replication_slots": "60",
            "max_wal_senders": "60",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [*_environ(_libraries(binary.parent)), str(binary), "-D", str(data / "data"), "-p", str(port), *options]

    def _reachable_binary(self, data: Path) -> Path:
        """The program where its user can read it: a program that root unpacked in its home is copied beside the
        data."""
        binary = self.binary()
        if os.geteuid() or binary.is_relative_to("/usr"):
            return binary
        root = unpacked("postgresql")
        copy = data / "root"
        if not copy.is_dir():
            shutil.copytree(root, copy, symlinks=True)
        return copy / binary.relative_to(root)


@dataclass(frozen=True)
class _MariaDB:
    name: str = "mariadb"
    scheme: str = "mariadb"

    def binary(self) -> Path:
        return _found(_SYSTEM, "usr/sbin/mariadbd") or _required(
            unpacked("mariadb-server-core", "mariadb-client-core"), "usr/sbin/mariadbd"
        )

    def user(self) -> str:
        return getpass.getuser()

    def initialise(self, data: Path) -> None:
        usr = self.binary().parent.parent
        _run(
            *(str(usr / "bin/mariadb-install-db"), "--no-defaults", f"--basedir={usr}", f"--datadir={data / 'data'}"),
            *(f"--user={self.user()}", "--auth-root-authentication-method=normal", "--skip-test-db"),
            *("--skip-name-resolve", "--innodb-log-file-size=8M", f"--tmpdir={data}"),
            user=self.user(),
            environ={**_libraries(usr / "sbin"), "PATH": f"{usr / 'bin'}:{os.environ.get('PATH', '')}"},
        )

    def command(self, data: Path, port: int) -> Sequence[str]:
        binary = self.binary()
        usr = binary.parent.parent
        (data / "grants.sql").write_text(_GRANTS, encoding="ascii")
        (data / "tmp").mkdir(exist_ok=True)
        return [
            *_environ(_libraries(binary.parent)),
            *(str(binary), "--no-defaults", f"--basedir={usr}", f"--user={self.user()}", f"--port={port}"),
            *(f"--datadir={data / 'data'}", f"--bind-address={HOST}", f"--socket={data / 'socket'}"),
            *(f"--pid-file={data / 'pid'}", f"--init-file={data / 'grants.sql'}", "--skip-name-resolve"),
            # A server that starts removes the temporary tables of all others that share the folder, which ends these.
            f"--tmpdir={data / 'tmp'}",
            *("--server-id=2", f"--log-bin={data / 'data' / 'binlog'}", "--binlog-format=ROW"),
            *("--binlog-row-metadata=FULL", "--gtid-strict-mode=1", "--innodb-buffer-pool-size=64M"),
            *("--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"),
            *("--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--max-connections=200"),
        ]


@dataclass(frozen=True)
class _MySQL:
    name: str = "mysql"
    scheme: str = "mysql"

    def binary(self) -> Path:
        without = ("usr/sbin/mysqld-debug", "usr/lib/mysql/plugin/debug/*")
        root = unpacked("mysql-server-core", suite="sid", without=without)
        return _required(root, "usr/sbin/mysqld")

    def user(self) -> str:
        return getpass.getuser()

    def initialise(self, data: Path) -> None:
        _run(*self._server(data), "--initialize-insecure", user=self.user(), environ={})

    def command(self, data: Path, port: int) -> Sequence[str]:
        (data / "grants.sql").write_text(_GRANTS, encoding="ascii")
        return [
            *self._server(data),
            *(f"--port={port}", f"--bind-address={HOST}", f"--socket={data / 'socket'}", f"--pid-file={data / 'pid'}"),
            *(f"--init-file={data / 'grants.sql'}", "--mysqlx=OFF", "--skip-name-resolve", "--server-id=1"),
            *("--log-bin=binlog", "--binlog-row-metadata=FULL", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
            *("--innodb-buffer-pool-size=64M", "--performance-schema=OFF", "--innodb-flush-log-at-trx-commit=0"),
            *("--sync-binlog=0", "--collation-server=utf8mb4_bin", "--max-connections=200"),
        ]

    def _server(self, data: Path) -> list[str]:
        """The command that runs the server with the C library that came with it."""
        binary = self.binary()
        root = binary.parent.parent.parent
        loader = _required(root, "usr/lib*/ld-linux-*.so.*")
        libraries = [_required(root, "usr/lib/*-linux-gnu"), root / "usr/lib/mysql/private"]
        return [
            *(str(loader), "--library-path", ":".join(map(str, libraries)), str(binary), "--no-defaults"),
            *(f"--user={self.user()}", f"--basedir={root / 'usr'}", f"--datadir={data / 'data'}"),
            *(f"--lc-messages-dir={root / 'usr/share/mysql'}", f"--plugin-dir={root / 'usr/lib/mysql/plugin'}"),
            *(f"--character-sets-dir={root / 'usr/share/mysql/charsets'}", "--secure-file-priv=NULL"),
            *(f"--log-error={data / 'errors.log'}", "--innodb-redo-log-capacity=16M"),
        ]


POSTGRESQL: Final[Product] = _PostgreSQL()
MARIADB: Final[Product] = _MariaDB()
MYSQL: Final[Product] = _MySQL()


def _found(root: Path, pattern: str) -> Path | None:
    """The last match, which belongs to the newest version."""
    return max(root.glob(pattern), default=None)


def _required(root: Path, pattern: str) -> Path:
    path = _found(root, pattern)
    if path is None:
        raise ConnectError(f"There is no {pattern} in {root}; remove the folder so that it is fetched anew.")
    return path


def _libraries(binaries: Path) -> dict[str, str]:
    """The libraries that were unpacked with a program."""
    root = next((path for path in binaries.parents if path.name == "root" and path != Path("/root")), None)
    if root is None:
        return {}
    folders = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
    return {"LD_LIBRARY_PATH": ":".join(map(str, folders))}


def _environ(variables: Mapping[str, str]) -> list[str]:
    return ["/usr/bin/env", *(f"{key}={value}" for key, value in variables.items())] if variables else []


def _first_user(*names: str) -> str:
    known = {account.pw_name for account in pwd.getpwall()}
    return next(name for name in names if name in known)


def _run(*command: str, user: str, environ: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", env={**os.environ, **environ}, **identity(user)
    )
    if done.returncode != 0:
        raise ConnectError(f"{command[0]} failed:\n{(done.stderr or done.stdout)[-2000:]}")

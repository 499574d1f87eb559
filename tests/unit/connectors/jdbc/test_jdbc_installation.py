"""What a worker says without the extra, and dialects that packages bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connect.kits.sql.databases.postgresql.dialect import PostgresqlDialect
from connect.kits.sql.databases.sqlite.dialect import SqliteDialect
from connect.kits.sql.registry import dialect_class

PLUGIN = """
from connectors.jdbc.dialects import Dialect

class AcmeDialect(Dialect):
    backend = "acme"
"""


def test_a_missing_package_is_told_with_the_command_that_installs_it() -> None:
    """In a Python that has nothing but itself and what the connector's configuration needs."""
    code = f"""
import sys
sys.path = [place for place in sys.path if "site-packages" not in place] + [{str(Path(__file__).parents[4])!r}]
from connectors.jdbc import JdbcSourceConfig
values = JdbcSourceConfig.validate({{"connection.url": "jdbc:postgresql://h/d", "mode": "bulk"}})
print(*next(value.errors for value in values if value.name == "connection.url"))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == (
        "Invalid value [hidden] for configuration connection.url: It needs sqlalchemy and psycopg, which this worker "
        "does not have: pip install 'sluice-connect[jdbc]', or in a clone of Sluice pip install -e '.[jdbc]'"
    )


def test_an_installed_package_brings_a_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_dialect.py").write_text(PLUGIN)
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sluice.jdbc.dialects]\nacme = acme_dialect:AcmeDialect\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert dialect_class("acme").backend == "acme"
    with pytest.raises(LookupError, match="Unknown dialect other; available are acme, mariadb, mysql"):
        dialect_class("other")


def test_dialects_have_the_names_of_java() -> None:
    assert dialect_class("PostgreSqlDatabaseDialect") is PostgresqlDialect
    assert dialect_class("SqliteDatabaseDialect") is SqliteDialect

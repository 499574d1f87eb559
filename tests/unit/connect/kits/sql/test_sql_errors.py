"""Which errors of databases pass by themselves."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
from psycopg.errors import lookup

from connect.kits.sql.registry import backend_driver


@pytest.mark.parametrize(
    "state",
    ["08006", "08P01", "40001", "40P01", "53100", "53300", "55P03", "57014", "57P01", "57P03", "58030", "25006"],
)
def test_postgresql_states_that_pass(state: str) -> None:
    assert backend_driver("postgresql").is_transient(lookup(state)("told"))


@pytest.mark.parametrize(
    "state",
    ["22001", "23505", "28P01", "28000", "3D000", "42703", "42P01", "42501", "57P04", "0A000", "40002", "XX000"],
)
def test_postgresql_states_that_stay(state: str) -> None:
    assert not backend_driver("postgresql").is_transient(lookup(state)("told"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("connection failed: Connection refused", True),
        ("consuming input failed: server closed the connection unexpectedly", True),
        ("connection failed: FATAL:  the database system is starting up", True),
        ("connection failed: FATAL:  sorry, too many clients already", True),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", True),
        ('connection failed: FATAL:  password authentication failed for user "ann"', False),
        ('connection failed: FATAL:  database "shop" does not exist', False),
        ('connection to server at "certificate.file" failed: Connection refused', True),
        ('connection to server at "h" failed: fe_sendauth: no password supplied', False),
        ('connection to server at "h" failed: server does not support SSL, but SSL was required', False),
        ('connection to server at "h" failed: SSL error: certificate verify failed', False),
        ('connection to server at "h" failed: ВАЖНО:  роль "ann" не существует', False),
    ],
)
def test_postgresql_connections_that_are_refused(text: str, passes: bool) -> None:
    assert backend_driver("postgresql").is_transient(psycopg.OperationalError(text)) is passes


@pytest.mark.parametrize("backend", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    "number", [1040, 1047, 1053, 1203, 1205, 1213, 1317, 1927, 1969, 2002, 2003, 2006, 2013, 2055, 3024, 4031]
)
def test_mysql_numbers_that_pass(backend: str, number: int) -> None:
    assert backend_driver(backend).is_transient(pymysql.OperationalError(number, "told"))
    assert backend_driver(backend).is_transient(pymysql.InternalError(number, "told"))


@pytest.mark.parametrize("number", [1044, 1045, 1049, 1054, 1060, 1064, 1142, 1146, 1364, 1406, 1451, 1906, 2026, 3105])
def test_mysql_numbers_that_stay(number: int) -> None:
    assert not backend_driver("mariadb").is_transient(pymysql.OperationalError(number, "told"))


def test_a_mysql_server_that_is_read_only_for_now() -> None:
    read_only = "The MariaDB server is running with the --read-only option so it cannot execute this statement"
    assert backend_driver("mariadb").is_transient(pymysql.OperationalError(1290, read_only))
    assert not backend_driver("mariadb").is_transient(
        pymysql.OperationalError(1290, "running with the --secure-file-priv option")
    )
    assert backend_driver("mysql").is_transient(pymysql.InterfaceError(0, ""))


@pytest.mark.parametrize(
    ("name", "passes"),
    [("SQLITE_BUSY", True), ("SQLITE_LOCKED_SHAREDCACHE", True), ("SQLITE_FULL", True), ("SQLITE_IOERR_READ", True),
     ("SQLITE_ERROR", False), ("SQLITE_READONLY", False), ("SQLITE_CORRUPT", False), ("SQLITE_NOTADB", False)],
)  # fmt: skip
def test_sqlite_errors(name: str, passes: bool) -> None:
    error = sqlite3.OperationalError("told")
    error.sqlite_errorname = name
    assert backend_driver("sqlite").is_transient(error) is passes


def test_the_errors_of_another_database_are_not_known() -> None:
    assert backend_driver("oracle").is_transient(Exception("told")) is None

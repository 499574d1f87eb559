"""URLs of databases, those of JDBC and those of SQLAlchemy, and what hostile ones are refused for."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config import Password
from connect.kits.sql.urls import Address, Allowed, parse_url


def place(address: Address) -> tuple[object, ...]:
    password = None if address.password is None else address.password.value
    return address.driver, address.hosts, address.database, address.user, password, dict(address.options)


PG, MY, MARIA = "postgresql+psycopg", "mysql+pymysql", "mariadb+pymysql"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://h:5433/d", (PG, (("h", 5433),), "d", None, None, {})),
        ("jdbc:postgresql:d", (PG, (("localhost", None),), "d", None, None, {})),
        ("jdbc:postgresql://[::1]:5432/d", (PG, (("::1", 5432),), "d", None, None, {})),
        ("jdbc:postgresql://a,b:1/d", (PG, (("a", None), ("b", 1)), "d", None, None, {})),
        ("jdbc:postgresql://h/d?user=u&password=p%26%2B", (PG, (("h", None),), "d", "u", "p&+", {})),
        ("jdbc:postgresql://h/d?ssl=true", (PG, (("h", None),), "d", None, None, {"sslmode": "require"})),
        (
            "jdbc:postgresql://h/d?currentSchema=a,b&reWriteBatchedInserts=true",
            (PG, (("h", None),), "d", None, None, {"options": "-csearch_path=a,b"}),
        ),
        ("jdbc:mysql://h:3306/d?useSSL=false", (MY, (("h", 3306),), "d", None, None, {"ssl": "disable"})),
        ("jdbc:mysql://h/d?connectTimeout=1500", (MY, (("h", None),), "d", None, None, {"connect_timeout": "2"})),
        ("jdbc:mariadb:sequential://h/d", (MARIA, (("h", None),), "d", None, None, {})),
        ("postgresql://u:p%40@h/d", (PG, (("h", None),), "d", "u", "p@", {})),
        ("mysql+pymysql://u@h", (MY, (("h", None),), "", "u", None, {})),
        ("jdbc:sqlite:/a/b c.db", ("sqlite+pysqlite", (), "/a/b c.db", None, None, {})),
        ("jdbc:sqlite:b.db?busy_timeout=500", ("sqlite+pysqlite", (), "b.db", None, None, {"timeout": "0.5"})),
        ("sqlite:////a/b%20c.db", ("sqlite+pysqlite", (), "/a/b c.db", None, None, {})),
        ("  JDBC:PostgreSQL://h/d ", (PG, (("h", None),), "d", None, None, {})),
    ],
)
def test_a_url_is_read(url: str, expected: tuple[object, ...]) -> None:
    assert place(parse_url(url)) == expected


def test_what_is_given_beside_the_url_comes_before_what_is_in_it() -> None:
    address = parse_url(
        "jdbc:mysql://u:old@h/d?useSSL=true", user="other", password=Password("new"), options={"useSSL": "false"}
    )
    assert place(address) == (MY, (("h", None),), "d", "other", "new", {"ssl": "disable"})


@pytest.mark.parametrize(
    "option",
    [
        "local_infile=1",
        "allowLoadLocalInfile=true",
        "allowUrlInLocalInfile=true",
        "autoDeserialize=true",
        "init_command=DROP",
        "sessionVariables=a",
        "read_default_file=/etc/my.cnf",
        "plugin_dir=/tmp",
        "plugin=evil",
        "creator=os.system",
        "ssl_key=/etc/shadow",
        "unix_socket=/run/x",
        "auth_plugin_map=x",
        "cursorclass=x",
        "propertiesTransform=x",
    ],
)
def test_options_that_load_code_or_files_are_refused_by_name_for_mysql(option: str) -> None:
    name = option.partition("=")[0]
    for url in (f"jdbc:mysql://h/d?{option}", f"mysql://h/d?{option}", f"jdbc:mariadb://h/d?useSSL=true&{option}"):
        with pytest.raises(ValueError, match=f"the option {name} of (mysql|mariadb).pymysql is not allowed"):
            parse_url(url)
    with pytest.raises(ValueError, match=f"the option {name} "):
        parse_url("jdbc:mysql://h/d", options=dict([option.split("=")]))


@pytest.mark.parametrize(
    "name",
    [
        "options", "service", "servicefile", "passfile", "sslkey", "sslcert", "sslcrl", "host", "hostaddr",
        "requirepeer", "sslfactory", "socketFactory", "socketFactoryArg", "loggerFile", "krbsrvname",
        "authenticationPluginClassName", "sslkeylogfile", "plugin", "creator", "%73ervice",
    ],
)  # fmt: skip
def test_options_that_load_code_or_files_are_refused_by_name_for_postgresql(name: str) -> None:
    with pytest.raises(ValueError, match="is not allowed"):
        parse_url(f"jdbc:postgresql://h/d?{name}=x")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("jdbc:postgresql://h/d?sslrootcert=/etc/passwd", "the option sslrootcert of postgresql.psycopg must match"),
        (
            "jdbc:postgresql://h/d?currentSchema=a%20-csession_preload_libraries=x",
            "must be a comma-separated list of schema names",
        ),
        ("jdbc:postgresql://h/d?sslmode=none", "must match"),
        ("jdbc:sqlite::memory:", "use a file"),
        ("jdbc:sqlite:", "use a file"),
        ("jdbc:sqlite:file:/a?mode=ro", "file: URIs are not allowed"),
        ("sqlite:///file:/a", "file: URIs are not allowed"),
        ("sqlite://a.db", "sqlite:////absolute/path"),
        ("jdbc:sqlite:/a?enable_load_extension=true", "the option enable_load_extension"),
        ("sqlite+pysqlcipher:////a", "the driver sqlite.pysqlcipher is not allowed on this worker"),
        ("jdbc:oracle:thin:@h:1521:o", "the driver oracle is not allowed"),
        ("oracle+oracledb://h/d", "add it to jdbc.allowed.drivers"),
        ("postgresql+asyncpg://h/d", "the driver postgresql.asyncpg"),
        ("jdbc:postgresql://u:p/w@h/d", "percent-encoded|%2F"),
        ("jdbc:postgresql://h:port/d", "host or port is invalid"),
        ("jdbc:postgresql://h/d#x", "it contains a #"),
        ("jdbc:postgresql://h\r\n/d", "control character"),
        ("jdbc:postgresql://h/d%00", "control character"),
        ("postgresql:d", "followed by ://"),
        ("h/d", "it must begin with jdbc:postgresql:"),
        ("", "it must begin with"),
        ("jdbc:mysql://h(key=x)/d", "host or port is invalid"),
        ("jdbc:mysql://(host=h,allowLoadLocalInfile=true)/d", "host or port is invalid"),
        ("jdbc:mysql://address=(host=h)/d", "host or port is invalid"),
        ("jdbc:mysql://h/d?user=%ff", "not UTF-8"),
        ("jdbc:mysql://a,b/d", "mysql.pymysql supports only one host"),
    ],
)
def test_a_url_that_is_refused_says_why(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_url(url)


def test_the_worker_allows_more() -> None:
    allowed = Allowed(("oracle+oracledb", "postgresql"), ("sslrootcert", "tns_admin"))
    oracle = parse_url("oracle+oracledb://u@h/d?tns_admin=/etc", allowed=allowed)
    assert place(oracle) == ("oracle+oracledb", (("h", None),), "d", "u", None, {"tns_admin": "/etc"})
    assert parse_url("jdbc:postgresql://h/d?sslrootcert=/ca", allowed=allowed).options == {"sslrootcert": "/ca"}
    with pytest.raises(ValueError, match=r"the driver mysql\+pymysql is not allowed"):
        parse_url("jdbc:mysql://h/d", allowed=allowed)
    with pytest.raises(ValueError, match="write SQLAlchemy's URL"):
        parse_url("jdbc:oracle+oracledb://h/d", allowed=allowed)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
def test_any_password_comes_through_and_is_not_shown(password: str) -> None:
    encoded = quote(password, safe="")
    for url in (f"postgresql://u:{encoded}@h/d", f"jdbc:mysql://h/d?user=u&password={encoded}"):
        address = parse_url(url)
        assert address.password == Password(password)
        assert address.hide(f"<{password}|{encoded}>") == "<[hidden]|[hidden]>" or len(password) < 9
        assert str(address).endswith("//h/d")
        assert "[hidden]" in repr(address)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for url in (text, f"jdbc:{text}", f"jdbc:postgresql://{text}", f"mysql://h/{text}", f"jdbc:sqlite:{text}"):
        try:
            parse_url(url)
        except ValueError as error:
            assert str(error)


@given(st.text(min_size=8, alphabet="abcdefgh0123@/:?#[]%&= "))
def test_the_error_of_a_url_does_not_show_a_password_that_is_written_wrong(secret: str) -> None:
    secret = f"zz{secret}zz"
    for url in (f"jdbc:postgresql://u:{secret}@h:1/d", f"mysql://u:{secret}@h:1/d"):
        try:
            parse_url(url)
        except ValueError as error:
            assert not any(part in str(error) for part in ("zz", secret))

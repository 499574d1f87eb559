"""The hosts that Spark's JDBC source may connect to."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.hosts import HostDeniedError
from connectors.spark.sources.jdbc.config import SparkJdbcSourceConfig
from connectors.spark.sources.jdbc.drivers import driver_url, url_hosts

pytest.importorskip("pyspark")


def config(url: str, **rules: str) -> SparkJdbcSourceConfig:
    given = {key.replace("_", "."): value for key, value in rules.items()}
    return SparkJdbcSourceConfig.parse({"name": "c", "topic": "t", "query": "SELECT 1", "connection.url": url} | given)


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("jdbc:postgresql://h/d", ["h"]),
        ("jdbc:postgresql://a:1,b,[::1]:3/d?ssl=true", ["a", "b", "::1"]),
        ("jdbc:mysql://a_b.example:1/d", ["a_b.example"]),
    ],
)
def test_each_host_of_a_url_is_known(url: str, hosts: list[str]) -> None:
    assert url_hosts(url) == hosts


@pytest.mark.parametrize("hosts", ["", ",a", "a,", ":5432", "::1", "a:b", "[g]", "a:1:2", "[::1]x"])
def test_what_is_no_list_of_hosts_is_refused(hosts: str) -> None:
    """Drivers take a host that is missing for this machine, and each reads a doubtful one in its own way."""
    for scheme in ("postgresql", "mariadb", "mysql"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            driver_url(f"jdbc:{scheme}://{hosts}/d")


def test_a_host_is_refused_as_it_is_written() -> None:
    with pytest.raises(ConfigError, match=r"^connection\.url: Connecting to 169\.254\.169\.254 is not allowed"):
        config("jdbc:mysql://169.254.169.254/d")
    with pytest.raises(ConfigError, match=r"^connection\.url: Connecting to b is not allowed: http\.denied\.hosts"):
        config("jdbc:postgresql://a,b:1/d", http_denied_hosts="b")
    config("jdbc:sqlite:/a.db", http_denied_hosts="*", http_allowed_hosts="none").check_hosts()


def test_a_name_is_refused_for_any_of_its_addresses_when_it_is_connected_to() -> None:
    config("jdbc:postgresql://localhost/d").check_hosts()
    config("jdbc:postgresql://nowhere.invalid/d", http_denied_hosts="127.0.0.0/8").check_hosts()
    denying = config("jdbc:postgresql://nowhere.invalid,localhost/d", http_denied_hosts="127.0.0.0/8,::1")
    with pytest.raises(HostDeniedError, match=r"^connection\.url: Connecting to localhost \(.*\) is not allowed"):
        denying.check_hosts()
    spelled = config("jdbc:mariadb://127.1/d", http_denied_hosts="127.0.0.1")
    with pytest.raises(HostDeniedError, match=r"^connection\.url: Connecting to 127\.1 \(127\.0\.0\.1\)"):
        spelled.check_hosts()


def test_no_server_redirects_the_driver_of_mariadb() -> None:
    assert driver_url("jdbc:mariadb://h/d").endswith("&permitRedirect=false")

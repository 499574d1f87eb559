"""The TLS options of HTTP clients, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from connect.config import LOW, option
from connect.config.types import ConfigType
from connect.internals.tls.client import TLS_NAMES
from connect.kits.http.settings import TlsConfig

ALIASES = {"search.keystore": "ssl.keystore.location", "search.keystore.password": "ssl.keystore.password"}


class Search(TlsConfig, tls_prefix="search.", tls_aliases=ALIASES):
    """A family with TLS options and one of its own."""

    search_size: int = option(default=1, importance=LOW, doc="A size.")


class Ignoring(TlsConfig, tls_prefix="search.", tls_aliases=ALIASES, empty_is_unset=True):
    """One to which empty values are none."""


class Sub(Search):
    """One that inherits them."""


def test_the_options_have_the_prefix_and_come_before_those_of_the_class() -> None:
    keys = [key.name for key in Search.definitions()]
    assert keys == [*(f"search.{name}" for name in TLS_NAMES), *ALIASES, "search.size"]
    assert [key.name for key in Sub.definitions()] == keys
    assert TlsConfig.definitions() == ()


def test_what_is_secret_is_a_password() -> None:
    secret = {key.name for key in Search.definitions() if key.type is ConfigType.PASSWORD}
    assert secret == {
        "search.ssl.truststore.certificates",
        "search.ssl.truststore.password",
        "search.ssl.keystore.key",
        "search.ssl.keystore.certificate.chain",
        "search.ssl.keystore.password",
        "search.ssl.key.password",
        "search.keystore.password",
    }


def test_the_documentation_of_an_alias_names_the_key() -> None:
    docs = {key.name: key.documentation for key in Search.definitions()}
    assert docs["search.keystore"] == "Alias of search.ssl.keystore.location."


@pytest.mark.parametrize(
    ("props", "kept", "without_empty"),
    [
        ({}, {}, {}),
        ({"search.keystore.password": "a"}, {"password": "a"}, {"password": "a"}),
        (
            {"search.keystore.password": "a", "search.ssl.keystore.password": "b"},
            {"password": "b"},
            {"password": "b"},
        ),
        ({"search.keystore.password": "a", "search.ssl.keystore.password": ""}, {"password": ""}, {"password": "a"}),
    ],
)
def test_a_key_counts_more_than_its_alias(
    props: dict[str, str], kept: dict[str, str], without_empty: dict[str, str]
) -> None:
    for config, expected in ((Search, kept), (Ignoring, without_empty)):
        assert config.parse(props).tls_props() == {f"search.ssl.keystore.{key}": text for key, text in expected.items()}


def test_an_empty_algorithm_always_means_that_no_name_is_checked() -> None:
    for config in (Search, Ignoring):
        parsed = config.parse({"search.ssl.endpoint.identification.algorithm": ""})
        assert not parsed.tls_context().check_hostname
        assert config.parse({}).tls_context().check_hostname


def test_a_store_that_cannot_be_read_is_told_by_its_key() -> None:
    (wrong,) = [value for value in Search.validate({"search.keystore": "/nowhere"}) if value.errors]
    assert wrong.name == "search.ssl.keystore.location"


@pytest.mark.parametrize("module", ["connectors.http", "converters.avro", "connect.kits.http.client"])
def test_no_library_is_imported_before_a_client_is_made(module: str) -> None:
    told = f"import {module}, sys; print({{'requests', 'urllib3', 'certifi'}} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", told], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "set()"

"""References to config providers: what is asked for, what is secret, what is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from connect.providers import ConfigData, ConfigProvider, has_reference, resolve_references, restore_references


class Vault(ConfigProvider):
    """Holds secrets by path and remembers what it was asked for."""

    def __init__(self, secrets: Mapping[str, Mapping[str, str]], ttl_ms: int | None = None) -> None:
        self.secrets = secrets
        self.ttl_ms = ttl_ms
        self.asked: list[tuple[str, frozenset[str]]] = []

    def configure(self, props: Mapping[str, str]) -> None:
        self.ttl_ms = int(props["ttl.ms"])

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        self.asked.append((path, frozenset(keys or ())))
        return ConfigData(self.secrets.get(path, {}), self.ttl_ms)


@pytest.fixture
def vault() -> Vault:
    return Vault({"db": {"user": "scott", "password": "tiger"}, "": {"bare": "b"}})


def test_values_and_secrets(vault: Vault) -> None:
    props = {
        "url": "jdbc://${vault:db:user}:${vault:db:password}@host",
        "plain": "x",
        "bare": "${vault:bare}",
        "unknown": "${vault:db:nope} ${other:db:user}",
        "null": None,
    }
    resolved = resolve_references(props, {"vault": vault})
    assert resolved.values == {
        "url": "jdbc://scott:tiger@host",
        "plain": "x",
        "bare": "b",
        "unknown": "${vault:db:nope} ${other:db:user}",
        "null": None,
    }
    assert resolved.secret_keys == {"url", "bare"}
    assert "tiger" not in repr(resolved)


def test_each_path_is_asked_for_once(vault: Vault) -> None:
    resolve_references({"a": "${vault:db:user}", "b": "${vault:db:password}", "c": "${vault:bare}"}, {"vault": vault})
    assert vault.asked == [("db", frozenset({"user", "password"})), ("", frozenset({"bare"}))]


def test_the_first_value_to_expire_counts(vault: Vault) -> None:
    brief = Vault({"db": {"user": "u"}}, ttl_ms=50)
    long = Vault({"db": {"user": "u"}}, ttl_ms=100)
    never = Vault({"db": {"user": "u"}}, ttl_ms=-1)
    props = {"a": "${long:db:user}${brief:db:user}${never:db:user}${vault:db:user}"}
    resolved = resolve_references(props, {"brief": brief, "long": long, "never": never, "vault": vault})
    assert resolved.ttls_ms == {("long", "db"): 100, ("brief", "db"): 50}
    assert resolved.ttl_ms == 50
    assert resolve_references({"a": "${vault:db:user}"}, {"vault": vault}).ttl_ms is None


def test_what_a_provider_gives_is_not_resolved_again() -> None:
    vault = Vault({"": {"a": "${vault:b}", "b": "secret"}})
    assert resolve_references({"k": "${vault:a}"}, {"vault": vault}).values == {"k": "${vault:b}"}


def test_references_are_stored_in_place_of_secrets() -> None:
    written = {"password": "${vault:db:password}", "topic": "t"}
    props = {"password": "tiger", "topic": "u", "task.id": "0", "null": None}
    assert restore_references(props, written) == {
        "password": "${vault:db:password}",
        "topic": "u",
        "task.id": "0",
        "null": None,
    }


def test_data_does_not_show_itself() -> None:
    assert "tiger" not in repr(ConfigData({"password": "tiger"}, ttl_ms=5))


def test_has_reference() -> None:
    assert has_reference("x${a:b}")
    assert not has_reference("${a}")
    assert not has_reference(None)


def test_closing_is_optional(vault: Vault) -> None:
    vault.configure({"ttl.ms": "7"})
    vault.close()
    assert vault.get("db").ttl_ms == 7

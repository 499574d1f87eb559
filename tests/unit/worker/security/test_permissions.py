"""Roles: what is allowed, what is denied, and mistakes in their file."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from equipment.growth import assert_grows_evenly
from worker.security.permissions import EVERYTHING, OF_CONNECTORS, Permissions, Right, Target, parse_roles
from worker.security.principals import WORKER_MECHANISM, Principal

FILE = """
[roles.readers]
users = ["*"]
[[roles.readers.allow]]
rights = ["view"]

[roles.shop]
users = ["alice", "CN=shop-*"]
groups = ["shop"]
[[roles.shop.allow]]
connectors = ["shop-*"]
plugins = ["*.JdbcSinkConnector", "FileStreamSink"]
rights = ["*"]
client_overrides = ["linger.ms", "sasl.*"]
[[roles.shop.deny]]
connectors = ["shop-payroll"]
rights = ["dead-letters", "preview"]

[roles.suspended]
users = ["mallory"]
[[roles.suspended.deny]]
rights = ["view"]
"""
ROLES = parse_roles(FILE)
JDBC = ("connectors.jdbc.sink.JdbcSinkConnector", "JdbcSinkConnector")


def of(name: str, *groups: str) -> Permissions:
    return ROLES.permissions(Principal(name, "basic", groups))


def test_a_role_belongs_to_users_and_groups() -> None:
    target = Target("shop-orders", JDBC)
    assert of("alice").on(target) == OF_CONNECTORS
    assert of("CN=shop-1,O=Acme").on(target) == OF_CONNECTORS
    assert of("bob", "shop").on(target) == OF_CONNECTORS
    assert of("bob", "shopping").on(target) == {Right.VIEW}


def test_names_and_plugins_have_to_match() -> None:
    assert of("alice").on(Target("other", JDBC)) == {Right.VIEW}
    assert of("alice").on(Target("shop-orders", ("x.HttpSinkConnector",))) == {Right.VIEW}
    assert of("alice").on(Target("shop-orders", ())) == {Right.VIEW}
    assert of("alice").may_somewhere(Right.EDIT, JDBC)
    assert not of("alice").may_somewhere(Right.EDIT, ("x.HttpSinkConnector",))


def test_what_is_denied_is_denied_whatever_is_allowed() -> None:
    on = of("alice").on(Target("shop-payroll", JDBC))
    assert on == OF_CONNECTORS - {Right.DEAD_LETTERS, Right.PREVIEW}
    assert of("mallory", "shop").on(Target("shop-orders", JDBC)) == set()


def test_all_rights_on_some_connectors_are_none_on_the_worker() -> None:
    assert not any(of("alice").may(right) for right in (Right.ADMIN, Right.CLUSTER, Right.METRICS))
    assert EVERYTHING.may(Right.ADMIN)
    worker = ROLES.of_worker()
    assert worker.may(Right.VIEW, Target("a")) and not worker.may(Right.OPERATE, Target("a"))
    assert Principal("host:8083", WORKER_MECHANISM).groups == ()


def test_client_overrides_are_those_of_the_rules_that_let_edit() -> None:
    config = {
        "producer.override.linger.ms": "1",
        "consumer.override.sasl.mechanism": "x",
        "admin.override.x": "1",
        "a": "b",
    }
    assert of("alice").refused_overrides("shop-a", JDBC, config) == ["admin.override.x"]
    assert of("alice").refused_overrides(None, JDBC, config) == ["admin.override.x"]
    assert len(of("bob").refused_overrides("shop-a", JDBC, config)) == 3
    assert EVERYTHING.refused_overrides("a", (), config) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[roles", "is not TOML"),
        ("roles = 5", r"write each role as a table|Write each role as a table"),
        ("[role.a]", "There is no key 'role'; the keys are roles"),
        ("[roles.a]\nallow = []", r"roles\.a.*Name its members"),
        ("[roles.a]\nusers = 'alice'", r"roles\.a\.users.*list of strings"),
        ("[roles.a]\nusers = ['b']\nrights = ['view']", "There is no key 'rights'"),
        ("[roles.a]\nusers = ['b']\nallow = 'view'", r"\[\[roles\.a\.allow\]\]"),
        ("[roles.a]\nusers = ['b']\n[[roles.a.allow]]", r"roles\.a\.allow\[0\].*Name its rights"),
        (
            "[roles.a]\nusers = ['b']\n[[roles.a.allow]]\nrights = ['see']",
            "no right 'see'; the rights are view, configs",
        ),
        (
            "[roles.a]\nusers = ['b']\n[[roles.a.allow]]\nconnectors = ['x']\nrights = ['admin']",
            "Admin concerns no connector",
        ),
        (
            "[roles.a]\nusers = ['b']\n[[roles.a.deny]]\nrights = ['view']\nclient_overrides = []",
            "There is no key 'client_overrides'",
        ),
    ],
)
def test_a_mistake_says_where_it_is(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_roles(text)


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_plugin_pattern_that_matches_no_plugin_is_a_mistake(kind: str) -> None:
    def text(pattern: str) -> str:
        rule = f"[[roles.a.{kind}]]\nrights = ['edit']\nplugins = ['FileStreamSink', '{pattern}']"
        return f"[roles.a]\nusers = ['b']\n{rule}"

    known = {"FileStreamSink", "FileStreamSource"}
    for pattern in ("*", "FileStreamSource"):
        parse_roles(text(pattern), known.__contains__)
    with pytest.raises(ConfigError, match=rf"roles\.a\.{kind}\[0\]\.plugins.*No connector plugin .* fileStreamSink"):
        parse_roles(text("fileStreamSink"), known.__contains__)


@pytest.mark.growth
def test_odd_patterns_take_no_more_time_than_their_length() -> None:
    def match(size: int) -> bool:
        permissions = parse_roles(
            f"[roles.a]\nusers = ['*']\n[[roles.a.allow]]\nconnectors = ['{'*a' * size}b']\nrights = ['view']"
        ).permissions(Principal("x", "basic"))
        return permissions.may(Right.VIEW, Target("a" * size))

    assert_grows_evenly(match, lambda size: size, 50_000)

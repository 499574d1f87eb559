"""The keys for the security of the REST API."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from connect.errors import ConfigError
from equipment.fakes.guarded_api import small_herder
from rest.access.guards import NO_GUARDS
from rest.app import create_app
from rest.server.limits import LIMITS
from rest.server.listeners import Address
from worker.app.guards import GuardPlan, limits_of
from worker.config.security import SecurityConfig
from worker.security.redaction import Redaction

ADDRESS = Address("http", "host", 8083)


def test_without_any_key_nothing_is_asked() -> None:
    config = SecurityConfig.parse({})
    assert (config.authenticates, config.audits) == (False, False)
    assert limits_of({}) == LIMITS


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"rest.extension.classes": "com.example.Guard"}, "The only supported extension"),
        ({"rest.authorization.file": "/x"}, "nobody can sign in"),
        ({"rest.authentication.oidc.issuer": "https://a.example"}, "name the audience"),
        ({"rest.authentication.oidc.issuer": "http://a.example", "rest.authentication.oidc.audience": "x"}, "https://"),
        ({"audit.required": "true", "audit.log": "true"}, "audit.required needs audit.file or audit.topic"),
        ({"ssl.principal.mapping.rules": "RULE:(/x/"}, "no regular expression"),
        ({"ssl.principal.mapping.rules": "RULE:a/$1/"}, "refers to a group"),
        ({"ssl.principal.mapping.rules": "x"}, "neither DEFAULT nor RULE"),
        ({"rest.authentication.oidc.algorithms": "none"}, "rest.authentication.oidc.algorithms"),
        ({"rest.authentication.oidc.algorithms": "HS256"}, "rest.authentication.oidc.algorithms"),
    ],
)
def test_keys_that_would_let_anybody_in_are_refused(props: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SecurityConfig.parse(props)


def test_a_broken_file_of_roles_stops_the_start(tmp_path: Path) -> None:
    roles = tmp_path / "roles.toml"
    roles.write_text("[roles.a]\n")
    props = {"rest.authentication.tokens.file": str(tmp_path / "t"), "rest.authorization.file": str(roles)}
    with ExitStack() as stack, pytest.raises(ConfigError, match=r"This file is invalid: .*Name its members"):
        GuardPlan(props, ADDRESS, Redaction(), stack)
    roles.unlink()
    with ExitStack() as stack, pytest.raises(ConfigError, match="No such file"):
        GuardPlan(props, ADDRESS, Redaction(), stack)


def test_the_guards_are_those_that_the_file_asks_for(tmp_path: Path) -> None:
    (tmp_path / "roles.toml").write_text("")
    props = {
        "rest.authentication.certificates": "true",
        "rest.authentication.oidc.issuer": "https://issuer.example",
        "rest.authentication.oidc.audience": "sluice",
        "rest.authorization.file": str(tmp_path / "roles.toml"),
        "rest.allowed.hosts": "connect.example",
        "rest.max.requests.per.second": "5",
        "audit.file": str(tmp_path / "audit.json"),
        "audit.log": "true",
    }
    with small_herder() as herder, ExitStack() as stack:
        plan = GuardPlan(props, ADDRESS, Redaction(), stack)
        guards = plan.guards(herder, None, "/behind/ui")
        assert plan.names_callers
        assert all((guards.hosts, guards.rate, guards.access, guards.auditing))
        page = create_app(herder, "cluster", guards=guards).test_client().get("/ui/connectors?x=1")
        assert page.headers["Location"] == "/behind/ui/sign-in?next=%2Fbehind%2Fui%2Fconnectors%3Fx%3D1"
        open_to_all = GuardPlan({}, ADDRESS, Redaction(), stack)
        assert open_to_all.guards(herder, None, "/ui") == NO_GUARDS
        assert not open_to_all.names_callers

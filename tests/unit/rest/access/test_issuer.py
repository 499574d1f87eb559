"""Bearer tokens of an issuer: which hold, and how often its keys are fetched."""

from __future__ import annotations

import base64
import hmac
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from connect.errors import ConnectError
from equipment.fakes.herding import Clock
from rest.access.issuer import Issuer, IssuerSettings
from worker.security.principals import Principal

ISSUER = "https://issuer.example/realm"
JWKS = "https://issuer.example/keys"
OLD = RSAKey.generate_key(2048, {"kid": "old", "use": "sig"})
NEW = ECKey.generate_key("P-256", {"kid": "new", "use": "sig"})


class Endpoint:
    """Serves the issuer's documents, and counts."""

    def __init__(self) -> None:
        self.keys: list[Any] = [OLD]
        self.asked: list[str] = []
        self.down = False

    def __call__(self, url: str) -> Any:
        self.asked.append(url)
        if self.down:
            raise ConnectError("it is down")
        if url == f"{ISSUER}/.well-known/openid-configuration":
            return {"issuer": ISSUER, "jwks_uri": JWKS}
        assert url == JWKS
        return {"keys": [key.as_dict(private=False) for key in self.keys]}


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = 1_800_000_000.0
    return clock


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def issuer(endpoint: Endpoint, clock: Clock) -> Issuer:
    settings = IssuerSettings(ISSUER, ["sluice", "connect"], groups_claim="realm_access.roles")
    return Issuer(settings, endpoint, clock)


def claims(**changed: Any) -> dict[str, Any]:
    usual = {
        "iss": ISSUER,
        "aud": ["sluice", "other"],
        "sub": "alice",
        "exp": 1_800_000_600,
        "nbf": 1_799_999_000,
        "realm_access": {"roles": ["ops", 5]},
    }
    return {key: value for key, value in (usual | changed).items() if value is not None}


def token(key: Any = OLD, header: dict[str, Any] | None = None, **changed: Any) -> str:
    algorithm = {"RSA": "RS256", "EC": "ES256", "oct": "HS256"}[key.key_type]
    full = {"alg": algorithm, "kid": key.kid, **(header or {})}
    return jwt.encode(full, claims(**changed), key, algorithms=[full["alg"]])


def test_a_token_of_the_issuer_holds(issuer: Issuer) -> None:
    alice = Principal("alice", "oidc", ("ops",))
    assert issuer.principal(token()) == alice
    assert issuer.principal(token(aud="connect")) == alice
    assert issuer.principal(token(exp=1_799_999_990)) == alice, "by the skew of clocks"
    assert issuer.principal(token(nbf=1_800_000_050)) == alice
    assert issuer.principal(token(realm_access=None)) == Principal("alice", "oidc")


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://issuer.example/other"},
        {"iss": None},
        {"aud": "other"},
        {"aud": []},
        {"aud": None},
        {"exp": 1_799_999_900},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": 1_800_000_100},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
    ],
)
def test_a_token_that_says_something_else_does_not(issuer: Issuer, changed: dict[str, Any]) -> None:
    assert issuer.principal(token(**changed)) is None


def test_only_the_issuers_keys_and_algorithms_count(issuer: Issuer) -> None:
    other = RSAKey.generate_key(2048, {"kid": "old"})
    head, body, _ = token().split(".")
    none = "eyJhbGciOiJub25lIn0"
    hmac_head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"old"}').decode().rstrip("=")
    mac = hmac.digest(OLD.as_pem(private=False), f"{hmac_head}.{body}".encode(), "sha256")
    confused = base64.urlsafe_b64encode(mac).decode().rstrip("=")
    own_key = {"jwk": other.as_dict(private=False), "jku": "https://evil.example/keys"}
    for wrong in (
        token(other),
        f"{hmac_head}.{body}.{confused}",
        f"{head}.{body}.",
        f"{none}.{body}.",
        token(OLD, {"alg": "PS256"}),
        token(other, own_key),
        "x",
        "a.b.c",
        "é.é.é",
        f"{token()}{'A' * 20_000}",
    ):
        assert issuer.principal(wrong) is None


def test_keys_that_rotate_are_fetched_again_but_not_too_often(issuer: Issuer, endpoint: Endpoint, clock: Clock) -> None:
    assert issuer.principal(token()) is not None
    asked = len(endpoint.asked)
    endpoint.keys = [NEW]
    for _ in range(5):
        assert issuer.principal(token(NEW)) is None
    assert len(endpoint.asked) == asked, "the keys were fetched a moment ago"
    clock.now += 61
    assert issuer.principal(token(NEW)) is not None
    assert issuer.principal(token(OLD)) is None
    assert len(endpoint.asked) == asked + 2


def test_an_issuer_that_is_away_keeps_nobody_out_whose_key_is_known(
    issuer: Issuer, endpoint: Endpoint, clock: Clock
) -> None:
    assert issuer.principal(token()) is not None
    endpoint.down = True
    clock.now += 4000
    assert issuer.principal(token(exp=1_800_010_000)) is not None
    assert Issuer(IssuerSettings(ISSUER, ["sluice"]), endpoint, clock).principal(token(exp=1_800_010_000)) is None


def test_secrets_among_the_keys_are_left_out(endpoint: Endpoint, clock: Clock) -> None:
    secret = OctKey.generate_key(256, {"kid": "s"})
    settings = IssuerSettings(ISSUER, ["sluice"], JWKS, algorithms=["RS256", "HS256"])
    endpoint.keys = [OLD]
    issuer = Issuer(settings, lambda _: {"keys": [OLD.as_dict(private=False), secret.as_dict(private=True)]}, clock)
    assert issuer.principal(token()) is not None
    assert issuer.principal(token(secret)) is None


@pytest.mark.parametrize("document", [[], {}, {"keys": 5}, {"keys": [{"kty": "RSA", "n": 5}]}])
def test_a_broken_key_set_lets_nobody_in(clock: Clock, document: Any) -> None:
    assert Issuer(IssuerSettings(ISSUER, ["sluice"], JWKS), lambda _: document, clock).principal(token()) is None

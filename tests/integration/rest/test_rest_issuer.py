"""Bearer tokens of a real OpenID provider: found by its discovery document, and by keys that change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from connect.errors import ConnectError
from equipment.fakes.herding import Clock
from equipment.ports import own_port
from equipment.servers.oidc_provider import installed_provider, running_provider
from rest.access.issuer import Issuer, IssuerSettings
from worker.embedded.ports import HOST
from worker.security.principals import Principal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

CLIENTS = {"ci": "s3cret-of-ci"}


@pytest.fixture(scope="module")
def package() -> Path:
    try:
        return installed_provider()
    except ConnectError as error:
        pytest.skip(f"no OpenID provider here: {error}")


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = time.time()
    return clock


def key(kind: type[RSAKey] | type[ECKey], name: str) -> dict[str, Any]:
    algorithm, size = ("RS256", 2048) if kind is RSAKey else ("ES256", "P-256")
    made: Any = kind
    return dict(made.generate_key(size, {"kid": name, "use": "sig", "alg": algorithm}).as_dict(private=True))


def test_tokens_of_a_real_provider_hold_also_after_it_changes_its_keys(package: Path, clock: Clock) -> None:
    port, old, new = own_port(), key(RSAKey, "old"), key(ECKey, "new")
    settings = IssuerSettings(
        f"http://{HOST}:{port}",
        ["sluice"],
        principal_claim="preferred_username",
        groups_claim="realm_access.roles",
    )
    issuer = Issuer(settings, clock=clock)
    service = Principal("service-ci", "oidc", ("operators",))
    with running_provider(package, port, [old], CLIENTS) as provider:
        first = provider.token("ci", CLIENTS["ci"], "sluice")
        assert issuer.principal(first) == service
        assert issuer.principal(provider.token("ci", CLIENTS["ci"], "another")) is None, "for another service"
    assert issuer.principal(first) == service, "the keys are known, though the provider is away"
    with running_provider(package, port, [new, old], CLIENTS) as provider:
        second = provider.token("ci", CLIENTS["ci"], "sluice")
        clock.now += 61
        assert issuer.principal(second) == service
        assert issuer.principal(first) == service, "until the provider takes the key back"
    clock.now += 700
    assert issuer.principal(second) is None, "it has expired"

"""The HTTP client as its families use it: the HTTP connectors and the schema registry, by TLS, OAuth and proxies."""

from __future__ import annotations

import base64
import gzip
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.kits.http.messages import NoAnswerError, Request
from connectors.http.client_config import ClientConfig, http_client
from converters.registry import RegistryClient, RegistryConfig
from equipment.brokers.certificates import Authority
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.fakes.tunnels import serving_tunnels

SECRET = "not telling anybody"
SCHEMAS = "/schemas/ids/"

Ask = Callable[[], object]


class Connector:
    """The client of an HTTP connector."""

    untrusted, delayed = "Check the https.ssl keys", NoAnswerError
    tls = "https."

    @staticmethod
    def asking(url: str, stack: ExitStack, props: dict[str, str]) -> Ask:
        client = stack.enter_context(closing(http_client(ClientConfig.parse(props))))
        return lambda: client.send(Request("GET", f"{url}{SCHEMAS}1")).body

    @staticmethod
    def oauth(endpoint: str) -> dict[str, str]:
        return {
            "http.auth.type": "OAUTH2",
            "oauth2.access.token.url": endpoint,
            "oauth2.client.id": "me",
            "oauth2.client.secret": SECRET,
            "oauth2.client.scope": "all of it",
        }

    @staticmethod
    def proxy(port: int) -> dict[str, str]:
        return {"http.client.proxy.host": "127.0.0.1", "http.client.proxy.port": str(port)}


class Registry:
    """The client of a schema registry."""

    untrusted, delayed = "Check the schema.registry.ssl keys", RetriableError
    tls = "schema.registry."

    @staticmethod
    def asking(url: str, stack: ExitStack, props: dict[str, str]) -> Ask:
        config = RegistryConfig.parse({"schema.registry.url": url, "max.retries": "0", **props})
        client = stack.enter_context(closing(RegistryClient(config)))
        numbers = iter(range(1, 100))
        # Each answer is kept, so that only another schema is asked for.
        return lambda: client.by_id(next(numbers))

    @staticmethod
    def oauth(endpoint: str) -> dict[str, str]:
        return {
            "bearer.auth.credentials.source": "OAUTHBEARER",
            "bearer.auth.issuer.endpoint.url": endpoint,
            "bearer.auth.client.id": "me",
            "bearer.auth.client.secret": SECRET,
            "bearer.auth.scope": "all of it",
        }

    @staticmethod
    def proxy(port: int) -> dict[str, str]:
        return {"proxy.host": "127.0.0.1", "proxy.port": str(port)}


Family = type[Connector] | type[Registry]

families = pytest.mark.parametrize("family", [Connector, Registry])


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


def serve(stack: ExitStack, context: ssl.SSLContext | None = None) -> HttpApi:
    """A server of one schema and of tokens."""
    api = stack.enter_context(serving_api(context))
    api.route(SCHEMAS, Answer(200, {"schema": '"int"'}))
    api.route("/token", Answer(200, {"access_token": "t0ken-0f-mine", "expires_in": 3600}))
    return api


def authorizations(api: HttpApi) -> list[str]:
    """The credentials of the requests for schemas."""
    return [each.headers["authorization"] for each in api.asked if each.path.startswith(SCHEMAS)]


def encrypted(authority: Authority, folder: Path, stack: ExitStack) -> HttpApi:
    """Such a server by TLS, which asks clients for their certificates."""
    identity = authority.sign("127.0.0.1")
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "server.pem").write_text(identity.key_pem() + identity.certificate_pem)
    (folder / "me.p12").write_bytes(authority.sign("me").pkcs12("store password"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return serve(stack, context)


def stores(family: Family, folder: Path) -> dict[str, str]:
    return {
        f"{family.tls}ssl.truststore.location": str(folder / "ca.pem"),
        f"{family.tls}ssl.keystore.location": str(folder / "me.p12"),
        f"{family.tls}ssl.keystore.password": "store password",
    }


@families
def test_a_token_and_an_answer_come_by_tls_through_a_proxy(family: Family, tmp_path: Path, stack: ExitStack) -> None:
    api = encrypted(Authority(), tmp_path, stack)
    tunnels = stack.enter_context(serving_tunnels())
    props = {**stores(family, tmp_path), **family.oauth(f"{api.url}/token"), **family.proxy(tunnels.port)}
    ask = family.asking(api.url, stack, props)
    for _ in range(3):
        assert ask()
    assert {place for place, _ in tunnels.opened} == {api.url.removeprefix("https://")}
    (token,) = api.asked_of("/token")
    assert token.body == b"grant_type=client_credentials&scope=all+of+it"
    assert token.headers["authorization"] == f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"
    assert authorizations(api) == ["Bearer t0ken-0f-mine"] * 3
    assert {each.headers["accept-encoding"] for each in api.asked} == {"gzip, deflate"}


@families
@pytest.mark.parametrize("proxied", [False, True])
def test_an_untrusted_server_gets_neither_token_nor_secret(
    family: Family, tmp_path: Path, stack: ExitStack, proxied: bool
) -> None:
    api = encrypted(Authority(), tmp_path, stack)
    tunnels = stack.enter_context(serving_tunnels())
    (tmp_path / "ca.pem").write_text(Authority().pem)
    props = {**stores(family, tmp_path), **family.oauth(f"{api.url}/token")}
    props |= family.proxy(tunnels.port) if proxied else {}
    with pytest.raises(ConnectError, match=family.untrusted) as caught:
        family.asking(api.url, stack, props)()
    assert not isinstance(caught.value, (NoAnswerError, RetriableError))
    assert api.asked == []
    assert len(tunnels.opened) == proxied


@families
@pytest.mark.parametrize("place", ["http://169.254.169.254/latest", "http://[::ffff:a9fe:a9fe]/", "http://2852039166/"])
def test_a_token_endpoint_is_no_way_to_metadata(family: Family, stack: ExitStack, place: str) -> None:
    api = serve(stack)
    tunnels = stack.enter_context(serving_tunnels())
    for through in ({}, family.proxy(tunnels.port)):
        with pytest.raises(ConnectError, match="where clouds serve credentials"):
            family.asking(api.url, stack, {**family.oauth(place), **through})()
    assert api.asked == []
    assert tunnels.opened == []


@families
def test_a_token_endpoint_cannot_redirect(family: Family, stack: ExitStack) -> None:
    api, other = serve(stack), serve(stack)
    api.route("/token", Answer(307, headers={"Location": f"{other.url}/token"}))
    with pytest.raises(ConnectError, match=r"refuses to issue .* \(HTTP status 307\)"):
        family.asking(api.url, stack, family.oauth(f"{api.url}/token"))()
    assert other.asked == []


@families
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, "down"),
        Answer(200, b"[1, 2, 3]", cut=4),
        Answer(200, gzip.compress(b'{"access_token": "x"}')[:-4], {"Content-Encoding": "gzip"}),
    ],
    ids=["down", "cut off", "compressed and cut off"],
)
def test_a_token_that_did_not_come_is_asked_for_again(family: Family, stack: ExitStack, answer: Answer) -> None:
    api = serve(stack)
    ask = family.asking(api.url, stack, family.oauth(f"{api.url}/token?key=s3cr"))
    fine, answers = api.routes["/token"], [answer]
    api.route("/token", lambda asked: answers.pop() if answers else fine(asked))
    with pytest.raises(family.delayed) as caught:
        ask()
    assert "s3cr" not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert ask()
    assert len(api.asked_of("/token")) == 2


@families
def test_a_token_is_no_longer_used_than_it_is_valid(family: Family, stack: ExitStack) -> None:
    api = serve(stack)
    tokens = iter(range(1, 10))

    def token(_: Asked) -> Answer:
        # Hardly any life for the connectors; the registry's client replaces tokens 300 s before they expire.
        seconds: Any = 1e-6 if family is Connector else 300
        return Answer(200, {"access_token": f"token-{next(tokens)}", "expires_in": seconds})

    api.route("/token", token)
    ask = family.asking(api.url, stack, family.oauth(f"{api.url}/token"))
    for _ in range(3):
        assert ask()
    assert authorizations(api) == ["Bearer token-1", "Bearer token-2", "Bearer token-3"]

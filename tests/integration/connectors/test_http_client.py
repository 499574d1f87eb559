"""The HTTP client against servers of every kind: redirects, tokens, broken and endless answers, TLS, proxies."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connect.config import Password
from connect.errors import ConfigError, ConnectError
from connect.hosts import HostDeniedError, HostRules
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import BrokenResponseError, NoAnswerError, Request, TimedOutError, UntrustedError
from connect.kits.http.transport import Connections
from connectors.http.client_config import ClientConfig, http_client
from equipment.brokers.certificates import Authority
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api

SECRET = "not telling anybody"


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        served.route("/ok", Answer(200, "fine"))
        yield served


@pytest.fixture
def client() -> Iterator[Callable[..., HttpClient]]:
    made: list[HttpClient] = []

    def make(**props: str) -> HttpClient:
        given = {key.replace("_", "."): value for key, value in props.items()}
        made.append(http_client(ClientConfig.parse(given)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def get(client: HttpClient, url: str, **headers: str) -> Any:
    return client.send(Request("GET", url, headers))


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fe80::1]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://169.254.169.254./",
        "http://100.100.100.200/",
        "//169.254.169.254/",
    ],
)
def test_no_spelling_of_a_cloud_s_own_address_is_reached(
    api: HttpApi, client: Callable[..., HttpClient], target: str
) -> None:
    api.route("/away", Answer(302, headers={"Location": target}))
    with pytest.raises((HostDeniedError, NoAnswerError)) as raised:
        get(client(), f"{api.url}/away")
    if isinstance(raised.value, NoAnswerError):
        # The system's resolver does not take that spelling, so that nothing was connected to.
        assert "does not answer" in str(raised.value)
        assert target == "http://169.254.169.254./"
    else:
        assert "where clouds serve credentials" in str(raised.value)


def test_every_hop_of_a_redirect_is_checked(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    api.route("/one", Answer(302, headers={"Location": "/two"}))
    api.route("/two", Answer(307, headers={"Location": f"http://localhost:{api.url.rpartition(':')[2]}/ok"}))
    assert get(client(), f"{api.url}/one").body == b"fine"
    refusing = client(http_denied_hosts="localhost")
    with pytest.raises(HostDeniedError, match=r"http\.denied\.hosts in the worker's file"):
        get(refusing, f"{api.url}/one")
    with pytest.raises(HostDeniedError, match=r"http\.allowed\.hosts in the worker's file does not list it"):
        get(client(http_allowed_hosts="example.com,10.0.0.0/8"), f"{api.url}/ok")
    assert get(client(http_allowed_hosts="127.0.0.0/8"), f"{api.url}/ok").status == 200


def test_a_name_is_resolved_once_and_its_checked_address_is_used(api: HttpApi) -> None:
    """A name that answers with another address the second time (DNS rebinding)."""
    port = int(api.url.rpartition(":")[2])
    answers = [["127.0.0.1"], ["169.254.169.254"], ["169.254.169.254", "127.0.0.1"]]

    def resolve(host: str, *_: object, **__: object) -> Sequence[tuple[Any, ...]]:
        assert host == "rebinding.example"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers.pop(0)]

    connections = Connections(HostRules.of(), resolve)
    with closing(connections.connect(None, "rebinding.example", port, 5.0)) as made:
        assert made.getpeername() == ("127.0.0.1", port)
        assert len(answers) == 2
    with pytest.raises(HostDeniedError):
        connections.connect(None, "rebinding.example", port, 5.0)
    # Of several addresses only those that are permitted are tried.
    with closing(connections.connect(None, "rebinding.example", port, 5.0)) as made:
        assert made.getpeername() == ("127.0.0.1", port)


def test_credentials_stay_with_their_host(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    with serving_api() as other:
        other.route("/there", Answer(200, "hello"))
        api.route("/away", Answer(302, headers={"Location": f"{other.url}/there"}))
        api.route("/here", Answer(302, headers={"Location": "/ok"}))
        asking = client(http_auth_type="bearer", http_auth_token=SECRET)
        assert get(asking, f"{api.url}/away", **{"X-Token": SECRET, "Accept": "text/plain"}).body == b"hello"
        (asked,) = other.asked
        assert SECRET not in str(asked.headers)
        assert asked.headers["accept"] == "text/plain"
        get(asking, f"{api.url}/here", **{"X-Token": SECRET})
        assert api.asked[-1].headers["authorization"] == f"Bearer {SECRET}"
        assert api.asked[-1].headers["x-token"] == SECRET
        # A body is not taken elsewhere, and not lost on the way.
        api.route("/away", Answer(307, headers={"Location": f"{other.url}/there"}))
        with pytest.raises(BrokenResponseError, match="a body is not sent to another host"):
            asking.send(Request("POST", f"{api.url}/away", {}, b"data"))
        api.route("/away", Answer(302, headers={"Location": "/ok"}))
        assert asking.send(Request("POST", f"{api.url}/away", {}, b"data")).status == 302


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("ftp://example.com/", "an invalid HTTP URL"),
        ("http://me:secret@127.0.0.1/", "a user"),
        ("/round", "more than 5"),
    ],
)
def test_strange_redirects_are_refused(
    api: HttpApi, client: Callable[..., HttpClient], location: str, reason: str
) -> None:
    api.route("/round", Answer(302, headers={"Location": location}))
    with pytest.raises(BrokenResponseError, match=reason) as raised:
        get(client(), f"{api.url}/round")
    assert "secret" not in str(raised.value)


def test_a_token_is_fetched_renewed_and_hidden(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    tokens = iter(range(1, 10))

    def token(asked: Asked) -> Answer:
        assert asked.headers["authorization"].startswith("Basic ")
        assert asked.body == b"grant_type=client_credentials&scope=all+of+it"
        return Answer(200, {"access_token": f"token-number-{next(tokens)}", "expires_in": 3600})

    valid = {"Bearer token-number-1"}
    api.route("/token", token)
    api.route("/data", lambda asked: Answer(200 if asked.headers["authorization"] in valid else 401, "data"))
    asking = client(
        http_auth_type="OAUTH2",
        oauth2_access_token_url=f"{api.url}/token",
        oauth2_client_id="me",
        oauth2_client_secret=SECRET,
        oauth2_client_scope="all of it",
    )
    assert [get(asking, f"{api.url}/data").status for _ in range(3)] == [200] * 3
    assert len(api.asked_of("/token")) == 1
    valid.clear()
    valid.add("Bearer token-number-2")
    assert get(asking, f"{api.url}/data").status == 200
    valid.clear()
    # A new one is asked for once, not for ever.
    assert get(asking, f"{api.url}/data").status == 401
    assert len(api.asked_of("/token")) == 3
    assert asking.hide(f"<token-number-3> {SECRET}") == "<[hidden]> [hidden]"


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (Answer(401, f"wrong: {SECRET}"), ConnectError, r"refuses to issue a token \(HTTP status 401\)"),
        (Answer(503), NoAnswerError, "answered with HTTP status 503"),
        (Answer(200, {"token": "x"}), ConnectError, "without a token in access_token"),
        (Answer(200, b"\xff" * 20), ConnectError, "without a token"),
        (Answer(200, "[" * 100_000), ConnectError, "without a token"),
        (Answer(200, {"access_token": "a\r\nb"}), ConnectError, "without a token"),
    ],
)
def test_a_token_endpoint_may_refuse(
    api: HttpApi, client: Callable[..., HttpClient], answer: Answer, error: type[Exception], text: str
) -> None:
    api.route("/token", answer)
    asking = client(
        http_auth_type="OAUTH2",
        oauth2_token_url=f"{api.url}/token",
        oauth2_client_id="me",
        oauth2_client_secret=SECRET,
    )
    with pytest.raises(error, match=text) as raised:
        get(asking, f"{api.url}/ok")
    assert SECRET not in str(raised.value)


def test_a_key_may_be_a_parameter(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    asking = client(
        http_auth_type="API_KEY", http_auth_api_key=SECRET, http_auth_api_key_in="query", http_auth_api_key_name="k"
    )
    get(asking, f"{api.url}/ok?a=1")
    assert api.asked[-1].query == {"a": ["1"], "k": [SECRET]}
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        with pytest.raises(NoAnswerError) as raised:
            get(asking, f"http://127.0.0.1:{unheard.getsockname()[1]}/private?a=1")
    assert "Connection refused" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_bodies_are_bounded_even_when_they_are_packed(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    api.route("/packed", Answer(200, gzip.compress(b"0" * 50_000_000), {"Content-Encoding": "gzip"}))
    api.route("/small", Answer(200, gzip.compress(b"0" * 1000), {"Content-Encoding": "gzip"}))
    asking = client(http_response_max_bytes="100000")
    with pytest.raises(BrokenResponseError, match="more than 100000 bytes"):
        get(asking, f"{api.url}/packed")
    assert get(asking, f"{api.url}/small").body == b"0" * 1000
    kept = asking.send(Request("GET", f"{api.url}/packed"), keep=10)
    assert (kept.status, kept.body) == (200, b"0" * 10)


def test_half_an_answer_is_none(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    api.route("/cut", Answer(200, b"[1, 2, 3]", cut=4))
    with pytest.raises(NoAnswerError, match="/cut does not answer"):
        get(client(), f"{api.url}/cut")
    api.route("/broken", Answer(200, b"no gzip at all", {"Content-Encoding": "gzip"}))
    with pytest.raises(NoAnswerError):
        get(client(), f"{api.url}/broken")


def test_silence_ends_by_the_timeout_and_by_an_abort(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    begun = threading.Event()

    def silent(_: Asked) -> Answer:
        begun.set()
        api.closing.wait()
        return Answer()

    api.route("/silent", silent)
    with pytest.raises(TimedOutError):
        get(client(http_client_read_timeout_millis="50"), f"{api.url}/silent")
    begun.clear()
    waiting, found = client(http_client_read_timeout_millis="600000"), []

    def wait() -> None:
        try:
            get(waiting, f"{api.url}/silent")
        except NoAnswerError as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(60)
    waiting.abort()
    thread.join(60)
    assert len(found) == 1


def test_an_answer_that_drips_is_not_read_for_ever(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    def drops() -> Iterator[bytes]:
        while not api.closing.wait(0.01):
            yield b"x"

    api.route("/drips", lambda _: Answer(200, stream=drops()))
    asking = client(http_client_body_timeout_millis="100")
    started = time.monotonic()
    with pytest.raises(TimedOutError, match="complete answer within"):
        get(asking, f"{api.url}/drips")
    assert time.monotonic() - started < 60


def test_tls_trusts_only_the_given_authority(client: Callable[..., HttpClient], tmp_path: Path) -> None:
    authority = Authority()
    server, user = authority.sign("127.0.0.1"), authority.sign("me")
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "server.pem").write_text(server.key_pem() + server.certificate_pem)
    (tmp_path / "me.p12").write_bytes(user.pkcs12("store password"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem"))
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    trusting = {"https_ssl_truststore_location": str(tmp_path / "ca.pem")}
    with serving_api(context) as api:
        api.route("/ok", Answer(200, "fine"))
        own = {"http_client_keystore": str(tmp_path / "me.p12"), "http_client_keystore_password": "store password"}
        assert get(client(**trusting, **own), f"{api.url}/ok").body == b"fine"
        with pytest.raises(UntrustedError, match=r"Check the https\.ssl keys"):
            get(client(**own), f"{api.url}/ok")
        # Without a certificate of its own the server refuses the client, with TLS 1.3 only when it is asked.
        with pytest.raises((UntrustedError, NoAnswerError)):
            get(client(**trusting), f"{api.url}/ok")
        assert get(client(http_ssl_trust_all_certs="true", **own), f"{api.url}/ok").body == b"fine"


def test_a_proxy_is_asked_with_its_password_and_checked_itself(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    place = api.url.rpartition("/")[2].split(":")
    through = {
        "http_client_proxy_host": place[0],
        "http_client_proxy_port": place[1],
        "http_client_proxy_username": "me",
        "http_client_proxy_password": SECRET,
    }
    api.route("/ok", Answer(200, "by proxy"))
    with serving_api() as target:
        # The proxy of the test answers by itself.
        assert get(client(**through), f"{target.url}/ok").body == b"by proxy"
        assert target.asked == []
    assert api.asked[-1].headers["proxy-authorization"].startswith("Basic ")
    with pytest.raises(HostDeniedError):
        get(client(**through), "http://169.254.169.254/ok")
    with pytest.raises(ConfigError, match=r"http\.client\.proxy\.host: Connecting to 127\.0\.0\.1 is not allowed"):
        client(http_denied_hosts="127.0.0.0/8", **through)
    named = client(http_denied_hosts="127.0.0.0/8", **through | {"http_client_proxy_host": "localhost"})
    with pytest.raises(HostDeniedError, match=r"localhost \("):
        get(named, "http://example.invalid/ok")
    assert len(api.asked) == 1


def test_connections_are_kept(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    asking = client(http_auth_type="BASIC", http_auth_user="me", http_auth_password=SECRET)
    assert [get(asking, f"{api.url}/ok").status for _ in range(20)] == [200] * 20
    assert api.connections == 1
    assert Password(SECRET).value not in repr(Request("GET", f"{api.url}/ok?{SECRET}", {"X": SECRET}))


@pytest.mark.parametrize("length", [1, 2, 12, -1])
def test_a_compressed_body_without_its_end_is_no_answer(
    api: HttpApi, client: Callable[..., HttpClient], length: int
) -> None:
    text = b"".join(b"line %d\n" % number for number in range(2000))
    for encoding, packed in (("gzip", gzip.compress(text)), ("deflate", zlib.compress(text))):
        api.route("/cut", Answer(200, packed[:length], {"Content-Encoding": encoding}))
        with pytest.raises(NoAnswerError, match=f"did not send its complete answer: its {encoding} data are cut off"):
            get(client(), f"{api.url}/cut")
        api.route("/whole", Answer(200, packed, {"Content-Encoding": encoding}))
        assert get(client(), f"{api.url}/whole").body == text
    api.route("/cut", Answer(200, gzip.compress(text)[:length], {"Content-Encoding": "gzip"}))
    assert client().send(Request("POST", f"{api.url}/cut", body=b"x"), keep=10).status == 200


def test_an_encoding_that_was_not_asked_for_is_named(api: HttpApi, client: Callable[..., HttpClient]) -> None:
    api.route("/br", Answer(200, b"\x0b\x02\x80[]\x03", {"Content-Encoding": "br"}))
    with pytest.raises(BrokenResponseError, match="Content-Encoding 'br', though gzip, deflate were asked for"):
        get(client(), f"{api.url}/br")
    assert client().send(Request("POST", f"{api.url}/br", body=b"x"), keep=10).status == 200

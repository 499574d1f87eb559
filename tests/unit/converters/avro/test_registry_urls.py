"""URLs with a user and a password: neither shows in any error, config or trace, and what is no URL is refused."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from connect.config.url import http_url, shown_url
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from converters.registry import RegistryClient, RegistryConfig, RegistryError
from equipment.fakes.schema_registry import MemoryRegistry

BAD = [
    "http://admin:s3cr/tpass@h:9",
    "http://admin:9/s3cr@h:9",
    "http://admin:s3cr#tpass@h:9",
    "http://admin:9#s3cr@h:9",
    "http://admin:s3cr?tpass@h:9",
    "http://admin:9?s3cr@h:9",
    "http://admin:s3[cr@h:9",
    "http://admin:s3]cr@h:9",
    "http://[s3cr@h:9",
    "http://admin:s3cr@h:port",
    "http://admin:s3cr@h:99999",
    "http://admin:s3cr@",
    "http://admin:s3cr@/x",
    "http://admin:s3 cr@h:9",
    "http://admin:s3\tcr@h:9",
    "http://admin:s3\\cr@h:9",
    "http://admin:s3cr%ff@h:9",
    "http://admin:s3cr@\u2100.example",
    "http://admin:s3cr@.example",
    f"http://admin:s3cr@{'h' * 70}.example",
    "http://admin:s3cr@h?x=1",
    "http://admin:s3cr@h#x",
    "ftp://admin:s3cr@h",
    "admin:s3cr@h",
    "s3cr",
    "http://good, http://admin:s3,cr@h",
    "http://good,http://admin:9,s3cr@h",
    "http://good,http://admin:s3/cr@h",
]


def whole_trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + repr(getattr(error, "value", ""))


@pytest.mark.parametrize("text", BAD)
def test_urls_that_are_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"\[hidden\] for configuration schema\.registry\.url") as caught:
        RegistryConfig.parse({"schema.registry.url": text})
    assert "s3" not in whole_trace(caught.value)


@pytest.mark.parametrize(
    ("text", "address", "user_info"),
    [
        ("http://h", "http://h", None),
        (" https://h:8081/apis/ccompat/v7/ ", "https://h:8081/apis/ccompat/v7", None),
        ("http://me:p%40w%2F%23%5B@h:9", "http://h:9", "me:p@w/#["),
        ("http://me@h", "http://h", "me:"),
        ("http://me:p@w@h", "http://h", "me:p@w"),
        ("http://[::1]:8081", "http://[::1]:8081", None),
        ("HTTP://h", "http://h", None),
    ],
)
def test_urls_that_are_taken_apart(text: str, address: str, user_info: str | None) -> None:
    (url,) = RegistryConfig.parse({"schema.registry.url": text}).urls
    assert (url.address, url.user_info and url.user_info.value) == (address, user_info)
    assert "p@w" not in repr(url)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("proxy.host", "http://me:s3cr@proxy"),
        ("proxy.host", "me:s3cr@proxy"),
        ("proxy.host", "s3cr/proxy"),
        ("bearer.auth.issuer.endpoint.url", "https://me:s3cr@issuer/token"),
        ("bearer.auth.issuer.endpoint.url", "https://me:s3/cr@issuer/token"),
        ("bearer.auth.issuer.endpoint.url", "s3cr"),
        ("bearer.auth.token", "s3cr\nx"),
        ("bearer.auth.token", "s3 cr"),
    ],
)
def test_other_keys_that_are_refused_and_not_shown(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RegistryConfig.parse({"schema.registry.url": "http://h", "proxy.port": "3128", key: value})
    assert f"[hidden] for configuration {key}" in str(caught.value)
    assert "s3" not in whole_trace(caught.value)


@pytest.mark.parametrize(
    ("host", "proxy"),
    [("proxy", "http://proxy:3128"), ("10.0.0.1", "http://10.0.0.1:3128"), ("::1", "http://[::1]:3128"), ("", None)],
)
def test_proxies(host: str, proxy: str | None) -> None:
    props = {"schema.registry.url": "http://h", "proxy.host": host, "proxy.port": "3128"}
    assert RegistryConfig.parse(props).proxy == proxy


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3a://key:s3/cr@bucket/x", "s3a://[hidden]@bucket/x"),
        ("me:s3cr@h", "[hidden]@h"),
        ("http://h/path", "http://h/path"),
    ],
)
def test_urls_of_any_kind_are_shown_without_their_users(text: str, shown: str) -> None:
    assert shown_url(text) == shown


def test_the_query_of_an_issuer_is_asked_for_and_not_shown() -> None:
    url = http_url("https://issuer/token?key=s3cr")
    assert url.full == "https://issuer/token?key=s3cr"
    assert "s3cr" not in repr(url) + url.address


OAUTH = {
    "bearer.auth.credentials.source": "OAUTHBEARER",
    "bearer.auth.client.id": "me",
    "bearer.auth.client.secret": "s3cr",
}


def with_user(memory: MemoryRegistry) -> str:
    return memory.url.replace("//", "//me:s3cr@")


Fail = Callable[[MemoryRegistry], dict[str, str]]


@pytest.mark.parametrize(
    "props",
    [
        lambda _: {"schema.registry.url": "http://me:s3cr@127.0.0.1:1"},
        lambda memory: {**OAUTH, "bearer.auth.issuer.endpoint.url": "http://127.0.0.1:1/t?k=s3cr"},
        lambda memory: {**OAUTH, "bearer.auth.issuer.endpoint.url": f"{memory.url}/token?k=s3cr"},
        lambda memory: {"schema.registry.url": with_user(memory), "proxy.host": "127.0.0.1", "proxy.port": "1"},
        lambda memory: {"schema.registry.url": f"{with_user(memory)}/wrong"},
    ],
    ids=["nobody there", "no issuer", "no token", "no proxy", "no registry"],
)
def test_no_trace_shows_a_secret(memory: MemoryRegistry, props: Fail) -> None:
    given = {"schema.registry.url": memory.url, "max.retries": "0", **props(memory)}
    client = RegistryClient(RegistryConfig.parse(given))
    with pytest.raises(ConnectError) as caught:
        client.register("s", '"int"')
    client.close()
    assert "s3cr" not in whole_trace(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, '{"error_code":400,"message":"m"}', "RegistryError"),
        (401, "", "ConnectError"),
        (402, '{"error_code":402,"message":"m"}', "ConnectError"),
        (403, '{"error_code":40301,"message":"m"}', "ConnectError"),
        (404, '{"error_code":40403,"message":"m"}', "RegistryError"),
        (404, '{"error_code":404,"message":"HTTP 404 Not Found"}', "ConnectError"),
        (404, "<html>", "ConnectError"),
        (405, '{"error_code":405,"message":"m"}', "ConnectError"),
        (407, '{"error_code":407,"message":"m"}', "ConnectError"),
        (409, '{"error_code":40901,"message":"m"}', "RegistryError"),
        (413, '{"error_code":413,"message":"m"}', "RegistryError"),
        (422, '{"error_code":42201,"message":"m"}', "RegistryError"),
        (422, '{"error_code":42205,"message":"read-only"}', "ConnectError"),
        (302, "", "ConnectError"),
        (501, "", "ConnectError"),
        (500, '{"error_code":50001,"message":"m"}', "RetriableError"),
        (520, "", "RetriableError"),
        (429, "", "RetriableError"),
        (200, "<html>", "ConnectError"),
        (200, "[]", "ConnectError"),
        (200, "7", "ConnectError"),
        (200, '{"id": 4294967296}', "ConnectError"),
        (200, '{"id": true}', "ConnectError"),
        (200, "[" * 100_000, "ConnectError"),
        (422, '{"error_code":1e999,"message":"m"}', "ConnectError"),
        (422, "[" * 100_000, "ConnectError"),
    ],
)
def test_what_an_answer_means(memory: MemoryRegistry, status: int, body: str, kind: str) -> None:
    """A ``RegistryError`` or ``DataError`` concerns what is asked, a ``ConnectError`` everybody."""
    client = RegistryClient(RegistryConfig.parse({"schema.registry.url": memory.url, "max.retries": "0"}))
    memory.answers.append((status, body))
    with pytest.raises(ConnectError) as caught:
        client.register("s", '"int"')
    client.close()
    named = (RegistryError, DataError, RetriableError, ConnectError)
    assert next(each for each in named if isinstance(caught.value, each)).__name__ == kind


@pytest.mark.parametrize("body", ["[1]", "7", '{"schema": 7}', '{"schema": "x", "references": [1]}'])
def test_answers_that_are_no_schema(memory: MemoryRegistry, body: str) -> None:
    client = RegistryClient(RegistryConfig.parse({"schema.registry.url": memory.url}))
    for ask in (lambda: client.by_id(1), lambda: client.latest("s"), lambda: client.look_up("s", "x")):
        memory.answers.append((200, body))
        with pytest.raises(ConnectError, match="answered with") as caught:
            ask()
        assert not isinstance(caught.value, DataError)
    memory.answers.append((200, '{"a": 1}'))
    with pytest.raises(ConnectError, match="without the versions") as caught:
        client.version_of(1, "s")
    assert not isinstance(caught.value, DataError)
    client.close()


def test_trouble_at_all_urls_is_told_of_each(memory: MemoryRegistry) -> None:
    props = {"schema.registry.url": f"http://me:s3cr@127.0.0.1:1,{memory.url}", "max.retries": "0"}
    client = RegistryClient(RegistryConfig.parse(props))
    memory.troubles.append(503)
    with pytest.raises(RetriableError, match=r"http://127\.0\.0\.1:1: no connection.*; http.*: HTTP status 503"):
        client.register("s", '"int"')
    client.close()

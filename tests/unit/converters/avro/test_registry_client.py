"""The client of a schema registry: what it remembers, what it repeats, what it says when it cannot go on."""

from __future__ import annotations

import base64
import gzip
import os
import pickle
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from connect.hosts import HostDeniedError
from converters.registry import RegistryClient, RegistryConfig, RegistryError, SchemaReference
from equipment.brokers.certificates import Authority
from equipment.fakes.http_api import Answer, HttpApi, serving_api
from equipment.fakes.schema_registry import MemoryRegistry, serving

TLS = Path(__file__).parents[2] / "connect" / "internals" / "kafka" / "data"
CERTIFICATE, KEY = (TLS / "certificate.pem").read_text(), (TLS / "key.pem").read_text()


@pytest.fixture
def client(memory: MemoryRegistry) -> Iterator[Callable[..., RegistryClient]]:
    """Makes clients of the registry in memory, from keys with underscores for dots."""
    made: list[RegistryClient] = []

    def make(waits: list[float] | None = None, **props: str) -> RegistryClient:
        named = {"schema_registry_url": memory.url, **props}
        config = RegistryConfig.parse({key.replace("_", "."): value for key, value in named.items()})
        made.append(RegistryClient(config, wait=(waits if waits is not None else []).append))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def closed_port() -> int:
    """A port of loopback where nobody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


Make = Callable[..., RegistryClient]


def test_what_cannot_change_is_asked_once(memory: MemoryRegistry, client: Make) -> None:
    registry = client()
    for _ in range(2):
        assert registry.register("s-value", '"int"') == 1
        assert registry.by_id(1).text == '"int"'
        assert registry.look_up("s-value", '"int"').version == 1
        assert registry.version_of(1, "s-value") == 1
        assert registry.latest("s-value").id == 1
    assert len(memory.requests) == len(set(memory.requests)) == 5


def test_the_latest_schema_is_asked_for_again_when_it_is_old(memory: MemoryRegistry, client: Make) -> None:
    registry = client(latest_cache_ttl_sec="0")
    memory.add("s", '"int"')
    assert registry.latest("s").version == 1
    memory.add("s", '"long"')
    assert registry.latest("s").version == 2


def test_no_more_is_remembered_than_was_asked_for(memory: MemoryRegistry, client: Make) -> None:
    registry = client(max_schemas_per_subject="1")
    for text in ('"int"', '"long"', '"int"'):
        registry.register("s", text)
    assert len(memory.requests) == 3


def test_a_subject_may_have_any_name(memory: MemoryRegistry, client: Make) -> None:
    client().register("a/b ?&#", '"int"')
    assert memory.subjects == {"a/b ?&#": [1]}


def test_normal_forms_are_asked_for(memory: MemoryRegistry, client: Make) -> None:
    client(normalize_schemas="true").register("s", '"int"')
    assert memory.requests == ["POST /subjects/s/versions?normalize=true"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_registry_in_trouble_is_asked_again(memory: MemoryRegistry, client: Make, status: int) -> None:
    waits: list[float] = []
    memory.troubles.extend([status] * 3)
    assert client(waits).register("s", '"int"') == 1
    assert len(waits) == 3


def test_waits_grow_up_to_the_longest(client: Make, memory: MemoryRegistry) -> None:
    waits: list[float] = []
    memory.troubles.extend([503] * 9)
    client(waits, max_retries="9", retries_wait_ms="100", retries_max_wait_ms="400").register("s", '"int"')
    assert len(waits) == 9
    assert all(wait <= limit for wait, limit in zip(waits, [0.1, 0.2, *[0.4] * 7], strict=True))


def test_a_registry_that_stays_away_is_to_be_tried_later(
    client: Make, closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    registry = client(waits, schema_registry_url=f"http://me:secret@127.0.0.1:{closed_port}")
    with pytest.raises(RetriableError, match=r"Cannot register a schema under subject s, the schema registry does not"):
        registry.register("s", '"int"')
    assert len(waits) == 3
    with pytest.raises(RetriableError) as caught:
        registry.by_id(1)
    assert f"http://127.0.0.1:{closed_port}: no connection" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert [record.message for record in caplog.records] == [
        f"Cannot {what} yet, the schema registry does not answer (http://127.0.0.1:{closed_port}: no connection "
        "(Connection refused))"
        for what in ("register a schema under subject s", "get the schema with id 1")
    ], "told at once, not after all waits"


def test_another_url_takes_over_at_once_and_is_kept(memory: MemoryRegistry, client: Make, closed_port: int) -> None:
    waits: list[float] = []
    registry = client(waits, schema_registry_url=f"http://127.0.0.1:{closed_port},{memory.url}/")
    assert registry.register("s", '"int"') == 1
    assert registry.register("s", '"long"') == 2
    assert not waits
    memory.troubles.append(503)
    assert registry.register("s", '"string"') == 3


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda registry: registry.by_id(99), 40403),
        (lambda registry: registry.latest("none"), 40401),
        (lambda registry: registry.look_up("none", '"int"'), 40401),
        (lambda registry: registry.register("refused", '"int"'), 409),
    ],
)
def test_what_the_registry_refuses_is_not_repeated(
    memory: MemoryRegistry, client: Make, ask: Callable[[RegistryClient], object], code: int
) -> None:
    memory.refused.add("refused")
    with pytest.raises(RegistryError, match=f"error code {code}") as caught:
        ask(client())
    assert isinstance(caught.value, DataError)
    assert caught.value.is_unknown == (code != 409)
    assert len(memory.requests) == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), code)


def test_a_schema_of_an_old_registry_has_no_known_version(memory: MemoryRegistry, client: Make) -> None:
    memory.tells_versions = False
    memory.add("s", '"int"')
    assert client().version_of(1, "s") is None


def test_a_schema_that_the_subject_does_not_have_has_no_version(memory: MemoryRegistry, client: Make) -> None:
    memory.add("other", '"int"')
    assert client().version_of(1, "s") is None


def test_references_come_before_what_uses_them(memory: MemoryRegistry, client: Make) -> None:
    memory.add("a", '"int"')
    memory.add("b", '"long"', references=[{"name": "A", "subject": "a", "version": 1}])
    both = [{"name": "B", "subject": "b", "version": 1}, {"name": "A", "subject": "a", "version": 1}]
    memory.add("c", '"string"', references=both)
    registry = client()
    found = registry.by_id(3)
    assert found.references[0] == SchemaReference("B", "b", 1)
    assert registry.referenced(found) == ['"int"', '"long"']


def test_references_that_go_round_are_refused(memory: MemoryRegistry, client: Make) -> None:
    memory.add("a", '"int"', references=[{"name": "A", "subject": "a", "version": 1}])
    registry = client()
    with pytest.raises(DataError, match="refers to itself"):
        registry.referenced(registry.by_id(1))


def basic(user_info: str) -> str:
    return f"Basic {base64.b64encode(user_info.encode()).decode()}"


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="p \\"w\\":d";'


@pytest.mark.parametrize(
    ("props", "authorization"),
    [
        ({"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "me:p:w"}, basic("me:p:w")),
        (
            {"basic_auth_credentials_source": "USER_INFO", "schema_registry_basic_auth_user_info": "me:pw"},
            basic("me:pw"),
        ),
        ({"basic_auth_credentials_source": "SASL_INHERIT", "sasl_jaas_config": JAAS}, basic('me:p "w":d')),
        ({"bearer_auth_credentials_source": "STATIC_TOKEN", "bearer_auth_token": "t0k3n"}, "Bearer t0k3n"),
    ],
)
def test_who_the_client_is(memory: MemoryRegistry, client: Make, props: dict[str, str], authorization: str) -> None:
    memory.authorization = authorization
    assert client(**props).register("s", '"int"') == 1


def test_user_and_password_in_the_url(memory: MemoryRegistry, client: Make) -> None:
    memory.authorization = basic("me:p@w")
    url = memory.url.replace("http://", "http://me:p%40w@")
    assert client(schema_registry_url=url).register("s", '"int"') == 1


def test_a_client_that_is_refused_is_told_what_to_look_at(memory: MemoryRegistry, client: Make) -> None:
    memory.authorization = basic("me:right")
    registry = client(basic_auth_credentials_source="USER_INFO", basic_auth_user_info="me:wr0ng")
    with pytest.raises(ConnectError, match=r"refuses the client \(HTTP status 401\).*basic\.auth") as caught:
        registry.register("s", '"int"')
    assert not isinstance(caught.value, (DataError, RetriableError))
    assert "wr0ng" not in str(caught.value)
    assert len(memory.requests) == 1


def oauth(memory: MemoryRegistry, **more: str) -> dict[str, str]:
    return {
        "bearer_auth_credentials_source": "OAUTHBEARER",
        "bearer_auth_issuer_endpoint_url": f"{memory.url}/token",
        "bearer_auth_client_id": "me",
        "bearer_auth_client_secret": "s3cret",
        "bearer_auth_logical_cluster": "lsrc-1",
        "bearer_auth_identity_pool_id": "pool-1",
        **more,
    }


def test_tokens_of_an_issuer_are_used_until_they_expire(memory: MemoryRegistry, client: Make) -> None:
    memory.tokens += [{"access_token": "one", "expires_in": 301}, {"access_token": "two", "expires_in": 3600}]
    registry = client(**oauth(memory, bearer_auth_cache_expiry_buffer_seconds="301"))
    registry.register("s", '"int"')
    registry.register("s", '"long"')
    registry.register("s", '"string"')
    sent = [headers.get("Authorization") for headers in memory.headers]
    assert sent == [basic("me:s3cret"), "Bearer one", basic("me:s3cret"), "Bearer two", "Bearer two"]
    assert memory.headers[1]["Target-Sr-Cluster"] == "lsrc-1"
    assert memory.headers[1]["Confluent-Identity-Pool-Id"] == "pool-1"


def test_an_issuer_that_gives_no_token(memory: MemoryRegistry, client: Make) -> None:
    with pytest.raises(ConnectError, match=r"refuses to issue one \(HTTP status 401\)") as caught:
        client(**oauth(memory)).register("s", '"int"')
    assert "s3cret" not in str(caught.value)


def test_what_is_no_registry_is_named(client: Make, memory: MemoryRegistry) -> None:
    with pytest.raises(
        ConnectError, match=r"not answer as a schema registry does.*schema\.registry\.url, its path included"
    ):
        client(schema_registry_url=f"{memory.url}/wrong/path").register("s", '"int"')


@pytest.fixture
def secure() -> Iterator[MemoryRegistry]:
    """A registry that serves TLS with a certificate of its own making."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    with serving(MemoryRegistry(), context) as registry:
        yield registry


NO_NAME = {"schema_registry_ssl_endpoint_identification_algorithm": ""}


@pytest.mark.parametrize(
    "props",
    [
        {"schema_registry_ssl_truststore_location": str(TLS / "certificate.pem"), **NO_NAME},
        {"schema_registry_ssl_truststore_certificates": " ".join(CERTIFICATE.split("\n")), **NO_NAME},
        {"ssl_truststore_certificates": CERTIFICATE, "ssl_truststore_type": "PEM", **NO_NAME},
        {"ssl_truststore_certificates": CERTIFICATE, "ssl_endpoint_identification_algorithm": ""},
        {"ssl_truststore_location": str(TLS / "truststore.jks"), "ssl_truststore_password": "changeit", **NO_NAME},
        {"ssl_truststore_location": str(TLS / "truststore.p12"), "ssl_truststore_password": "changeit", **NO_NAME},
    ],
)
def test_a_registry_that_is_trusted(secure: MemoryRegistry, client: Make, props: dict[str, str]) -> None:
    assert client(schema_registry_url=secure.url, **props).register("s", '"int"') == 1


@pytest.mark.parametrize(
    "props", [{}, NO_NAME, {"schema_registry_ssl_truststore_location": str(TLS / "certificate.pem")}]
)
def test_a_registry_that_is_not_trusted(secure: MemoryRegistry, client: Make, props: dict[str, str]) -> None:
    registry = client(schema_registry_url=secure.url, max_retries="0", **props)
    with pytest.raises(ConnectError, match=r"is not trusted \(.*TLS fails.*schema\.registry\.ssl") as caught:
        registry.register("s", '"int"')
    assert type(caught.value) is ConnectError
    assert not secure.requests


@pytest.mark.parametrize("another", [ValueError("of a record"), OSError(28, "No space left on device")])
def test_why_nobody_answers_is_told_while_another_error_is_handled(
    secure: MemoryRegistry, client: Make, closed_port: int, another: Exception
) -> None:
    """A chain whose column path has failed asks again, record by record, in the handler of that failure."""
    away = client(schema_registry_url=f"http://127.0.0.1:{closed_port}", max_retries="0")
    untrusted = client(schema_registry_url=secure.url, max_retries="0")
    try:
        raise another
    except type(another):
        with pytest.raises(RetriableError, match=r"no connection \(Connection refused\)"):
            away.register("s", '"int"')
        with pytest.raises(ConnectError, match=r"is not trusted"):
            untrusted.register("s", '"int"')


PUBLIC_AUTHORITY = """
import sys
from converters.registry import RegistryClient, RegistryConfig

props = {"schema.registry.url": sys.argv[1], "max.retries": "0", "ssl.endpoint.identification.algorithm": ""}
props |= {"schema.registry.ssl.truststore.certificates": sys.argv[2]} if sys.argv[2:] else {}
client = RegistryClient(RegistryConfig.parse(props))
try:
    print(client.register("s", '"int"'))
except Exception as error:
    print(error)
"""


def test_a_trust_store_is_all_that_is_trusted(secure: MemoryRegistry, tmp_path: Path) -> None:
    """Also where the certificate is signed by an authority whom requests trusts."""
    (tmp_path / "certifi.py").write_text(f"def where():\n    return {str(TLS / 'certificate.pem')!r}\n")
    other = Authority().pem

    def answer(*arguments: str) -> str:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        command = [sys.executable, "-c", PUBLIC_AUTHORITY, secure.url, *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout

    assert "is not trusted" in answer(other)
    assert answer(CERTIFICATE) == "1\n"


@pytest.mark.parametrize(
    "identity",
    [
        {"keystore_key": KEY, "keystore_certificate_chain": CERTIFICATE},
        {"keystore_location": str(TLS / "keystore.pem"), "key_password": "changeit"},
        {"keystore_location": str(TLS / "keystore.p12"), "keystore_password": "changeit"},
        {
            "keystore_location": str(TLS / "keystore.jks"),
            "keystore_password": "changeit",
            "key_password": "of-the-key",
        },
    ],
    ids=["text", "pem", "p12", "jks"],
)
def test_a_client_that_shows_a_certificate(client: Make, identity: dict[str, str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    context.load_verify_locations(TLS / "certificate.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    shown = {f"schema_registry_ssl_{name}": value for name, value in identity.items()}
    trust = {"schema_registry_ssl_truststore_certificates": CERTIFICATE, **NO_NAME}
    with serving(MemoryRegistry(), context) as registry:
        assert client(schema_registry_url=registry.url, **trust, **shown).register("s", '"int"') == 1


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"schema.registry.url": "mock://x"}, "schema.registry.url"),
        ({"schema.registry.url": ""}, "schema.registry.url"),
        ({"basic.auth.credentials.source": "USER"}, "basic.auth.credentials.source"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "basic.auth.user.info"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "sasl.jaas.config"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token"),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "bearer.auth.credentials.source"),
        ({"value.subject.name.strategy": "com.mine.Strategy"}, "value.subject.name.strategy"),
        (
            {"ssl.truststore.location": str(TLS / "truststore.jks"), "ssl.truststore.type": "BKS"},
            "schema.registry.ssl.truststore.type",
        ),
        (
            {"ssl.keystore.location": str(TLS / "keystore.p12"), "ssl.keystore.password": "other"},
            "schema.registry.ssl.keystore.password",
        ),
        ({"ssl.keystore.location": "/none.pem"}, "schema.registry.ssl.keystore.location"),
    ],
)
def test_configs_that_are_refused(props: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        RegistryConfig.parse({"schema.registry.url": "http://x", **props})


@pytest.mark.parametrize("key", ["truststore_certificates", "keystore_key"])
def test_pem_that_is_none_is_not_shown(client: Make, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client(schema_registry_url="https://x", **{f"schema_registry_ssl_{key}": "s3cret"})
    assert "s3cret" not in str(caught.value)


def test_secrets_do_not_show_in_the_config() -> None:
    secrets = {
        "basic.auth.user.info": "me:s3cret",
        "bearer.auth.token": "s3cret",
        "schema.registry.ssl.key.password": "s3cret",
    }
    assert "s3cret" not in repr(RegistryConfig.parse({"schema.registry.url": "http://x", **secrets}))


@pytest.fixture
def api() -> Iterator[HttpApi]:
    """A server that answers as it is told."""
    with serving_api() as serving:
        yield serving


@pytest.mark.parametrize("length", [5, 12, -1])
def test_a_compressed_answer_without_its_end_is_asked_for_again(client: Make, api: HttpApi, length: int) -> None:
    packed = gzip.compress(b'{"schema": "\\"int\\""}')
    told = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    api.route("/schemas/ids/1", Answer(200, packed[:length], told))
    with pytest.raises(RetriableError, match="its gzip data are cut off"):
        client(schema_registry_url=api.url, max_retries="1").by_id(1)
    api.route("/schemas/ids/1", Answer(200, packed, told))
    assert client(schema_registry_url=api.url).by_id(1).text == '"int"'
    api.route("/schemas/ids/1", Answer(200, packed, {"Content-Encoding": "br"}))
    with pytest.raises(RetriableError, match="Content-Encoding 'br'"):
        client(schema_registry_url=api.url, max_retries="0").by_id(1)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "2852039166", "[::ffff:169.254.169.254]"])
def test_addresses_that_hand_out_credentials_are_refused(client: Make, host: str) -> None:
    with pytest.raises(HostDeniedError, match="an address where clouds serve credentials"):
        client(schema_registry_url=f"http://{host}/").by_id(1)


def test_the_rules_for_hosts_hold_for_registry_issuer_and_proxy(client: Make, memory: MemoryRegistry) -> None:
    denied = {"http_denied_hosts": "127.0.0.0/8"}
    local = memory.url.replace("127.0.0.1", "localhost")
    for url in (memory.url, local):
        with pytest.raises(HostDeniedError, match=r"http\.denied\.hosts"):
            client(schema_registry_url=url, **denied).by_id(1)
    with pytest.raises(HostDeniedError, match=r"http\.denied\.hosts"):
        client(schema_registry_url=local, proxy_host="proxy.example", proxy_port="1", **denied).by_id(1)
    issuer = {
        "bearer_auth_credentials_source": "OAUTHBEARER",
        "bearer_auth_issuer_endpoint_url": "http://169.254.169.254/token",
        "bearer_auth_client_id": "a",
        "bearer_auth_client_secret": "b",
    }
    with pytest.raises(HostDeniedError, match="an address where clouds serve credentials"):
        client(**issuer).by_id(1)

"""The settings of the worker's Kafka clients, in kafka-python's words."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError

from connect.errors import ConfigError
from connect.internals.kafka.settings.client import ClientKind
from equipment.brokers.certificates import Authority
from worker.kafka.clients.roles import internal_properties

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")

WORKER = {"bootstrap.servers": "a:1, b:2", "group.id": "cluster"}
JAAS = "sasl.jaas.config"
STORES = Path(__file__).parents[2] / "connect" / "internals" / "kafka" / "data"


def settings(**keys: str) -> dict[str, Any]:
    from worker.kafka.clients.kafka_python import kafka_python_settings  # noqa: PLC0415 - under the filter of warnings

    worker = WORKER | {key.replace("_", "."): value for key, value in keys.items()}
    return kafka_python_settings(internal_properties(worker, ClientKind.ADMIN, "membership"))


def test_plain_settings() -> None:
    made = settings(client_id="one", reconnect_backoff_ms="70", request_timeout_ms="9000")
    assert made["bootstrap_servers"] == ["a:1", "b:2"]
    assert made["client_id"] == "cluster-one-membership"
    assert (made["reconnect_backoff_ms"], made["reconnect_backoff_max_ms"]) == (70, 1000)
    assert made["request_timeout_ms"] == 9000
    assert made["security_protocol"] == "PLAINTEXT"
    assert "ssl_context" not in made


def test_passwords() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    made = settings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=f'{module} required username="u" password="p";',
    )
    assert made["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (made["sasl_plain_username"], made["sasl_plain_password"]) == ("u", "p")


def test_tls_from_text_and_from_files(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.sign("worker")
    inline = settings(
        security_protocol="SSL",
        ssl_truststore_certificates=authority.pem,
        ssl_truststore_type="PEM",
        ssl_keystore_type="PEM",
        ssl_keystore_key=identity.key_pem("secret"),
        ssl_keystore_certificate_chain=identity.certificate_pem,
        ssl_key_password="secret",
    )["ssl_context"]
    assert inline.check_hostname
    assert inline.verify_mode is ssl.CERT_REQUIRED
    assert [item["subject"] for item in inline.get_ca_certs()] == [((("commonName", "authority"),),)]

    trusted, own = tmp_path / "trust.pem", tmp_path / "own.pem"
    trusted.write_text(authority.pem)
    own.write_text(identity.key_pem() + identity.certificate_pem)
    from_files = settings(
        security_protocol="SSL",
        ssl_truststore_location=str(trusted),
        ssl_keystore_location=str(own),
        ssl_endpoint_identification_algorithm="",
    )["ssl_context"]
    assert not from_files.check_hostname
    assert len(from_files.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("key", "trust", "passwords"),
    [
        ("keystore.jks", "truststore.jks", {"ssl_key_password": "of-the-key"}),
        ("keystore.p12", "truststore.p12", {"ssl_keystore_type": "PKCS12", "ssl_truststore_type": "PKCS12"}),
        # Java reads either kind under both names.
        ("keystore.p12", "truststore.p12", {"ssl_keystore_type": "JKS", "ssl_truststore_type": "JKS"}),
    ],
)
def test_tls_from_the_stores_of_java(key: str, trust: str, passwords: dict[str, str], tmp_path: Path) -> None:
    """The server that asks is told the certificate of the key store, and the trust store makes it known."""
    made = settings(
        security_protocol="SSL",
        ssl_keystore_location=str(STORES / key),
        ssl_keystore_password="changeit",
        ssl_truststore_location=str(STORES / trust),
        ssl_truststore_password="changeit",
        ssl_endpoint_identification_algorithm="",
        **passwords,
    )["ssl_context"]
    own = tmp_path / "own.pem"
    own.write_text((STORES / "key.pem").read_text() + (STORES / "certificate.pem").read_text())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(own)
    server.load_verify_locations(STORES / "certificate.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    shown = handshake(made, server)
    assert shown == ssl.PEM_cert_to_DER_cert((STORES / "certificate.pem").read_text())


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> bytes | None:
    """The certificate that the client shows to a server, both in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="broker"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
                waiting.remove(end)
    assert waiting == [], "the handshake did not come to its end"
    return ends[1].getpeercert(binary_form=True)


def test_a_wrong_password_of_a_store_is_not_told() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.password") as raised:
        settings(
            security_protocol="SSL", ssl_keystore_location=str(STORES / "keystore.jks"), ssl_keystore_password="sesame"
        )
    assert "sesame" not in str(raised.value)


def test_a_wrong_password_is_not_told() -> None:
    identity = Authority().sign("worker")
    with pytest.raises(ConfigError, match=r"ssl\.key\.password") as raised:
        settings(
            security_protocol="SSL",
            ssl_keystore_type="PEM",
            ssl_keystore_key=identity.key_pem("secret"),
            ssl_keystore_certificate_chain=identity.certificate_pem,
            ssl_key_password="sesame",
        )
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ({"security_protocol": "SSL", "ssl_keystore_location": "/k.p12"}, "cannot be read: No such file"),
        ({"security_protocol": "SSL", "ssl_truststore_location": "/t.jks"}, "cannot be read: No such file"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "SCRAM-SHA-512"),
        ({"security_protocol": "SSL", "ssl_crl_location": "crl.pem"}, r"ssl\.truststore"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(keys: dict[str, str], remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        settings(**keys)


def test_unsigned_tokens() -> None:
    made = settings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config="org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="worker";',
    )
    _, claims, signature = made["sasl_oauth_token_provider"].token().split(".")
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"] == "worker"
    assert signature == ""


@pytest.fixture
def identity_provider() -> Iterator[tuple[str, list[str]]]:
    """An endpoint that counts its tokens; the bodies and credentials it was asked with are kept."""
    asked: list[str] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(f"{base64.b64decode(self.headers['Authorization'].split()[1]).decode()} {body}")
            answer = json.dumps({"access_token": f"token-{len(asked)}", "expires_in": 3600}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_tokens_of_an_identity_provider(identity_provider: tuple[str, list[str]]) -> None:
    url, asked = identity_provider
    provider = settings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_oauthbearer_client_credentials_client_id="id",
        sasl_oauthbearer_client_credentials_client_secret="secret",
        sasl_oauthbearer_scope="kafka",
    )["sasl_oauth_token_provider"]
    assert [provider.token(), provider.token()] == ["token-1", "token-1"]
    assert asked == ["id:secret grant_type=client_credentials&scope=kafka"]


def test_a_provider_that_gives_no_token_is_a_broker_that_is_away(identity_provider: tuple[str, list[str]]) -> None:
    url, _ = identity_provider
    provider = settings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=url.replace("http://", "https://"),
        sasl_oauthbearer_client_credentials_client_id="id",
        sasl_oauthbearer_client_credentials_client_secret="s3cret",
    )["sasl_oauth_token_provider"]
    with pytest.raises(KafkaConnectionError, match=r"No token could be fetched from https://127\.0\.0\.1:") as caught:
        provider.token()
    assert "s3cret" not in str(caught.value)

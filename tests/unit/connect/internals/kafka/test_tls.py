"""Java's TLS settings become librdkafka's, and OpenSSL can read what they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.internals.kafka.auth.ssl import OPENSSL_CIPHERS, ssl_properties
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.properties import librdkafka_properties
from connect.internals.tls.pem import normalized_pem
from worker.kafka.clients import roles

DATA = Path(__file__).parent / "data"
CERTIFICATE = (DATA / "certificate.pem").read_text()
KEY = (DATA / "key.pem").read_text()
SSL = {"security.protocol": "SSL", "bootstrap.servers": "127.0.0.1:1"}


def on_one_line(pem: str) -> str:
    """As a properties file has it after its lines were continued with backslashes."""
    return " ".join(pem.split("\n"))


@pytest.mark.parametrize(
    ("java", "expected"),
    [
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(DATA / "certificate.pem")},
            {"ssl.ca.location": str(DATA / "certificate.pem")},
        ),
        (
            {"ssl.truststore.location": str(DATA / "certificate.pem")},
            {"ssl.ca.location": str(DATA / "certificate.pem")},
        ),
        ({"ssl.truststore.certificates": CERTIFICATE}, {"ssl.ca.pem": CERTIFICATE}),
        ({"ssl.truststore.certificates": on_one_line(CERTIFICATE)}, {"ssl.ca.pem": CERTIFICATE}),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": on_one_line(KEY),
                "ssl.keystore.certificate.chain": on_one_line(CERTIFICATE),
            },
            {"ssl.key.pem": KEY, "ssl.certificate.pem": CERTIFICATE},
        ),
        (
            {"ssl.keystore.location": str(DATA / "keystore.pem"), "ssl.key.password": "changeit"},
            {
                "ssl.key.location": str(DATA / "keystore.pem"),
                "ssl.certificate.location": str(DATA / "keystore.pem"),
                "ssl.key.password": "changeit",
            },
        ),
        (
            {
                "ssl.keystore.type": "pkcs12",
                "ssl.keystore.location": str(DATA / "keystore.p12"),
                "ssl.keystore.password": "changeit",
            },
            {"ssl.key.pem": KEY, "ssl.certificate.pem": CERTIFICATE},
        ),
        (
            {
                "ssl.keystore.location": str(DATA / "keystore.jks"),
                "ssl.keystore.password": "changeit",
                "ssl.key.password": "of-the-key",
            },
            {"ssl.key.pem": KEY, "ssl.certificate.pem": CERTIFICATE},
        ),
        (
            {
                "ssl.truststore.type": "JKS",
                "ssl.truststore.location": str(DATA / "truststore.jks"),
                "ssl.truststore.password": "changeit",
            },
            {"ssl.ca.pem": CERTIFICATE},
        ),
        # A JKS store shows its certificates to everybody.
        ({"ssl.truststore.location": str(DATA / "truststore.jks")}, {"ssl.ca.pem": CERTIFICATE}),
        (
            {
                "ssl.truststore.location": str(DATA / "truststore.p12"),
                "ssl.truststore.password": "changeit",
            },
            {"ssl.ca.pem": CERTIFICATE},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": "HTTPS"},
            {"ssl.endpoint.identification.algorithm": "https"},
        ),
        (
            {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"},
        ),
        (
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"},
            {"ssl.cipher.suites": "ECDHE-RSA-AES128-GCM-SHA256"},
        ),
        ({"ssl.cipher.suites": ",".join(OPENSSL_CIPHERS)}, {}),
        ({}, {}),
    ],
)
def test_settings_become_librdkafka_s_and_are_accepted(java: dict[str, str], expected: dict[str, str]) -> None:
    properties = ssl_properties(SSL | java)
    assert expected.items() <= properties.items()
    librdkafka.producer(librdkafka_properties(SSL | java, ClientKind.PRODUCER))


def test_without_tls_nothing_is_read() -> None:
    assert ssl_properties({"ssl.truststore.location": "/x.jks"}) == {}


@pytest.mark.parametrize(
    ("java", "key", "told"),
    [
        ({"ssl.truststore.location": "/x.jks"}, "ssl.truststore.location", "No such file"),
        ({"ssl.keystore.location": "/x.pem"}, "ssl.keystore.location", "a file that the worker may read"),
        (
            {"ssl.keystore.location": str(DATA / "keystore.p12"), "ssl.keystore.type": "BKS"},
            "ssl.keystore.type",
            "keytool -importkeystore -srcstoretype BKS",
        ),
        (
            {"ssl.keystore.location": str(DATA / "java_client_keys.tsv"), "ssl.keystore.password": "s3cret"},
            "ssl.keystore.location",
            "neither JKS nor PKCS12 nor PEM",
        ),
        (
            {"ssl.keystore.location": str(DATA / "keystore.jks"), "ssl.keystore.password": "s3cret"},
            "ssl.keystore.password",
            "does not open",
        ),
        (
            {
                "ssl.keystore.location": str(DATA / "keystore.jks"),
                "ssl.keystore.password": "changeit",
                "ssl.key.password": "s3cret",
            },
            "ssl.key.password",
            "does not open",
        ),
        (
            {"ssl.truststore.location": str(DATA / "truststore.p12"), "ssl.truststore.password": "s3cret"},
            "ssl.truststore.password",
            "does not open",
        ),
        ({"ssl.keystore.key": KEY}, "ssl.keystore.certificate.chain", "beside ssl.keystore.key"),
        ({"ssl.truststore.certificates": "s3cret"}, "ssl.truststore.certificates", "BEGIN"),
        (
            {"ssl.truststore.certificates": CERTIFICATE, "ssl.truststore.location": "/x.pem"},
            "ssl.truststore.certificates",
            "remove one",
        ),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "ssl.cipher.suites", "openssl ciphers"),
        (
            {"ssl.endpoint.identification.algorithm": "LDAPS"},
            "ssl.endpoint.identification.algorithm",
            "https",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_the_way_out(java: dict[str, str], key: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ssl_properties(SSL | java)
    assert caught.value.key == key
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert KEY.splitlines()[1] not in str(caught.value)


def test_several_blocks_stay_in_order() -> None:
    assert normalized_pem("k", on_one_line(KEY) + on_one_line(CERTIFICATE)) == KEY + CERTIFICATE


def test_a_wrong_store_password_is_not_repeated() -> None:
    java = SSL | {
        "ssl.keystore.location": str(DATA / "keystore.p12"),
        "ssl.keystore.password": "s3cret",
    }
    with pytest.raises(ConfigError) as caught:
        librdkafka.producer(librdkafka_properties(java, ClientKind.PRODUCER))
    assert caught.value.key == "ssl.keystore.password"
    assert "s3cret" not in str(caught.value)


def test_a_store_of_the_worker_reaches_its_own_clients() -> None:
    worker = SSL | {
        "ssl.truststore.location": str(DATA / "truststore.p12"),
        "ssl.truststore.password": "changeit",
        "ssl.keystore.location": str(DATA / "keystore.jks"),
        "ssl.keystore.password": "changeit",
        "ssl.key.password": "of-the-key",
    }
    properties = roles.internal_properties(worker, ClientKind.CONSUMER, "configs")
    assert properties.properties["ssl.ca.pem"] == CERTIFICATE
    assert properties.properties["ssl.key.pem"] == KEY
    assert KEY.splitlines()[1] not in repr(properties)
    librdkafka.consumer(properties).close()


def test_what_is_said_by_librdkafka_s_name_covers_a_store() -> None:
    worker = SSL | {"ssl.truststore.location": "/absent.jks", "group.id": "g"}
    connector = {"name": "c", "consumer.override.ssl.ca.pem": CERTIFICATE}
    override = worker | {"consumer.security.protocol": "SSL", "consumer.ssl.truststore.location": "/absent.jks"}
    assert roles.sink_consumer_properties(override, connector, 0).properties["ssl.ca.pem"] == CERTIFICATE

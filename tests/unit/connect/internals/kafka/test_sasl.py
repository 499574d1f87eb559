"""Java's SASL settings become librdkafka's."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.internals.kafka.auth.sasl import sasl_properties
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.properties import librdkafka_properties

SECURITY = "org.apache.kafka.common.security"
PLAIN = f'{SECURITY}.plain.PlainLoginModule required username="u" password="s3cret";'
SCRAM = f'{SECURITY}.scram.ScramLoginModule required username="u" password="s3cret";'
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"
ENDPOINT = "https://idp.example/token"
CREDENTIALS = {
    "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": "s3cret",
}
OIDC = {
    "sasl.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "s3cret",
}


def java(mechanism: str, jaas: str = "", **more: str) -> dict[str, str]:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    return given | ({"sasl.jaas.config": jaas} if jaas else {}) | more


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            java("PLAIN", PLAIN),
            {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "s3cret"},
        ),
        (
            java("SCRAM-SHA-512", SCRAM),
            {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "s3cret"},
        ),
        (
            java("SCRAM-SHA-256", PLAIN),
            {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "u", "sasl.password": "s3cret"},
        ),
        (java("OAUTHBEARER", f"{OAUTH};") | CREDENTIALS, OIDC),
        (java("OAUTHBEARER") | CREDENTIALS, OIDC),
        (
            java("OAUTHBEARER", f'{OAUTH} clientId="me" clientSecret="s3cret" scope="kafka" extension_a="1";')
            | {"sasl.oauthbearer.token.endpoint.url": ENDPOINT},
            OIDC | {"sasl.oauthbearer.scope": "kafka", "sasl.oauthbearer.extensions": "a=1"},
        ),
        (
            java("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="alice";'),
            {
                "sasl.mechanisms": "OAUTHBEARER",
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": "principal=alice",
            },
        ),
    ],
)
def test_settings_become_librdkafka_s_and_are_accepted(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert sasl_properties(settings) == expected
    bootstrap = {"bootstrap.servers": "127.0.0.1:1"}
    librdkafka.producer(librdkafka_properties(bootstrap | settings, ClientKind.PRODUCER))


def test_a_signed_assertion_in_place_of_a_secret() -> None:
    settings = java("OAUTHBEARER") | {
        "sasl.oauthbearer.token.endpoint.url": ENDPOINT,
        "sasl.oauthbearer.jwt.retriever.class": f"{SECURITY}.oauthbearer.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.private.key.file": "/etc/key.pem",
        "sasl.oauthbearer.assertion.claim.sub": "me",
        "sasl.oauthbearer.assertion.template.file": "/etc/template.json",
    }
    properties = sasl_properties(settings)
    assert properties["sasl.oauthbearer.grant.type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert properties["sasl.oauthbearer.assertion.private.key.file"] == "/etc/key.pem"
    assert properties["sasl.oauthbearer.assertion.jwt.template.file"] == "/etc/template.json"
    assert "sasl.oauthbearer.client.secret" not in properties


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            java(
                "GSSAPI",
                f'{KERBEROS} useKeyTab=true keyTab="/etc/k" principal="connect@EXAMPLE";',
                **{"sasl.kerberos.service.name": "kafka", "sasl.kerberos.kinit.cmd": "/usr/bin/my kinit"},
            ),
            {
                "sasl.mechanisms": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.keytab": "/etc/k",
                "sasl.kerberos.principal": "connect@EXAMPLE",
                "sasl.kerberos.kinit.cmd": "'/usr/bin/my kinit' -R "
                '-t "%{sasl.kerberos.keytab}" -k "%{sasl.kerberos.principal}" || \'/usr/bin/my kinit\' '
                '-t "%{sasl.kerberos.keytab}" -k "%{sasl.kerberos.principal}"',
            },
        ),
        (
            java("GSSAPI", f'{KERBEROS} useTicketCache=true serviceName="kafka";'),
            {
                "sasl.mechanisms": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.min.time.before.relogin": "0",
            },
        ),
    ],
)
def test_kerberos(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert sasl_properties(settings) == expected


def test_without_sasl_nothing_is_read() -> None:
    assert sasl_properties({"sasl.mechanism": "PLAIN", "sasl.jaas.config": "broken"}) == {}


def test_native_credentials_do_without_a_login_module() -> None:
    settings = java("PLAIN", **{"sasl.username": "u", "sasl.password": "s3cret"})
    properties = librdkafka_properties(settings, ClientKind.ADMIN).properties
    assert (properties["sasl.username"], properties["sasl.password"]) == ("u", "s3cret")


@pytest.mark.parametrize(
    ("settings", "key", "told"),
    [
        (java("PLAIN"), "sasl.jaas.config", "PlainLoginModule required username="),
        (java("OAUTHBEARER"), "sasl.oauthbearer.token.endpoint.url", "set it"),
        (java("DIGEST-MD5", PLAIN), "sasl.mechanism", "SCRAM-SHA-512"),
        (java("AWS_MSK_IAM", PLAIN), "sasl.mechanism", "OAUTHBEARER"),
        (java("", PLAIN), "sasl.jaas.config", "set sasl.mechanism=PLAIN"),
        (java("PLAIN", f"{OAUTH};"), "sasl.jaas.config", "set sasl.mechanism=OAUTHBEARER"),
        (
            java("PLAIN", 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="s3cret";'),
            "sasl.jaas.config",
            "PlainLoginModule",
        ),
        (java("PLAIN", f"{SECURITY}.plain.PlainLoginModule required;"), "sasl.jaas.config", "username"),
        (
            java("SCRAM-SHA-256", SCRAM.replace(";", ' tokenauth="true";')),
            "sasl.jaas.config",
            "Delegation tokens",
        ),
        (
            java("OAUTHBEARER") | CREDENTIALS | {"sasl.oauthbearer.header.urlencode": "true"},
            "sasl.oauthbearer.header.urlencode",
            "remove the key",
        ),
        (
            java("OAUTHBEARER") | CREDENTIALS | {"sasl.oauthbearer.token.endpoint.url": "file:///token"},
            "sasl.oauthbearer.token.endpoint.url",
            "https://",
        ),
        (
            java("OAUTHBEARER", **{"sasl.oauthbearer.token.endpoint.url": ENDPOINT}),
            "sasl.oauthbearer.client.credentials.client.id",
            "set it",
        ),
        (
            java("PLAIN", PLAIN, **{"sasl.login.callback.handler.class": "com.example.Mine"}),
            "sasl.login.callback.handler.class",
            "token.endpoint.url",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_told_without_secrets(settings: dict[str, str], key: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        librdkafka_properties(settings, ClientKind.CONSUMER)
    assert caught.value.key == key
    assert told in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_client_without_kerberos_says_what_to_install() -> None:
    settings = java("GSSAPI", f"{KERBEROS} useTicketCache=true;", **{"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(ConfigError, match="Install a client with Kerberos"):
        librdkafka.admin(librdkafka_properties(settings, ClientKind.ADMIN))

"""The override policies allow and refuse what Java's do, in the same words."""

from __future__ import annotations

import pytest

from connect.config.errors import keys_of
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.overrides import check_overrides, policy_name, refused_overrides
from worker.kafka.clients import roles

CONNECTOR = {
    "name": "c",
    "producer.override.acks": "1",
    "producer.override.sasl.jaas.config": "s3cret",
    "consumer.override.security.protocol": "SSL",
    "admin.override.sasl.mechanism": "PLAIN",
    "consumer.override.max.poll.records": "1",
}


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", set()),
        ("None", set(CONNECTOR) - {"name"}),
        ("Principal", {"producer.override.acks", "consumer.override.max.poll.records"}),
        (
            "Allowlist",
            {
                "producer.override.sasl.jaas.config",
                "consumer.override.security.protocol",
                "admin.override.sasl.mechanism",
                "consumer.override.max.poll.records",
            },
        ),
    ],
)
def test_a_policy_refuses_what_it_does_not_allow(policy: str, refused: set[str]) -> None:
    errors = check_overrides(policy, CONNECTOR, allowlist=["acks"])
    assert {error.key for error in errors} == refused
    assert "s3cret" not in "".join(str(error) for error in errors)


def test_the_text_is_java_s() -> None:
    errors = check_overrides("Principal", {"producer.override.acks": "1"})
    assert [str(error) for error in errors] == [
        "The 'Principal' policy does not allow 'acks' to be overridden in the connector configuration."
    ]


def test_only_the_clients_a_connector_uses_are_looked_at() -> None:
    errors = check_overrides("None", CONNECTOR, kinds=[ClientKind.ADMIN])
    assert [error.key for error in errors] == ["admin.override.sasl.mechanism"]


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("None", "None"),
        ("NoneConnectorClientConfigOverridePolicy", "None"),
        ("org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy", "All"),
    ],
)
def test_a_policy_is_named_in_three_ways(policy: str, name: str) -> None:
    assert policy_name(policy) == name


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of: All, None, Principal, Allowlist"):
        check_overrides("com.example.Mine", CONNECTOR)


WORKER = {"bootstrap.servers": "unused:1", "group.id": "g"}
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"
URL, FILE = "https://idp.example.com/token", "/etc/kafka/assertion"
URLS, FILES = (f"org.apache.kafka.sasl.oauthbearer.allowed.{what}" for what in ("urls", "files"))

DANGERS = [
    ("ssl.providers", "default,/tmp/evil.so", "Loading a shared library"),
    ("plugin.library.paths", "/tmp/evil.so", "Loading a shared library"),
    ("ssl.engine.location", "/tmp/evil.so", "Loading a shared library"),
    ("ssl.engine.id", "evil", "Loading a shared library"),
    ("offset.store.method", "file", "The worker keeps offsets itself"),
    ("offset.store.path", "/tmp", "The worker keeps offsets itself"),
    ("sasl.kerberos.kinit.cmd", "/tmp/evil", "It names a program that the worker would run"),
    ("sasl.oauthbearer.metadata.authentication.type", "azure_imds", "log in as the machine"),
    ("sasl.oauthbearer.token.endpoint.url", URL, f"not listed in {URLS} of the worker's file"),
    ("sasl.oauthbearer.jwks.endpoint.url", URL, f"not listed in {URLS} of the worker's file"),
    ("sasl.oauthbearer.assertion.file", FILE, f"not listed in {FILES} of the worker's file"),
    ("sasl.oauthbearer.assertion.private.key.file", FILE, f"not listed in {FILES} of the worker's file"),
    ("sasl.oauthbearer.assertion.template.file", FILE, f"not listed in {FILES} of the worker's file"),
    ("sasl.oauthbearer.assertion.jwt.template.file", FILE, f"not listed in {FILES} of the worker's file"),
    ("sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;", "Its login module must be one of"),
    ("sasl.jaas.config", "com.sun.security.auth.module.LdapLoginModule required;", "Its login module must be one of"),
    ("sasl.jaas.config", "com.example.PlainLoginModule required username=u password=s3cret;", "Its login module"),
    ("sasl.jaas.config", f"{JAAS} required username=u password=s3cret", "not terminated by semi-colon"),
]
MAKERS = {
    "producer": [roles.source_producer_properties, roles.dlq_producer_properties],
    "consumer": [roles.sink_consumer_properties, roles.source_offsets_consumer_properties],
    "admin": [roles.admin_properties, roles.dlq_admin_properties],
}


@pytest.mark.parametrize(("name", "value", "reason"), DANGERS)
@pytest.mark.parametrize("kind", MAKERS)
def test_what_would_load_code_or_read_files_is_refused_whatever_the_policy_allows(
    kind: str, name: str, value: str, reason: str
) -> None:
    key = f"{kind}.override.{name}"
    policy = {
        "connector.client.config.override.policy": "Allowlist",
        "connector.client.config.override.allowlist": name,
    }
    for worker in (WORKER, WORKER | policy):
        errors = refused_overrides(worker, {"name": "c", key: value})
        assert [keys_of(error) for error in errors] == [(key,)]
        assert reason in str(errors[0])
        assert "s3cret" not in str(errors[0])
        for make in MAKERS[kind]:
            with pytest.raises(ConfigError) as refused:
                make(worker, {"name": "c", key: value}, 0)
            assert str(refused.value) == str(errors[0])


@pytest.mark.parametrize(
    ("name", "list_key", "value"),
    [
        ("sasl.oauthbearer.token.endpoint.url", URLS, URL),
        ("sasl.oauthbearer.assertion.file", FILES, FILE),
    ],
)
def test_what_the_worker_s_file_lists_for_oauth_may_be_named_exactly(name: str, list_key: str, value: str) -> None:
    worker = WORKER | {list_key: f"other, {value}"}
    key = f"producer.override.{name}"
    assert refused_overrides(worker, {"name": "c", key: value}) == []
    assert refused_overrides(worker, {"name": "c", key: ""}) == []
    for other in (f"{value}/..", f"{value}?x", value.upper(), "*"):
        assert [keys_of(error) for error in refused_overrides(worker, {"name": "c", key: other})] == [(key,)]


def test_the_worker_s_own_settings_need_no_list() -> None:
    worker = WORKER | {
        "producer.security.protocol": "SASL_PLAINTEXT",
        "producer.sasl.mechanism": "OAUTHBEARER",
        "producer.sasl.oauthbearer.token.endpoint.url": URL,
        "producer.sasl.oauthbearer.client.credentials.client.id": "i",
        "producer.sasl.oauthbearer.client.credentials.client.secret": "s",
    }
    properties = roles.source_producer_properties(worker, {"name": "c"}, 0).properties
    assert properties["sasl.oauthbearer.token.endpoint.url"] == URL


@pytest.mark.parametrize("kind", MAKERS)
def test_the_policy_is_asked_when_a_client_is_made(kind: str) -> None:
    key = f"{kind}.override.security.protocol"
    policy = {"connector.client.config.override.policy": "Allowlist"}
    allowing = policy | {"connector.client.config.override.allowlist": " acks , security.protocol "}
    for make in MAKERS[kind]:
        make(WORKER, {"name": "c", key: "PLAINTEXT"}, 0)
        make(WORKER | allowing, {"name": "c", key: "PLAINTEXT"}, 0)
        with pytest.raises(ConfigError) as refused:
            make(WORKER | policy, {"name": "c", key: "PLAINTEXT"}, 0)
        assert str(refused.value) == (
            "The 'Allowlist' policy does not allow 'security.protocol' to be overridden in the connector configuration."
        )
        assert keys_of(refused.value) == (key,)


@pytest.mark.parametrize("name", ["sasl.kerberos.principal", "sasl.kerberos.keytab"])
@pytest.mark.parametrize("value", ["a$(touch /tmp/x)", 'a" || touch /tmp/x', "a`id`", "a;id", "a\nid", "a'b", "a\\b"])
def test_a_name_for_kerberos_is_no_command(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match="characters that mean something to a shell") as refused:
        roles.source_producer_properties(WORKER, {"name": "c", f"producer.override.{name}": value}, 0)
    assert keys_of(refused.value) == (f"producer.override.{name}",)


def test_a_retriever_of_tokens_is_one_of_java_s() -> None:
    overrides = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.jwt.retriever.class": "com.example.DefaultJwtRetriever",
    }
    connector = {"name": "c", **{f"producer.override.{name}": value for name, value in overrides.items()}}
    with pytest.raises(ConfigError, match="A Java class cannot run here: use one of DefaultJwtRetriever") as refused:
        roles.source_producer_properties(WORKER | {URLS: URL}, connector, 0)
    assert keys_of(refused.value) == ("producer.override.sasl.oauthbearer.jwt.retriever.class",)

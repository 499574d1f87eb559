"""The override policies allow and refuse what Java's do, in the same words."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from worker.kafka.client_kind import ClientKind
from worker.kafka.override_policy import check_overrides, policy_name

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

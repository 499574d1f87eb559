"""What a client that is not ours, such as Spark's, is given of the settings of a sink's consumer."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.log import Redaction

WORKER = {
    "bootstrap.servers": "unused:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "consumer.interceptor.classes": "of.the.Worker",
}
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t"}


def given(**overrides: str) -> dict[str, str]:
    props = {f"consumer.override.{key.replace('__', '.')}": value for key, value in overrides.items()}
    return Clients(Assembly.resolve(WORKER, SINK | props, Redaction()), 0).sink_consumer_java_properties()


def test_the_settings_of_the_worker_and_of_the_connector_are_given_by_their_java_names() -> None:
    assert given(max__poll__records="7", ssl__enabled__protocols="TLSv1.3") == {
        "bootstrap.servers": "unused:1",
        "interceptor.classes": "of.the.Worker",
        "max.poll.records": "7",
        "ssl.enabled.protocols": "TLSv1.3",
    }


@pytest.mark.parametrize(
    "key",
    [
        "config.providers",
        "config.providers.file.class",
        "interceptor.classes",
        "Metric.Reporters",
        "metric.reporters",
        "security.providers",
        "value.deserializer",
        "sasl.oauthbearer.jwt.validator.class",
        "unknown.to.kafka",
    ],
)
def test_what_would_load_a_class_into_a_jvm_is_not_given_if_a_connector_says_it(key: str) -> None:
    assert given(**{key: "com.example.Evil"}).get(key) in (None, "of.the.Worker")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.client.callback.handler.class", "com.example.Evil"),
        ("ssl.engine.factory.class", "com.example.Evil"),
        ("sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;"),
        ("sasl.oauthbearer.token.endpoint.url", "http://idp"),
        ("sasl.kerberos.kinit.cmd", "/tmp/evil"),
    ],
)
def test_what_no_connector_may_say_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"consumer\.override\.{key} cannot be used"):
        given(**{key: value})

"""Secrets in the settings of Kafka clients, under any prefix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.errors import ConfigError
from connect.internals.kafka.auth.jaas import JAAS_CONFIG, parse_jaas_config

__all__ = ["client_secrets"]

_SECRET_KEYS: Final = (
    JAAS_CONFIG,
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.password",
)
_SECRET_OPTIONS: Final = ("password", "secret", "key", "token")


def client_secrets(props: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in the client settings of a worker or connector, whose keys may have prefixes."""
    for key, value in props.items():
        if key.endswith(_SECRET_KEYS):
            yield value
            if key.endswith(JAAS_CONFIG):
                yield from _options(value)


def _options(jaas_config: str) -> Iterator[str]:
    """Yield the secrets in a login module's options, which could also appear on their own."""
    try:
        options = parse_jaas_config(jaas_config).options
    except ConfigError:
        return
    yield from (value for name, value in options.items() if name.lower().endswith(_SECRET_OPTIONS))

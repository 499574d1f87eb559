"""Settings for kafka-python's clients, which make the requests that librdkafka lacks.

They are translated from librdkafka's settings, so that a key means the same for every client of the worker. A setting
that kafka-python does not support is a ``ConfigError``.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import ClientProperties
from connect.internals.tls.pem import file_in_memory
from worker.kafka.auth.oauth import token_provider

__all__ = ["kafka_python_settings", "quieten"]

_UNDERSTOOD: Final = frozenset(
    (
        "enable.ssl.certificate.verification",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
    )
)


def quieten() -> None:
    """Silence the library, which logs every connection attempt; its callers report what matters."""
    library = logging.getLogger("kafka")
    if library.level == logging.NOTSET:
        library.setLevel(logging.CRITICAL)


def kafka_python_settings(client: ClientProperties) -> dict[str, Any]:
    """Return the settings of a client, secrets included."""
    properties = {key: str(value) for key, value in client.properties.items()}
    protocol = properties.get("security.protocol", "plaintext").upper()
    settings: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in properties.get("metadata.broker.list", "").split(",")],
        "client_id": properties["client.id"],
        "reconnect_backoff_ms": int(properties["reconnect.backoff.ms"]),
        "reconnect_backoff_max_ms": int(properties["reconnect.backoff.max.ms"]),
        "request_timeout_ms": int(properties["socket.timeout.ms"]),
        "security_protocol": protocol,
    }
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    if protocol.startswith("SASL"):
        settings |= _sasl(properties)
    _refuse_rest(properties)
    return settings


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    authorities = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    if any(authorities):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _read("ssl.truststore.location", lambda: context.load_verify_locations(authorities[0], cadata=authorities[1]))
    else:
        context = ssl.create_default_context()
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := properties.get("ssl.cipher.suites"):
        _read("ssl.cipher.suites", lambda: context.set_ciphers(ciphers))
    _identify(context, properties)
    return context


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load the worker's own key and certificate."""
    with ExitStack() as files:
        chain = properties.get("ssl.certificate.location") or _file(files, properties.get("ssl.certificate.pem"))
        key = properties.get("ssl.key.location") or _file(files, properties.get("ssl.key.pem"))
        if chain is not None:
            # With an empty password, OpenSSL does not prompt for one at the terminal.
            password = properties.get("ssl.key.password", "")
            _read("ssl.keystore.location", lambda: context.load_cert_chain(chain, key, password))


def _file(files: ExitStack, pem: str | None) -> str | None:
    return None if pem is None else files.enter_context(file_in_memory(pem))


def _read(key: str, load: Any) -> None:
    try:
        load()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it is malformed"
        raise ConfigError(
            key,
            HIDDEN,
            f"OpenSSL refuses it: {reason}. Use PEM, and set the key's password in ssl.key.password",
        ) from None  # I8: the original may contain a secret


def _sasl(properties: Mapping[str, str]) -> dict[str, Any]:
    mechanism = properties["sasl.mechanisms"]
    if mechanism == "OAUTHBEARER":
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": token_provider(properties)}
    if mechanism == "GSSAPI":
        raise ConfigError(
            "sasl.mechanism",
            mechanism,
            "The group membership of a distributed worker, and requests to delete some offsets of a sink, have no "
            "Kerberos. Use SCRAM-SHA-512, PLAIN, OAUTHBEARER, or TLS with a key store",
        )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": properties["sasl.username"],
        "sasl_plain_password": properties["sasl.password"],
    }


def _refuse_rest(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key.startswith(("ssl.", "sasl.")) and not key.startswith("sasl.oauthbearer.") and key not in _UNDERSTOOD:
            raise ConfigRuleError(
                f"Configuration {key} cannot be used for the membership of a distributed worker, nor to forget some "
                "offsets of a sink. Remove it, and use the settings with Java's names: ssl.truststore.*, "
                "ssl.keystore.*, sasl.mechanism, sasl.jaas.config",
                key,
            )

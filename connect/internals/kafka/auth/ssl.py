"""Translation of Java's TLS settings to librdkafka's: stores, certificates, keys, cipher suites.

JKS and PKCS12 stores are read here and their keys and certificates passed on as text; nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from connect.errors import ConfigError
from connect.internals.tls.key_stores import is_pem, read_key_store, read_trust_store

__all__ = ["OPENSSL_CIPHERS", "ssl_properties", "uses_ssl"]

_TRUSTSTORE = "ssl.truststore"
_KEYSTORE = "ssl.keystore"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_CIPHER_SUITES = "ssl.cipher.suites"

OPENSSL_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256": "DHE-RSA-AES128-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
}
"""Java's names of the cipher suites up to TLS 1.2, with OpenSSL's."""

# OpenSSL takes these only through another setting, which librdkafka lacks; they are always on.
_TLS13_SUITES = frozenset(
    (
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    )
)


def uses_ssl(java: Mapping[str, str]) -> bool:
    """Return whether these settings enable TLS."""
    return java.get("security.protocol", "").strip().upper() in ("SSL", "SASL_SSL")


def ssl_properties(java: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's ``ssl.*`` for Java's; empty unless ``security.protocol`` enables TLS.

    Reads the stores. Raises a :class:`~connect.errors.ConfigError` that names the key to correct and shows no secret.
    """
    if not uses_ssl(java):
        return {}
    return _truststore(java) | _keystore(java) | _identification(java) | _cipher_suites(java)


def _truststore(java: Mapping[str, str]) -> dict[str, str]:
    location = _pem_location(java, _TRUSTSTORE, java.get(f"{_TRUSTSTORE}.certificates", ""))
    if location is not None:
        return {"ssl.ca.location": location}
    trusted = read_trust_store(java, "")
    return {} if trusted is None else {"ssl.ca.pem": trusted}


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    properties = _own_key(java)
    has_key = bool(properties) or "ssl.key.location" in java or "ssl.key.pem" in java
    if has_key and java.get("ssl.key.password"):
        properties["ssl.key.password"] = java["ssl.key.password"]
    return properties


def _own_key(java: Mapping[str, str]) -> dict[str, str]:
    location = _pem_location(java, _KEYSTORE, java.get(f"{_KEYSTORE}.key", ""))
    if location is not None:
        return {"ssl.key.location": location, "ssl.certificate.location": location}
    entry = read_key_store(java, "")
    return {} if entry is None else {"ssl.key.pem": entry.key, "ssl.certificate.pem": entry.certificates}


def _pem_location(java: Mapping[str, str], name: str, inline: str) -> str | None:
    """Return the file of a PEM store: OpenSSL reads it itself, and supports more variants than we do."""
    location = java.get(f"{name}.location", "").strip()
    return location if location and not inline.strip() and is_pem(java, name) else None


def _identification(java: Mapping[str, str]) -> dict[str, str]:
    algorithm = java.get(_IDENTIFICATION)
    if algorithm is None:
        return {}
    if algorithm.strip().lower() not in ("", "https", "none"):
        raise ConfigError(_IDENTIFICATION, algorithm, "Set it to https, or leave it empty to accept any host name")
    return {_IDENTIFICATION: algorithm.strip().lower() or "none"}


def _cipher_suites(java: Mapping[str, str]) -> dict[str, str]:
    suites = [suite.strip() for suite in java.get(_CIPHER_SUITES, "").replace(":", ",").split(",")]
    ciphers = [_openssl_cipher(suite) for suite in suites if suite and suite not in _TLS13_SUITES]
    return {_CIPHER_SUITES: ":".join(ciphers)} if ciphers else {}


def _openssl_cipher(suite: str) -> str:
    if not suite.startswith(("TLS_", "SSL_")):
        return suite
    cipher = OPENSSL_CIPHERS.get(suite)
    if cipher is None:
        raise ConfigError(_CIPHER_SUITES, suite, "OpenSSL has no such cipher suite: see `openssl ciphers -stdname`")
    return cipher

"""Java's TLS settings as librdkafka's: stores, certificates, keys, cipher suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.errors import ConfigError
from worker.kafka.pem import normalized_pem

__all__ = ["OPENSSL_CIPHERS", "ssl_properties", "uses_ssl"]

_TRUSTSTORE_LOCATION = "ssl.truststore.location"
_TRUSTSTORE_TYPE = "ssl.truststore.type"
_TRUSTSTORE_CERTIFICATES = "ssl.truststore.certificates"
_KEYSTORE_LOCATION = "ssl.keystore.location"
_KEYSTORE_TYPE = "ssl.keystore.type"
_KEYSTORE_KEY = "ssl.keystore.key"
_KEYSTORE_CHAIN = "ssl.keystore.certificate.chain"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_CIPHER_SUITES = "ssl.cipher.suites"

_PEM_SUFFIXES = frozenset((".pem", ".crt", ".cer"))
_PKCS12_SUFFIXES = frozenset((".p12", ".pfx", ".pkcs12"))

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

# OpenSSL takes these only through another setting, which librdkafka has not; they are always on.
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
    """Tell whether these settings ask for TLS."""
    return java.get("security.protocol", "").strip().upper() in ("SSL", "SASL_SSL")


def ssl_properties(java: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's ``ssl.*`` for Java's; empty unless ``security.protocol`` asks for TLS."""
    if not uses_ssl(java):
        return {}
    return _truststore(java) | _keystore(java) | _identification(java) | _cipher_suites(java)


def _truststore(java: Mapping[str, str]) -> dict[str, str]:
    certificates = java.get(_TRUSTSTORE_CERTIFICATES, "")
    location = java.get(_TRUSTSTORE_LOCATION, "").strip()
    if certificates.strip():
        _refuse_both(_TRUSTSTORE_CERTIFICATES, _TRUSTSTORE_LOCATION, location)
        return {"ssl.ca.pem": normalized_pem(_TRUSTSTORE_CERTIFICATES, certificates)}
    if not location:
        return {}
    if _store_type(java, _TRUSTSTORE_TYPE, location) != "PEM":
        raise ConfigError(
            _TRUSTSTORE_LOCATION,
            location,
            "A trust store is read in PEM only. Convert it with "
            f"`keytool -list -rfc -keystore {location} > truststore.pem`, then set "
            f"{_TRUSTSTORE_LOCATION}=truststore.pem and {_TRUSTSTORE_TYPE}=PEM",
        )
    return {"ssl.ca.location": location}


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    key = java.get(_KEYSTORE_KEY, "")
    location = java.get(_KEYSTORE_LOCATION, "").strip()
    properties: dict[str, str] = {}
    if key.strip():
        _refuse_both(_KEYSTORE_KEY, _KEYSTORE_LOCATION, location)
        chain = java.get(_KEYSTORE_CHAIN, "")
        if not chain.strip():
            raise ConfigRuleError(
                f'Missing required configuration "{_KEYSTORE_CHAIN}": set it beside {_KEYSTORE_KEY}',
                _KEYSTORE_CHAIN,
            )
        properties["ssl.key.pem"] = normalized_pem(_KEYSTORE_KEY, key)
        properties["ssl.certificate.pem"] = normalized_pem(_KEYSTORE_CHAIN, chain)
    elif location:
        properties |= _KEYSTORES[_store_type(java, _KEYSTORE_TYPE, location)](java, location)
    has_key = bool(properties) or "ssl.key.location" in java or "ssl.key.pem" in java
    if has_key and java.get("ssl.key.password"):
        properties["ssl.key.password"] = java["ssl.key.password"]
    return properties


def _pem_keystore(_java: Mapping[str, str], location: str) -> dict[str, str]:
    return {"ssl.key.location": location, "ssl.certificate.location": location}


def _pkcs12_keystore(java: Mapping[str, str], location: str) -> dict[str, str]:
    return {
        "ssl.keystore.location": location,
        "ssl.keystore.password": java.get("ssl.keystore.password", ""),
    }


def _jks_keystore(_java: Mapping[str, str], location: str) -> dict[str, str]:
    raise ConfigError(
        _KEYSTORE_LOCATION,
        location,
        "A key store is read in PKCS12 or PEM only. Convert it with "
        f"`keytool -importkeystore -srckeystore {location} -destkeystore keystore.p12 "
        f"-deststoretype PKCS12`, then set {_KEYSTORE_LOCATION}=keystore.p12 and {_KEYSTORE_TYPE}=PKCS12",
    )


_KEYSTORES: dict[str, Callable[[Mapping[str, str], str], dict[str, str]]] = {
    "PEM": _pem_keystore,
    "PKCS12": _pkcs12_keystore,
    "JKS": _jks_keystore,
}


def _store_type(java: Mapping[str, str], key: str, location: str) -> str:
    """The type as given, else as the file's suffix has it, else Java's default, JKS."""
    given = java.get(key, "").strip()
    if given:
        if given.upper() not in _KEYSTORES:
            raise ConfigError(key, given, f"String must be one of: {', '.join(_KEYSTORES)}")
        return given.upper()
    suffix = PurePath(location).suffix.lower()
    if suffix in _PEM_SUFFIXES:
        return "PEM"
    return "PKCS12" if suffix in _PKCS12_SUFFIXES else "JKS"


def _refuse_both(inline_key: str, location_key: str, location: str) -> None:
    if location:
        raise ConfigError(inline_key, HIDDEN, f"{location_key} is set too: remove one of them")


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

"""Loading of key stores and trust stores into SSL contexts."""

from __future__ import annotations

import ssl

from connect.config.errors import ConfigRuleError
from connect.config.password import HIDDEN
from connect.errors import ConfigError
from connect.internals.tls.key_stores import KeyEntry
from connect.internals.tls.pem import file_in_memory

__all__ = ["load_key", "load_trusted"]


def load_trusted(context: ssl.SSLContext, trusted: str | None, prefix: str, purpose: ssl.Purpose) -> None:
    """Trust these PEM certificates, or the system's if there are none. Errors name keys with ``prefix``.

    As in Java, every certificate in the trust store is trusted, even if it is not the end of its chain.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trusted is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigRuleError(
            f"The certificates of {prefix}ssl.truststore cannot be used: {error.reason}. Check them with "
            "`openssl x509 -text`.",
            f"{prefix}ssl.truststore.location",
        ) from error


def load_key(context: ssl.SSLContext, entry: KeyEntry, prefix: str) -> None:
    """Present this certificate to the peer; errors name keys with ``prefix``."""
    with file_in_memory(entry.key + entry.certificates) as file:
        try:
            # Without a password, OpenSSL would prompt for one at the terminal.
            context.load_cert_chain(file, password=entry.password or "")
        except ssl.SSLError as error:
            if "ENCRYPTED" in entry.key:
                raise ConfigError(
                    f"{prefix}ssl.key.password", HIDDEN, "It does not open the private key of the key store. Check it"
                ) from None
            raise ConfigRuleError(
                f"The private key of {prefix}ssl.keystore and its certificate cannot be used together: "
                f"{error.reason}. The first certificate must be that of the key.",
                f"{prefix}ssl.keystore.location",
            ) from None

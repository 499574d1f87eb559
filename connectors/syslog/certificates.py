"""The listener's certificate, and the senders that are let in."""

from __future__ import annotations

import ssl
from pathlib import Path

from connect.config import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.tls.contexts import load_key, load_trusted
from connect.internals.tls.key_stores import KeyEntry
from connect.internals.tls.self_signed import self_signed_key

__all__ = ["listener_context"]


def listener_context(
    chain: str | None, key: str | None, password: str | None, *, self_signed: bool, authorities: str | None
) -> ssl.SSLContext:
    """Return the TLS context of a listener; raise a :class:`~connect.errors.ConfigError` for a file that is unusable.

    With ``authorities`` only senders are let in that show a certificate of theirs.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A sender that closes without reading them would reset the connection, and with it all that was not received yet.
    context.num_tickets = 0
    if self_signed:
        entry = self_signed_key()
    else:
        entry = KeyEntry(_text("syslog.ssl.key.path", key), _text("syslog.ssl.cert.chain.path", chain), password)
    try:
        load_key(context, entry, "syslog.")
    except ConfigError as error:
        raise _renamed(error) from None
    if authorities is not None:
        try:
            load_trusted(context, _text("syslog.ssl.ca.path", authorities), "syslog.", ssl.Purpose.CLIENT_AUTH)
        except ConfigError as error:
            raise ConfigRuleError(
                f"{authorities} has no certificates that can be used.", "syslog.ssl.ca.path"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _renamed(error: ConfigError) -> ConfigError:
    """Return the error with the listener's keys in place of those of a key store."""
    if error.key.endswith("key.password"):
        return error
    return ConfigRuleError(
        "The private key of syslog.ssl.key.path does not fit the first certificate of syslog.ssl.cert.chain.path, or "
        "one of the files is no PEM file: check both with `openssl x509 -text` and `openssl pkey -text`.",
        "syslog.ssl.key.path",
    )


def _text(key: str, path: str | None) -> str:
    if not path:
        raise ConfigRuleError(
            f"{key} is missing: TLS needs a certificate and its key as PEM files, or "
            "syslog.ssl.self.signed.certificate.enable=true for tests.",
            key,
        )
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no PEM file"
        raise ConfigRuleError(f"{path} of {key} cannot be read: {reason}.", key) from error

"""An Azure storage account: the address of its Blob service, and the credentials for it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from connect.errors import ConfigError

__all__ = ["AzureAccount", "account_of_connection_string", "checked_account_key"]

_CONNECTION_STRING: Final = "azblob.connection.string"
_ACCOUNT_KEY: Final = "azblob.account.key"


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """Access to an account; plain data, which other processes may be sent."""

    name: str
    endpoint: str
    """The URL of the account's Blob service."""
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """A shared access signature. Without it and without a key, the identity is found the way Azure's clients do."""
    tries: int = 6
    """How often a request is attempted before it counts as failed."""


def checked_account_key(key: str, option: str = _ACCOUNT_KEY) -> str:
    """Check an account key; errors name the option it came from, and reveal nothing of it."""
    try:
        base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        # The reason may quote the text it does not understand, so it is not chained.
        raise ConfigError(option, None, "This is not an account key in base64: copy it again.") from None
    return key


def account_of_connection_string(text: str, named: str, endpoint: str) -> AzureAccount:
    """Return the account of a connection string, which must be the one ``named`` beside it.

    ``endpoint`` is used if the string names none.
    """
    parts = _parts_of(text)
    name = parts.get("accountname", named)
    if name != named:
        raise ConfigError(
            _CONNECTION_STRING,
            None,
            f"It belongs to account {name}, and the store to {named}: correct one of them.",
        )
    key, token = parts.get("accountkey"), parts.get("sharedaccesssignature")
    if (key is None) == (token is None):
        raise ConfigError(
            _CONNECTION_STRING, None, "It needs exactly one of AccountKey and SharedAccessSignature: copy it again."
        )
    if key is not None:
        checked_account_key(key, _CONNECTION_STRING)
    if (found := parts.get("blobendpoint")) is not None:
        endpoint = found
    elif (suffix := parts.get("endpointsuffix")) is not None:
        endpoint = f"{parts.get('defaultendpointsprotocol', 'https')}://{name}.blob.{suffix}"
    return AzureAccount(name, endpoint.rstrip("/"), key, token)


def _parts_of(text: str) -> Mapping[str, str]:
    """Return the parts of a connection string by name; names are case-insensitive."""
    parts = [part.partition("=") for part in text.strip().strip(";").split(";")]
    if not all(equals for _, equals, _ in parts):
        raise ConfigError(
            _CONNECTION_STRING,
            None,
            "This is not a connection string: use the form NAME=VALUE;NAME=VALUE, as Azure's portal shows it.",
        )
    return {name.strip().lower(): value.strip() for name, _, value in parts}

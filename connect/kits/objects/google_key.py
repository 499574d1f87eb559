"""Reads the key of a Google service account, in the JSON form that Google's console downloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from connect.errors import ConfigError

__all__ = ["parse_google_key", "read_google_key"]

_NEEDED: Final = ("client_email", "private_key", "private_key_id", "token_uri")
_PATH: Final = "gcs.credentials.path"


def read_google_key(path: str) -> Mapping[str, Any]:
    """Read the key in a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            _PATH, path, f"It cannot be read ({error}): name the JSON file of a service account."
        ) from None
    return parse_google_key(text, _PATH)


def parse_google_key(text: str, option: str) -> Mapping[str, Any]:
    """Parse a key; errors name the option it came from, and reveal nothing of it."""
    try:
        key = json.loads(text)
    except ValueError:
        # The reason quotes the text it does not understand, so it is not chained.
        raise ConfigError(option, None, "This is not JSON: use the file that Google created for the account.") from None
    if not isinstance(key, dict) or key.get("type") != "service_account":
        raise ConfigError(
            option,
            None,
            "This is not the key of a service account. To sign in any other way, leave the key out: "
            "credentials are then looked up where Google's clients do.",
        )
    missing = [name for name in _NEEDED if not isinstance(key.get(name), str)]
    if missing:
        raise ConfigError(option, None, f"The key lacks {', '.join(missing)}: download it again.")
    return key

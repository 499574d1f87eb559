"""Configurations without their secrets, for pages (invariant I8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from connect.config import HIDDEN

__all__ = ["masked", "types_of"]

_PASSWORD: Final = "PASSWORD"  # noqa: S105 - the name of a type
_SECRET: Final = re.compile(
    r"password|passphrase|secret|credential|token|jaas|api[._-]?key|access[._-]?key|private[._-]?key|keystore\.key"
    r"|authorization|auth\.info|user\.info",
    re.IGNORECASE,
)
_REFERENCE: Final = re.compile(r"\$\{[^{}]*\}")
_IN_URL: Final = re.compile(
    r"(?<=://)[^/\s@]+(?=@)"
    r"|(?<=[?&;])([\w.-]{0,60}(?:password|secret|token|key|sig)[\w.-]{0,60}=)[^&;\s]+",
    re.IGNORECASE,
)


def types_of(infos: Mapping[str, Any]) -> dict[str, str]:
    """The type of each key that a validation tells of."""
    definitions = [item["definition"] for item in infos.get("configs", ()) if item["definition"] is not None]
    return {definition["name"]: definition["type"] for definition in definitions}


def masked(config: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """The configuration with ``[hidden]`` for each secret.

    A secret is the value of a key of the type PASSWORD, and of one whose name sounds like one unless its type says that
    it is no text. A value that is nothing but a reference to a config provider stays: it tells no secret. In other
    values the credentials of URLs are hidden.
    """
    return {key: _shown(key, value, types.get(key)) for key, value in config.items()}


def _shown(key: str, value: str, type_name: str | None) -> str:
    if not value or _REFERENCE.fullmatch(value):
        return value
    if type_name == _PASSWORD or (type_name in (None, "STRING") and _SECRET.search(key)):
        return HIDDEN
    return _IN_URL.sub(lambda match: f"{match[1] or ''}{HIDDEN}", value)

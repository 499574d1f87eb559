"""The naming rules of Avro and Connect schemas, and the translation between them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus

from connect.errors import SchemaError

__all__ = [
    "ANYTHING",
    "DEFAULT_NAME",
    "ENUM",
    "FIXED_SIZE",
    "GENERALIZED_ENUM",
    "GENERALIZED_UNION",
    "MAP_ENTRY",
    "NAMESPACE",
    "UNION",
    "UNION_FIELD",
    "check_name",
    "joined",
    "scrub",
    "scrub_full",
    "split",
]

NAMESPACE: Final = "io.confluent.connect.avro"
ANYTHING: Final = f"{NAMESPACE}.Anything"
DEFAULT_NAME: Final = f"{NAMESPACE}.ConnectDefault"
MAP_ENTRY: Final = f"{NAMESPACE}.MapEntry"
UNION: Final = f"{NAMESPACE}.Union"
ENUM: Final = f"{NAMESPACE}.Enum"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
UNION_FIELD: Final = "connect_union_field_"
FIXED_SIZE: Final = "connect.fixed.size"

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


def split(full_name: str) -> tuple[str | None, str]:
    """Split a full name into the namespace, if any, and the simple name."""
    namespace, _, name = full_name.rpartition(".")
    return namespace or None, name


def joined(namespace: str | None, name: str) -> str:
    """Return the inverse of :func:`split`."""
    return f"{namespace}.{name}" if namespace else name


def scrub(name: str) -> str:
    """Replace the characters that Avro does not allow in names, as Java's converter does."""
    if not name or _VALID.fullmatch(name):
        return name
    encoded = quote_plus(name, safe="*-._")
    encoded = encoded.replace("~", "%7E")
    if encoded[0].isdigit():
        encoded = f"x{encoded}"
    return _INVALID.sub("_", encoded)


def scrub_full(full_name: str) -> str:
    """Scrub each part of a dotted name."""
    return ".".join(scrub(part) for part in full_name.split("."))


def check_name(name: str, what: str) -> str:
    """Return the name if Avro allows it.

    Otherwise raises a :class:`~connect.errors.SchemaError` that says what to do.
    """
    if all(_VALID.fullmatch(part) for part in name.split(".")):
        return name
    raise SchemaError(
        f"{name!r} is not a name that Avro allows for {what}: use letters, digits and _ (ReplaceField renames fields), "
        "or set scrub.invalid.names=true to have the other characters replaced."
    )

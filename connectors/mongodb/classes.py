"""Java's classes, which name what the connectors do: by their full name or by the last part of it."""

from __future__ import annotations

from collections.abc import Collection

from connect.config import Validator, invalid_value, validator

__all__ = ["class_named", "java_class", "java_classes"]


def class_named(name: str) -> str:
    """Return the last part of the name of a class, by which it is known here."""
    return name.strip().rpartition(".")[2]


def java_class(*known: str) -> Validator:
    """Accept the names of classes in ``known``, in full or by their last part."""
    shorts = {class_named(name) for name in known}
    described = ", ".join(name for name in known if name)

    @validator(f"one of {described}")
    def known_name(key: str, value: str) -> None:
        name = value.strip()
        if name not in known and ("." in name or name not in shorts):
            raise invalid_value(
                key, value, f"Java's classes cannot run here; these are built in: {described}. Choose one of them"
            )

    return known_name


def java_classes(*known: str) -> Validator:
    """Accept lists of names of classes in ``known``."""
    one = java_class(*known)

    @validator(f"list of {one}")
    def known_names(key: str, value: Collection[str]) -> None:
        for name in value:
            if name.strip():
                one(key, name)

    return known_names

"""Keys of other connectors for the same target that users may bring along: they are refused or warned about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["UnsupportedKey", "given_keys", "without_effect"]


@dataclass(frozen=True, slots=True)
class UnsupportedKey:
    """A key that a connector does not support. ``instead`` says what to do instead, or why nothing needs to be done.

    ``harmless`` are the values, in lower case, that ask for what the connector does anyway.
    """

    instead: str
    harmless: tuple[str, ...] = ("",)


def given_keys(
    unsupported: Mapping[str, UnsupportedKey], props: Mapping[str, str | None]
) -> Iterator[tuple[str, str, str]]:
    """Yield each unsupported key of a configuration with its value and advice."""
    for key, value in props.items():
        rule = unsupported.get(key)
        if rule is not None and value is not None and value.strip().lower() not in rule.harmless:
            yield key, value, rule.instead


def without_effect(unsupported: Mapping[str, UnsupportedKey], props: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a warning for each unsupported key of a configuration."""
    for key, _, instead in given_keys(unsupported, props):
        yield f"The key {key} has no effect: {instead}."

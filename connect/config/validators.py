"""Rules for the value of one key.

A validator is called with the key and the parsed value and raises ``ConfigError``; its ``description`` is the rule as
the reference shows it. Make your own from a function::

    @validator("absolute path")
    def absolute_path(key: str, value: str) -> None:
        if not value.startswith("/"):
            raise invalid_value(key, value, "Path must be absolute")

The function is not called for null, the value of a key that is missing or cannot be parsed. Set ``refuse_null`` to the
reason if null must be refused; an option that may be ``None`` does not need it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.config.errors import ConfigRuleError, invalid_value
from connect.config.types import display_value

__all__ = [
    "Validator",
    "all_of",
    "at_least",
    "at_most",
    "between",
    "connector_name",
    "known_class",
    "list_size",
    "list_values",
    "matches",
    "matches_wildcard",
    "non_empty",
    "non_empty_list",
    "one_of",
    "regex",
    "regex_list",
    "unique_aliases",
    "unique_list",
    "url_list",
    "validator",
]

# Workers tell each other what they run in a protocol that counts bytes by 16 bits with a sign.
_LONGEST_NAME: Final = 32_767
_SHOWN: Final = 40

_EnsureValid: TypeAlias = Callable[[str, Any], None]


@dataclass(frozen=True, slots=True)
class Validator:
    """A rule for the value of one key: call it to enforce it, print it to describe it."""

    description: str
    ensure_valid: _EnsureValid
    refuse_null: str | None = None

    def __call__(self, key: str, value: Any) -> None:
        """Raise ``ConfigError`` if ``value`` breaks the rule."""
        if value is not None:
            self.ensure_valid(key, value)
        elif self.refuse_null is not None:
            raise invalid_value(key, value, self.refuse_null)

    def __str__(self) -> str:
        return self.description

    def __repr__(self) -> str:
        return f"<validator: {self.description}>"


def validator(description: str, *, refuse_null: str | None = None) -> Callable[[_EnsureValid], Validator]:
    """Decorate a function to make a validator of it; ``description`` is the rule in the reference."""
    return lambda ensure_valid: Validator(description, ensure_valid, refuse_null)


@validator("non-empty string")
def non_empty(key: str, value: str) -> None:
    """Refuse the empty string."""
    if not value:
        raise invalid_value(key, value, "String must be non-empty")


@validator("non-empty string without ISO control characters")
def connector_name(key: str, value: str) -> None:
    """Refuse the empty string, control characters, and names that are too long for a connector."""
    if not value:
        raise invalid_value(key, value, "String may not be empty")
    controls = [str(ord(character)) for character in value if unicodedata.category(character) == "Cc"]
    if controls:
        found = ", ".join(controls)
        reason = f"String may not contain control sequences but had the following ASCII chars: {found}"
        raise invalid_value(key, value, reason)
    if (length := len(value.encode())) > _LONGEST_NAME:
        raise invalid_value(key, f"{value[:_SHOWN]}...", f"It has {length} bytes; at most {_LONGEST_NAME} are allowed")


def at_least(minimum: float) -> Validator:
    """Accept numbers not less than ``minimum``."""
    return _in_range(minimum, None)


def at_most(maximum: float) -> Validator:
    """Accept numbers up to ``maximum``."""
    return _in_range(None, maximum)


def between(minimum: float, maximum: float) -> Validator:
    """Accept numbers from ``minimum`` to ``maximum``, both included."""
    return _in_range(minimum, maximum)


def _in_range(minimum: float | None, maximum: float | None) -> Validator:
    bounds = ["..." if bound is None else display_value(bound) for bound in (minimum, maximum)]
    if minimum is not None and maximum is not None:
        bounds.insert(1, "...")

    @validator(f"[{','.join(bounds)}]", refuse_null="Value must be non-null")
    def in_range(key: str, value: float) -> None:
        if minimum is not None and value < minimum:
            raise invalid_value(key, value, f"Value must be at least {display_value(minimum)}")
        if maximum is not None and value > maximum:
            raise invalid_value(key, value, f"Value must be no more than {display_value(maximum)}")

    return in_range


def one_of(*values: str, ignore_case: bool = False) -> Validator:
    """Accept one of ``values``."""
    if ignore_case:
        return _one_of_ignoring_case([value.upper() for value in values])
    choices = ", ".join(values)
    reason = f"String must be one of: {choices}"

    @validator(f"[{choices}]", refuse_null=reason)
    def one_of_values(key: str, value: str) -> None:
        if value not in values:
            raise invalid_value(key, value, reason)

    return one_of_values


def _one_of_ignoring_case(values: Collection[str]) -> Validator:
    choices = ", ".join(values)
    reason = f"String must be one of (case insensitive): {choices}"

    @validator(f"(case insensitive) [{choices}]", refuse_null=reason)
    def one_of_values(key: str, value: str) -> None:
        if value.upper() not in values:
            raise invalid_value(key, value, reason)

    return one_of_values


def matches(pattern: str, description: str | None = None) -> Validator:
    """Accept strings that the regular expression ``pattern`` matches as a whole."""
    compiled = re.compile(pattern)
    rule = description or f"string matching {pattern}"

    @validator(rule)
    def matches_pattern(key: str, value: str) -> None:
        if not compiled.fullmatch(value):
            raise invalid_value(key, value, f"Value must be a {rule}")

    return matches_pattern


def matches_wildcard(pattern: str, text: str) -> bool:
    """Return whether ``text`` matches ``pattern``, in which ``*`` is any text, in one pass over ``text``."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first):
        return False
    *middle, last = others
    position = len(first)
    for part in middle:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return text.endswith(last) and len(text) - position >= len(last)


@validator("valid regex")
def regex(key: str, value: str) -> None:
    """Refuse text that is not a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise invalid_value(key, value, f"Invalid regex: {error}") from error


@validator("list of valid regexes")
def regex_list(key: str, value: Collection[str]) -> None:
    """Refuse a list with an item that is not a regular expression."""
    for item in value:
        regex(key, item)


@validator("non-empty list", refuse_null="Empty list")
def non_empty_list(key: str, value: Collection[str]) -> None:
    """Refuse the empty list."""
    if not value:
        raise invalid_value(key, value, "Empty list")


def list_size(maximum: int) -> Validator:
    """Accept lists of up to ``maximum`` items."""

    @validator(f"List containing maximum of {maximum} elements")
    def at_most_items(key: str, value: Collection[str]) -> None:
        if len(value) > maximum:
            raise invalid_value(key, value, f"exceeds maximum list size of [{maximum}].")

    return at_most_items


@validator("list without duplicates or empty items")
def unique_list(key: str, value: Collection[str]) -> None:
    """Refuse a list that has an item twice or an empty one."""
    if len(set(value)) < len(value):
        raise ConfigRuleError(f"Configuration '{key}' values must not be duplicated.", key)
    if "" in value:
        raise ConfigRuleError(f"Configuration '{key}' values must not be empty.", key)


def list_values(*values: str, ignore_case: bool = False) -> Validator:
    """Accept lists of ``values``."""
    item_rule = one_of(*values, ignore_case=ignore_case)

    @validator(f"list of {item_rule}")
    def list_of_values(key: str, value: Collection[str]) -> None:
        for item in value:
            item_rule(key, item)

    return list_of_values


def unique_aliases(kind: str) -> Validator:
    """Accept lists that name each of their ``kind`` ("transformation aliases") once."""

    @validator(f"unique {kind}")
    def aliases_once(key: str, value: Collection[str]) -> None:
        if len(set(value)) < len(value):
            raise invalid_value(key, value, "Duplicate alias provided.")

    return aliases_once


@validator("List of comma-separated URLs, ex: http://localhost:8080,https://localhost:8443.")
def url_list(key: str, value: Collection[str]) -> None:
    """Refuse the empty list and blank items where URLs are listed."""
    if not value:
        example = "http://localhost:8080,https://localhost:8443."
        raise ConfigRuleError(f"Invalid value for {key}, at least one URL is expected, ex: {example}", key)
    if not all(item.strip() for item in value):
        raise ConfigRuleError(f"Empty URL found when parsing {key} list.", key)


def known_class(exists: Callable[[str], bool], description: str = "name of a plugin") -> Validator:
    """Accept the names for which ``exists`` returns true."""

    @validator(description)
    def loadable(key: str, value: str) -> None:
        if not exists(value):
            raise invalid_value(key, value, f"Class {value} could not be found.")

    return loadable


def all_of(*validators: Validator) -> Validator:
    """Accept values that all of ``validators`` accept; the first that refuses raises its error."""
    refusals = [rule.refuse_null for rule in validators if rule.refuse_null is not None]

    @validator(", ".join(rule.description for rule in validators), refuse_null=next(iter(refusals), None))
    def every_rule(key: str, value: Any) -> None:
        for rule in validators:
            rule(key, value)

    return every_rule

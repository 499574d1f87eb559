"""The headers that ``response.http.headers.config`` adds to every response of the REST API."""

from __future__ import annotations

import csv
import enum
import re
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final

from connect.config import invalid_value, validator

__all__ = ["HeaderAction", "HeaderRule", "header_rules", "parse_header_rules"]

_RULE: Final = re.compile(r"\s*(?P<action>\w+)\s+(?P<name>[^\s:]+)\s*:(?P<value>.*)", re.DOTALL)


class HeaderAction(enum.Enum):
    """What a rule does with its header; dates are given in milliseconds since 1970."""

    SET = "set"
    ADD = "add"
    SET_DATE = "setdate"
    ADD_DATE = "adddate"


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """One header to send; it ``replaces`` another of the same name, or is added to it."""

    name: str
    value: str
    replaces: bool


def parse_header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Parse the rules in ``text``. Raises ``ValueError`` unless each has the form ``[action] [name]:[value]``."""
    entries = next(csv.reader([text], skipinitialspace=True), []) if text.strip() else []
    return tuple(_rule(entry) for entry in entries)


@validator(
    "Comma-separated header rules, where each header rule is of the form '[action] [header name]:[header value]'"
)
def header_rules(key: str, value: str) -> None:
    """Refuse rules that :func:`parse_header_rules` cannot parse."""
    try:
        parse_header_rules(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


def _rule(entry: str) -> HeaderRule:
    match = _RULE.fullmatch(entry)
    if match is None:
        raise ValueError(f"Header rule '{entry}' is not of the form '[action] [header name]:[header value]'")
    try:
        action = HeaderAction(match["action"].lower())
    except ValueError:
        raise ValueError(f"Action '{match['action']}' must be one of set, add, setDate and addDate") from None
    value = match["value"].strip()
    if any(ord(character) < ord(" ") for character in match["name"] + value):
        raise ValueError(f"Header {match['name']!r} has a control character")
    if action in (HeaderAction.SET_DATE, HeaderAction.ADD_DATE):
        if not value.lstrip("-").isdigit():
            raise ValueError(f"Date '{value}' is not a number of milliseconds since 1970")
        value = formatdate(int(value) / 1000, usegmt=True)
    return HeaderRule(match["name"], value, action in (HeaderAction.SET, HeaderAction.SET_DATE))

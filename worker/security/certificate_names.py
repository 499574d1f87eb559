"""Principals of client certificates: distinguished names, and the rules that map them to names. Pure functions.

The rules are those of ``ssl.principal.mapping.rules`` of a Kafka broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["NameRules", "distinguished_name"]

_SHORT: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')
_RULES: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d)")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def name(self, dn: str) -> str | None:
        """Return the principal for a distinguished name, or ``None`` if the rule does not apply."""
        if self.pattern is None:
            return dn
        match = self.pattern.fullmatch(dn)
        if match is None:
            return None
        name = _REFERENCE.sub(lambda it: it[1] or (match[int(it[2])] or ""), self.replacement)
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)


@dataclass(frozen=True, slots=True)
class NameRules:
    """Mapping rules in order; the first that matches applies."""

    rules: tuple[_Rule, ...]

    @classmethod
    def parse(cls, text: str) -> NameRules:
        """Parse rules. Raises ``ValueError`` for invalid ones."""
        rules: list[_Rule] = []
        position = 0
        while position < len(text):
            match = _RULES.match(text, position)
            if match is None:
                raise ValueError(f"{text[position:]!r} is neither DEFAULT nor RULE:pattern/replacement/[L|U]")
            rules.append(_Rule(None) if match[1] else _rule(match[2], match[3], match[4]))
            position = match.end()
        if not rules:
            raise ValueError("there is no rule; write DEFAULT")
        return cls(tuple(rules))

    def principal(self, dn: str) -> str | None:
        """Return the principal for a distinguished name; ``None`` if no rule applies or gives it a name."""
        found = (rule.name(dn) for rule in self.rules)
        return next((name for name in found if name is not None), None) or None


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """Return the subject of a certificate from :meth:`ssl.SSLSocket.getpeercert`, in the order of RFC 2253.

    This is how a Kafka broker writes it: ``CN=alice,OU=data,O=Acme``.
    """
    names: Iterable[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    return ",".join(
        "+".join(f"{_SHORT.get(key, key)}={_escaped(value)}" for key, value in part) for part in _last_first(names)
    )


def _last_first(names: Iterable[Sequence[tuple[str, str]]]) -> list[Sequence[tuple[str, str]]]:
    return list(names)[::-1]


def _escaped(value: str) -> str:
    text = _SPECIAL.sub(r"\\\1", value)
    if text.startswith(("#", " ")):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(text) > 1 else text


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(pattern.replace(r"\/", "/"))
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    groups = [int(match[2]) for match in _REFERENCE.finditer(replacement) if match[2]]
    if max(groups, default=0) > compiled.groups:
        raise ValueError(f"{replacement!r} refers to a group that {pattern!r} does not have")
    return _Rule(compiled, replacement, case)

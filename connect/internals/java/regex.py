"""Java's regular expressions and replacements, translated for Python's ``re``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from connect.config import invalid_value, validator

__all__ = ["expand", "regex_from_java", "regex_of_name", "valid_java_regex"]

_SPECIAL: Final = re.compile(r"[\\^$*+?()\[\]{}|]")
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_ESCAPES: Final = {
    "h": r"[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "H": r"[^ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
    "z": r"\Z",
    "Z": r"(?=\n?\Z)",
    "e": r"\x1b",
}
_TOKENS: Final = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|\Z))"
    r"|\\[pP]\{(?P<posix>\w+)\}"
    r"|\\x\{(?P<hex>[0-9a-fA-F]+)\}"
    r"|\\k<(?P<back>\w+)>"
    r"|\\(?P<escape>.)"
    r"|\(\?<(?P<name>[a-zA-Z]\w*)>"
    r"|\(\?(?P<flags>[idmsux]*(?:-[idmsux]+)?)\)"
    r"|(?P<special>[()|\[\]]|&&)"
    r"|(?P<other>.)",
    re.DOTALL | re.ASCII,
)
_GROUP: Final = re.compile(
    r"\$(?:(?P<number>\d+)|\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\})|\\(?P<escaped>.)|[$\\]", re.DOTALL
)


def regex_of_name(name: str) -> str:
    """Return an expression for a name in a list of them: dots stay as they are, as people write them, and a comma,
    which would end the expression, becomes a dot.
    """
    return _SPECIAL.sub(r"\\\g<0>", name).replace(",", ".")


@validator("valid regex")
def valid_java_regex(key: str, value: str) -> None:
    """Refuse text that is not a regular expression in Java, or that cannot be translated to Python."""
    try:
        regex_from_java(value)
    except re.error as error:
        raise invalid_value(key, value, f"Invalid regex: {error}") from error


def regex_from_java(text: str) -> re.Pattern[str]:
    """Compile a regular expression written for Java; raise ``re.error`` if it cannot be translated.

    Intersections and unions of character classes (``[a-z&&[^b]]``) are refused, and so is ``\\p{...}`` for
    Unicode categories. As in Java, ``\\d``, ``\\w`` and ``\\b`` are limited to ASCII.
    """
    try:
        return re.compile("".join(_Translation(text)), re.ASCII)
    except RecursionError as error:
        raise re.error("its groups are nested too deeply") from error
    except (OverflowError, ValueError) as error:
        raise re.error(str(error)) from error


class _Translation:
    """The parts of the Python expression, in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._in_class = False
        # For each open group, the flags that were switched on in it and apply until its end.
        self._flags: list[list[str]] = [[]]

    def __iter__(self) -> Iterator[str]:
        for match in _TOKENS.finditer(self._text):
            yield self._translated(match)
        yield ")" * len(self._flags[-1])

    def _translated(self, match: re.Match[str]) -> str:
        kind, text = match.lastgroup or "other", match[0]
        value = match[kind]
        match kind:
            case "quoted":
                part = re.escape(value[2:].removesuffix(r"\E"))
            case "posix":
                part = self._posix(value, negated=text[1] == "P")
            case "hex":
                part = re.escape(chr(int(value, 16)))
            case "escape":
                part = self._escape(value)
            case _ if self._in_class:
                part = self._class_part(text)
            case "back":
                part = f"(?P={value})"
            case "name":
                self._flags.append([])
                part = f"(?P<{value}>"
            case "flags":
                part = self._switch(value)
            case "special":
                part = self._special(text)
            case _:
                part = text
        return part

    def _posix(self, name: str, *, negated: bool) -> str:
        members = _POSIX.get(name.removeprefix("Is"))
        if members is None:
            raise re.error(f"\\p{{{name}}} is not supported: write the characters as a class")
        if not self._in_class:
            return f"[{'^' if negated else ''}{members}]"
        if negated:
            raise re.error(f"\\P{{{name}}} is not supported in a character class")
        return members

    def _escape(self, letter: str) -> str:
        known = _ESCAPES.get(letter)
        if known is None:
            return f"\\{letter}" if letter.isalnum() else re.escape(letter)
        if self._in_class and (known.startswith(("[^", "("))):
            raise re.error(f"\\{letter} is not supported in a character class")
        return known.strip("[]") if self._in_class else known

    def _class_part(self, text: str) -> str:
        if text == "]":
            self._in_class = False
            return text
        if text.startswith("[") or text == "&&":
            raise re.error("unions and intersections of character classes are not supported")
        return re.escape(text) if text in "(|)~" else text

    def _special(self, text: str) -> str:
        if text == "[":
            self._in_class = True
        elif text == "(":
            self._flags.append([])
        elif text == ")" and len(self._flags) > 1:
            return ")" * len(self._flags.pop()) + text
        elif text == "|":
            return self._next_alternative()
        return text

    def _next_alternative(self) -> str:
        """Close the groups that carry flags and reopen one with all flags, so that their number does not grow."""
        flags = self._flags[-1]
        if not flags:
            return "|"
        closing, on = ")" * len(flags), dict[str, bool]()
        for opening in flags:
            added, _, removed = opening[2:-1].partition("-")
            on |= dict.fromkeys(added, True) | dict.fromkeys(removed, False)
        kept, off = ("".join(flag for flag, is_on in on.items() if is_on is wanted) for wanted in (True, False))
        flags[:] = [f"(?{kept}{off and '-' + off}:"]
        return f"{closing}|{flags[0]}"

    def _switch(self, flags: str) -> str:
        """Emulate a flag switch: Java's applies until the end of the group, but Python's only to a group of its own."""
        kept = flags.replace("d", "").replace("u", "").removesuffix("-")
        if not kept:
            return ""
        opening = f"(?{kept}:"
        self._flags[-1].append(opening)
        return opening


def expand(replacement: str, match: re.Match[str]) -> str:
    """Expand a replacement, with ``$1`` or ``${name}`` for groups and ``\\`` before literals.

    Raises ``IndexError`` for a group that the expression lacks, and ``ValueError`` for a malformed reference.
    """

    def part(reference: re.Match[str]) -> str:
        if reference["escaped"] is not None:
            return reference["escaped"]
        if reference["name"] is not None:
            return match[reference["name"]] or ""
        if reference["number"] is None:
            raise ValueError(f"{reference[0]} at {reference.start()} means nothing: put a backslash before it")
        return _numbered(reference["number"], match)

    return _GROUP.sub(part, replacement)


def _numbered(digits: str, match: re.Match[str]) -> str:
    """Return the longest run of digits that names a group, at least one digit. Further digits are literal text."""
    used = 1
    while used < len(digits) and int(digits[: used + 1]) <= match.re.groups:
        used += 1
    group = int(digits[:used])
    if group > match.re.groups:
        raise IndexError(f"No group {group}")
    return (match[group] or "") + digits[used:]

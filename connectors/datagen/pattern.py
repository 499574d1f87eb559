"""Generates strings that match a regular expression.

Supported are the constructs that describe the content of a string: characters, classes, groups, alternatives and
repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from connect.errors import SchemaError
from connectors.datagen.generator import Generator, Lengths
from connectors.datagen.random_block import RandomBlock, below

__all__ = ["pattern"]

_MOST_CHARACTERS: Final = 10_000
_OPEN_END: Final = 10
"""The number of repetitions that * and + and {2,} allow beyond the least."""
_MOST_PARTS: Final = 1_000
_DEEPEST: Final = 50
_DIGITS: Final = "0123456789"
_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_WORD: Final = _LOWER.upper() + _LOWER + _DIGITS + "_"
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))
_CLASSES: Final = {
    "d": _DIGITS,
    "D": "".join(sorted(set(_PRINTABLE) - set(_DIGITS))),
    "w": _WORD,
    "W": "".join(sorted(set(_PRINTABLE) - set(_WORD))),
    "s": " \t",
    "S": _PRINTABLE[1:],
}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PLAIN: Final = re.compile(r"[^()\[\]{}|*+?.^$\\]+")
_QUANTIFIERS: Final = ("*", "+", "?", "{")


def pattern(text: str, new_stream: Callable[[], int]) -> Generator:
    """Return the generator of strings that match the regular expression ``text`` completely.

    Raises :class:`~connect.errors.SchemaError` for unsupported expressions.
    """
    return _Parser(text, new_stream).parse()


class _Part(Generator):
    """A part of a string, of at most ``longest`` characters."""

    longest: int


class _Literal(_Part):
    """A constant string."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.longest = len(text)

    def column(self, draw: RandomBlock, count: int) -> list[str]:  # noqa: ARG002 - nothing is random
        return [self._text] * count


class _Character(_Part):
    """One of several characters."""

    longest = 1

    def __init__(self, stream: int, characters: str) -> None:
        self._stream = stream
        self.characters = characters

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        characters = self.characters
        return [characters[index] for index in below(draw, self._stream, count, len(characters))]


class _Sequence(_Part):
    """Consecutive parts."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.longest = sum(part.longest for part in parts)

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        if not self._parts:
            return [""] * count
        return list(map("".join, zip(*(part.column(draw, count) for part in self._parts), strict=True)))


class _Alternatives(_Part):
    """One of several parts."""

    def __init__(self, stream: int, parts: Sequence[_Part]) -> None:
        self._stream = stream
        self._parts = parts
        self.longest = max(part.longest for part in parts)

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        columns = [part.column(draw, count) for part in self._parts]
        places = below(draw, self._stream, count, len(columns))
        return [columns[place][row] for row, place in enumerate(places)]


class _Repetition(_Part):
    """A repeated part, generated anew each time."""

    def __init__(self, stream: int, part: _Part, low: int, high: int) -> None:
        self._lengths = Lengths(stream, low, high + 1)
        self._part = part
        self.longest = high * part.longest

    def column(self, draw: RandomBlock, count: int) -> list[str]:
        ends = list(accumulate(self._lengths.column(draw, count), initial=0))
        texts = self._part.column(draw, ends[-1])
        return ["".join(texts[start:end]) for start, end in pairwise(ends)]


class _Parser:
    """Parses a regular expression in one pass from left to right."""

    def __init__(self, text: str, new_stream: Callable[[], int]) -> None:
        self._text = text
        self._new_stream = new_stream
        self._place = 0
        self._parts = 0
        self._depth = 0

    def parse(self) -> Generator:
        """Return the generator of the whole expression."""
        part, work = self._alternatives()
        if self._place < len(self._text):
            raise self._refused("a ) has no opening parenthesis")
        if part.longest > _MOST_CHARACTERS or work > _MOST_CHARACTERS:
            raise self._refused(f"it generates strings of more than {_MOST_CHARACTERS} characters; repeat less")
        part.cost = 1 + work
        return part

    def _alternatives(self) -> tuple[_Part, int]:
        """Parse alternatives up to the end or a closing parenthesis; return them and the cost of a string."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused(f"its groups are nested more than {_DEEPEST} levels deep")
        found = [self._sequence()]
        while self._next("|"):
            found.append(self._sequence())
        self._depth -= 1
        if len(found) == 1:
            return found[0]
        parts, works = zip(*found, strict=True)
        return _Alternatives(self._new_stream(), parts), sum(works)

    def _sequence(self) -> tuple[_Part, int]:
        parts: list[_Part] = []
        work = 0
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            part, part_work = self._repeated(*self._part())
            parts.append(part)
            work += part_work
        return (parts[0] if len(parts) == 1 else _Sequence(parts)), work

    def _repeated(self, part: _Part, work: int) -> tuple[_Part, int]:
        if (bounds := self._bounds()) is None:
            return part, work
        low, high = bounds
        if high > _MOST_CHARACTERS or high * max(part.longest, work) > _MOST_CHARACTERS:
            raise self._refused(f"it generates strings of more than {_MOST_CHARACTERS} characters; repeat less")
        # A ? affects how to search, not what matches.
        self._next("?")
        if self._text.startswith(_QUANTIFIERS, self._place):
            raise self._refused("it has two quantifiers in a row; use parentheses")
        return _Repetition(self._new_part(), part, low, high), 1 + high * work

    def _bounds(self) -> tuple[int, int] | None:
        """Return the minimum and maximum number of repetitions, if a quantifier follows."""
        if self._next("?"):
            return 0, 1
        if self._next("*"):
            return 0, _OPEN_END
        if self._next("+"):
            return 1, 1 + _OPEN_END
        if not self._next("{"):
            return None
        end = self._text.find("}", self._place)
        low, comma, high = self._text[self._place : end].partition(",")
        if end < 0 or not _is_small(low) or not (high == "" or _is_small(high)):
            raise self._refused("after { it needs a number, or two numbers with a comma between them, and a }")
        self._place = end + 1
        least = int(low)
        most = least + (_OPEN_END if comma else 0) if high == "" else int(high)
        if most < least:
            raise self._refused(f"{{{low},{high}}} has its numbers in the wrong order")
        return least, most

    def _part(self) -> tuple[_Part, int]:
        character = self._text[self._place]
        self._place += 1
        match character:
            case "(":
                return self._group()
            case "[":
                return self._character(self._class())
            case ".":
                return self._character(_PRINTABLE)
            case "\\":
                return self._character(self._escaped())
            case "*" | "+" | "?" | "{":
                raise self._refused(f"there is nothing before {character} to repeat")
            case "^" | "$" | "]" | "}":
                raise self._refused(f"{character} is not supported here; write \\{character} for the character itself")
        return self._literal()

    def _literal(self) -> tuple[_Part, int]:
        """Parse literal characters; a repeated one is a part of its own."""
        match = _PLAIN.match(self._text, self._place - 1)
        assert match is not None
        text, end = match[0], match.end()
        if len(text) > 1 and self._text[end : end + 1] in _QUANTIFIERS:
            text, end = text[:-1], end - 1
        self._place = end
        self._new_part()
        return _Literal(text), 1

    def _group(self) -> tuple[_Part, int]:
        if self._text.startswith("?:", self._place):
            self._place += 2
        elif self._text.startswith("?", self._place):
            raise self._refused("groups that begin with (? are not supported, except (?:")
        found = self._alternatives()
        if not self._next(")"):
            raise self._refused("a ( is not closed")
        return found

    def _class(self) -> str:
        is_negated = self._next("^")
        if self._text.startswith("]", self._place):
            raise self._refused("a [] has no characters; write \\] for the character")
        found: dict[str, None] = {}
        while not self._next("]"):
            first = self._member()
            if len(first) == 1 and self._is_range():
                self._place += 1
                last = self._member()
                if len(last) != 1 or not 0 <= ord(last) - ord(first) < _MOST_CHARACTERS:
                    raise self._refused(f"{first}-{last} is not a range of characters")
                found.update(dict.fromkeys(map(chr, range(ord(first), ord(last) + 1))))
            else:
                found.update(dict.fromkeys(first))
        if not found:
            raise self._refused("a [] has no characters")
        characters = "".join(each for each in _PRINTABLE if each not in found) if is_negated else "".join(found)
        if not characters:
            raise self._refused("a [^] has no characters left")
        return characters

    def _member(self) -> str:
        if self._place >= len(self._text):
            raise self._refused("a [ is not closed")
        character = self._text[self._place]
        self._place += 1
        return self._escaped() if character == "\\" else character

    def _is_range(self) -> bool:
        return self._text.startswith("-", self._place) and not self._text.startswith("-]", self._place)

    def _escaped(self) -> str:
        if self._place >= len(self._text):
            raise self._refused("it ends with a \\")
        character = self._text[self._place]
        self._place += 1
        if character.isalnum() and character not in _CLASSES and character not in _ESCAPES:
            raise self._refused(f"\\{character} is not supported")
        return _CLASSES.get(character) or _ESCAPES.get(character, character)

    def _character(self, characters: str) -> tuple[_Part, int]:
        return _Character(self._new_part(), characters), 1

    def _new_part(self) -> int:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise self._refused(f"it has more than {_MOST_PARTS} parts")
        return self._new_stream()

    def _next(self, character: str) -> bool:
        """Skip a character if it comes next."""
        found = self._text.startswith(character, self._place)
        self._place += found
        return found

    def _refused(self, reason: str) -> SchemaError:
        text = self._text if len(self._text) <= 100 else f"{self._text[:100]}..."
        return SchemaError(f"No texts can be made of the regex {text}: {reason}.")


def _is_small(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) <= 5

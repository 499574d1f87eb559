"""Java's plugins whose jars list none: found by the ancestors of their classes, which are read without a JVM.

So Kafka Connect finds them, too, unless ``plugin.discovery`` is ``service_load``: many plugins are older than the
lists, and some new ones, such as MongoDB's, still have none.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ClassFile", "classes_of", "implementations", "parse_class"]

_MAGIC: Final = b"\xca\xfe\xba\xbe"
_SUFFIX: Final = ".class"
_MOST_BYTES: Final = 1024 * 1024
"""What is longer is generated code, and no plugin."""
_OTHER_VERSIONS: Final = "META-INF/"
_OF_KAFKA: Final = re.compile(r"org\.apache\.kafka\.(?!connect\.(transforms|json|file|mirror|converters)\.)")
"""Classes that Kafka Connect takes from itself, and never from a plugin."""
_PUBLIC: Final = 0x0001
_NO_INSTANCES: Final = 0x0200 | 0x0400
"""Interfaces and abstract classes."""
_TEXT, _CLASS, _WIDE = 1, 7, frozenset({5, 6})
_SIZES: Final[Mapping[int, int]] = {
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 5),
    **dict.fromkeys(_WIDE, 9),
    **dict.fromkeys((_CLASS, 8, 16, 19, 20), 3),
    15: 4,
}
"""How many bytes a constant of each kind has, texts apart."""


@dataclass(frozen=True, slots=True)
class ClassFile:
    """A class: what it extends and implements, and whether it can be made."""

    name: str
    parents: tuple[str, ...]
    is_concrete: bool
    jar: Path


def implementations(classes: Iterable[ClassFile], roots: Iterable[str]) -> Iterator[tuple[str, ClassFile]]:
    """Yield each class that can be made and descends from a root, with that root."""
    children: defaultdict[str, list[ClassFile]] = defaultdict(list)
    for each in classes:
        for parent in each.parents:
            children[parent].append(each)
    for root in roots:
        below: dict[str, ClassFile] = {}
        left = [root]
        while left:
            new = [each for each in children[left.pop()] if each.name not in below]
            below |= {each.name: each for each in new}
            left += [each.name for each in new]
        for name in sorted(below):
            if below[name].is_concrete and not _OF_KAFKA.match(name):
                yield root, below[name]


def classes_of(jar: Path) -> Iterator[ClassFile]:
    """Yield the classes of a jar; those that cannot be read are none that could run."""
    with zipfile.ZipFile(jar) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(_SUFFIX) or info.filename.startswith(_OTHER_VERSIONS):
                continue
            with archive.open(info) as file:
                content = file.read(_MOST_BYTES)
            if (found := parse_class(content, jar)) is not None:
                yield found


def parse_class(content: bytes, jar: Path) -> ClassFile | None:
    """Return what a class file says of its ancestors; ``None`` if it is no class file."""
    if content[:4] != _MAGIC:
        return None
    try:
        texts, names, at = _constants(content)
        flags, own, parent, count = struct.unpack_from(">4H", content, at)
        parents = (parent, *struct.unpack_from(f">{count}H", content, at + 8))
        written = [_name(content, *texts[names[index]]) for index in (own, *parents) if index]
    except (IndexError, KeyError, struct.error, UnicodeDecodeError):
        return None
    is_concrete = bool(flags & _PUBLIC) and not flags & _NO_INSTANCES
    return ClassFile(written[0], tuple(written[1:]), is_concrete, jar)


def _name(content: bytes, start: int, length: int) -> str:
    return content[start : start + length].decode().replace("/", ".")


def _constants(content: bytes) -> tuple[dict[int, tuple[int, int]], dict[int, int], int]:
    """Return where the texts are, which of them name classes, and where the constants end."""
    texts: dict[int, tuple[int, int]] = {}
    names: dict[int, int] = {}
    at, index, count = 10, 1, int.from_bytes(content[8:10])
    while index < count:
        kind = content[at]
        if kind == _TEXT:
            length = int.from_bytes(content[at + 1 : at + 3])
            texts[index] = at + 3, length
            at += 3 + length
        else:
            if kind == _CLASS:
                names[index] = int.from_bytes(content[at + 1 : at + 3])
            at += _SIZES[kind]
        index += 2 if kind in _WIDE else 1
    return texts, names, at

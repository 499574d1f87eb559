"""ArcSight's Common Event Format, which security devices send in syslog messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["CefHeader", "read_cef"]

_FIELD: Final = r"((?:[^|\\]++|\\.)*+)\|"
_HEADER: Final = re.compile(rf"CEF: ?\d{{1,3}}\|{_FIELD * 6}", re.DOTALL)
_KEY: Final = re.compile(r"(?:^|(?<=\s))([^\s=|\\]+)=")
_ESCAPED: Final = re.compile(r"\\([\\|=nr])")
_MEANINGS: Final = {"n": "\n", "r": "\r"}


@dataclass(frozen=True, slots=True)
class CefHeader:
    """The fields of an event."""

    vendor: str
    product: str
    device_version: str
    class_id: str
    name: str
    severity: str
    extension: dict[str, str]


def read_cef(text: str) -> CefHeader | None:
    """Return the event in a text that begins with ``CEF:``; ``None`` if its header is not complete."""
    found = _HEADER.match(text)
    if found is None:
        return None
    vendor, product, version, class_id, name, severity = map(_plain, found.groups())
    return CefHeader(vendor, product, version, class_id, name, severity, _extension(text[found.end() :]))


def _extension(text: str) -> dict[str, str]:
    """Return the pairs of an extension. A value ends where the next key begins; of a repeated key the last counts."""
    keys = list(_KEY.finditer(text))
    ends = [*(key.start() for key in keys[1:]), len(text)][: len(keys)]
    return {key[1]: _plain(text[key.end() : end].rstrip()) for key, end in zip(keys, ends, strict=True)}


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANINGS.get(found[1], found[1]), text) if "\\" in text else text

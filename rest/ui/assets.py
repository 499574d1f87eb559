"""The style sheets, scripts and images of the web page, served at addresses that change when one of the files does."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Asset", "Assets"]

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A file."""

    content: bytes
    content_type: str


class Assets:
    """The files of the web page, read once. ``version`` is a digest of all of them."""

    def __init__(self) -> None:
        files = sorted(file for file in _FOLDER.iterdir() if file.suffix in _TYPES)
        self._assets = {file.name: Asset(file.read_bytes(), _TYPES[file.suffix]) for file in files}
        digest = hashlib.sha256()
        for name, asset in self._assets.items():
            digest.update(name.encode() + b"\0" + asset.content + b"\0")
        self.version: Final = digest.hexdigest()[:_DIGITS]

    def get(self, name: str) -> Asset | None:
        """Return the file of this name, if there is one."""
        return self._assets.get(name)
